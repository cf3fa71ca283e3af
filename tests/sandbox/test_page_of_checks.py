"""What a person sees of a check run in the browser, and what its buttons do."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from sandbox import App, GitHubSandbox, Repository
from sandbox.model.checks import CheckRun

from .conftest import Receiver

PATH = "tests/test_tag.py"
ANNOTATION = {"path": PATH, "start_line": 4, "end_line": 4, "annotation_level": "warning"}
BUTTONS = [
    {"label": "Re-check", "description": "Compute it once more", "identifier": "re-check"},
    {"label": "Ignore for this PR", "description": "Count them as known", "identifier": "ignore"},
]


@pytest.fixture
def run(repo: Repository, app: App) -> CheckRun:
    files = {PATH: "import te\n\ndef test_with():\n    assert te.tag('x') < 1\n"}
    pull = repo.open_pull_request("hubot", "Fuse", branch="fuse", files=files)
    note = ANNOTATION | {"title": "New failure", "message": "1 is not less than 1", "raw_details": "E assert 1 < 1"}
    return repo.add_check_run(
        app, pull.head_sha, "hardware/lab/target", conclusion="neutral", title="1 new failure", summary="|a|\n|-|\n|b|",
        text="## Fixed: 3", annotations=[note], actions=BUTTONS,
    )  # fmt: skip


def page_of(run: CheckRun) -> str:
    return f"/octocat/compiler/runs/{run.id}"


async def read(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path, headers={"Accept": "text/html"}) as answer:
        assert answer.status == 200
        return await answer.text()


async def press(session: aiohttp.ClientSession, run: CheckRun, login: str, action: str) -> tuple[int, str]:
    """Return the status and the path of the final page."""
    return await submit(session, page_of(run), login, action)


async def submit(session: aiohttp.ClientSession, path: str, login: str, action: str) -> tuple[int, str]:
    async with session.post(path, data={"by": login, "action": action}, headers={"Accept": "text/html"}) as answer:
        return answer.status, answer.url.path


async def test_a_check_run_shows_all_its_texts_with_the_annotated_code(
    session: aiohttp.ClientSession, run: CheckRun
) -> None:
    text = await read(session, page_of(run))
    for seen in ("1 new failure", "<td>b</td>", "<h2>Fixed: 3</h2>", f"{PATH}:4", "1 is not less than 1"):
        assert seen in text
    assert "<mark><i>    4</i>      assert te.tag(&#x27;x&#x27;) &lt; 1</mark>" in text
    assert "<span><i>    3</i>  def test_with():</span>" in text
    assert "E assert 1 &lt; 1" in text
    assert "#1 Fuse" in text
    assert ">Ignore for this PR</button>" in text


async def test_an_annotation_of_a_missing_file_says_so(session: aiohttp.ClientSession, run: CheckRun) -> None:
    run.change(run.app.bot, annotations=[ANNOTATION | {"path": "removed.py", "message": "lost"}])
    assert "There is no such file at this commit." in await read(session, page_of(run))


async def test_a_commit_and_its_repository_link_its_check_runs(session: aiohttp.ClientSession, run: CheckRun) -> None:
    for page in (f"/octocat/compiler/commit/{run.head_sha}", "/octocat/compiler", "/octocat/compiler/pull/1"):
        text = await read(session, page)
        assert f'href="{page_of(run)}"' in text
        assert "hardware/lab/target" in text


async def test_a_repository_marks_its_commits_with_their_statuses(
    session: aiohttp.ClientSession, repo: Repository
) -> None:
    sha = repo.branch("main")
    repo.set_status("hubot", sha, "cpu/branch", "failure", "<b>12 tests failed</b>")
    link = f'<a href="/octocat/compiler/commit/{sha}" title="cpu/branch: &lt;b&gt;12 tests failed&lt;/b&gt;">'
    text = await read(session, "/octocat/compiler")
    assert text.count(link) == 2  # on the branch, and among the commits
    assert f'{link}<span class="icon bad"' in text


async def test_text_in_a_check_run_is_never_markup(session: aiohttp.ClientSession, run: CheckRun) -> None:
    evil = '"><script>alert(1)</script>'
    note = ANNOTATION | {"path": evil, "title": evil, "message": evil, "raw_details": evil}
    button = {"label": evil, "description": evil, "identifier": evil}
    run.change(run.app.bot, title=evil, summary=evil, text=evil, annotations=[note], actions=[button])
    run.name = evil
    for page in (page_of(run), "/octocat/compiler", f"/octocat/compiler/commit/{run.head_sha}"):
        assert "<script" not in await read(session, page)


async def test_pressing_a_button_leads_to_the_new_run(
    github: GitHubSandbox, session: aiohttp.ClientSession, receiver: Receiver, run: CheckRun
) -> None:
    run.app.webhook_url = receiver.url
    pressing = asyncio.create_task(press(session, run, "hubot", "ignore"))
    await github.until(lambda: "check_run.requested_action" in receiver.names)
    body = receiver.received[receiver.names.index("check_run.requested_action")][1]
    assert (body["sender"]["login"], body["requested_action"]) == ("hubot", {"identifier": "ignore"})
    repository = run.suite.repository
    newer = repository.add_check_run(run.app, run.head_sha, run.name, conclusion="success", title="Ignored by hubot")
    assert await pressing == (200, page_of(newer))
    old = await read(session, page_of(run))
    assert f'<a href="{page_of(newer)}">There is a newer run of this check.</a>' in old
    assert "<button" not in old


@pytest.mark.parametrize(("login", "action"), [("hubot", "approve"), ("a-stranger-to-all", "ignore")])
async def test_a_button_that_does_not_exist_cannot_be_pressed(
    github: GitHubSandbox, session: aiohttp.ClientSession, receiver: Receiver, run: CheckRun, login: str, action: str
) -> None:
    run.app.webhook_url = receiver.url
    assert (await press(session, run, login, action))[0] == 422
    await github.delivered()
    assert receiver.names == []


async def test_a_button_of_a_missing_run_does_not_count_as_a_mistake_of_the_bot(
    github: GitHubSandbox, session: aiohttp.ClientSession, repo: Repository
) -> None:
    assert (await submit(session, "/octocat/compiler/runs/1", "hubot", "ignore"))[0] == 404
    assert github.violations == []


async def test_a_workflow_run_has_a_page_with_its_jobs(session: aiohttp.ClientSession, repo: Repository) -> None:
    pull = repo.open_pull_request("hubot", "Fuse")
    run = repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"}, by="hubot")
    path = f"/octocat/compiler/actions/runs/{run.id}"
    for address in (path, f"{path}/job/{run.jobs[0].id}"):
        text = await read(session, address)
        assert "failure on " in text
        assert all(f"<b>{job.check_run.name}</b>" in text for job in run.jobs)
    async with session.get("/octocat/compiler/actions/runs/1", headers={"Accept": "text/html"}) as answer:
        assert answer.status == 404
