"""What a person sees in the browser."""

from __future__ import annotations

import re
from html import escape

import aiohttp

from sandbox import App, GitHubSandbox, PullRequest, Repository
from sandbox.__main__ import populate
from sandbox.page.markdown import rendered


async def page(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path, headers={"Accept": "text/html"}) as answer:
        assert answer.status == 200
        return await answer.text()


async def test_a_pull_request_shows_its_whole_conversation(
    session: aiohttp.ClientSession, repo: Repository, pull: PullRequest, app: App
) -> None:
    comment = pull.comment("monalisa", "Does this help `softmax`?\n\n<!-- sticky:marker -->")
    pull.react(app.bot, "eyes", comment)
    pull.review("octocat", "Nice.", "APPROVED")
    pull.request_review("hubot", "monalisa")
    repo.set_status(app.bot, pull.head_sha, "ci/slow-tests", "success", "off: ask for them")
    place = {"path": "a.py", "start_line": 3, "end_line": 3, "annotation_level": "warning", "message": "slower by 9 %"}
    repo.add_check_run(
        app, pull.head_sha, "hardware/x", conclusion="neutral", summary="|a|\n|-|\n|b|", annotations=[place]
    )
    text = await page(session, "/octocat/compiler/pull/1")
    for seen in ("Fuse before lowering", "Saves a pass.", "<code>softmax</code>", "👀 1", "approved these changes"):
        assert seen in text
    for seen in (
        "ci/slow-tests",
        "off: ask for them",
        "hardware/x",
        "<td>b</td>",
        "a.py:3",
        "slower by 9 %",
        "monalisa",
    ):
        assert seen in text
    assert "marker" not in text


async def test_text_from_people_is_never_markup(session: aiohttp.ClientSession, repo: Repository) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    pull = repo.open_pull_request("hubot", evil, evil + "\n\n[x](javascript:alert(1))", branch="<b>")
    pull.comment("hubot", f"{evil}\n<details><summary>More</summary>\n\n**bold**\n\n</details>")
    repo.set_status("hubot", pull.head_sha, evil, "failure", evil, "https://example.org/'\"><script>")
    text = await page(session, "/octocat/compiler/pull/1")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert 'href="javascript' not in text
    assert "<details><summary>More</summary>" in text
    assert "<strong>bold</strong>" in text


def test_markers_are_visible_inside_code() -> None:
    assert "&lt;!-- shown --&gt;" in rendered("`<!-- shown -->`")
    assert "hidden" not in rendered("a <!-- hidden --> b")


async def test_every_link_of_the_demo_leads_somewhere(github: GitHubSandbox, session: aiohttp.ClientSession) -> None:
    populate(github)
    for start in ("/", "/octocat/compiler", "/octocat/compiler/pull/1"):
        links = set(re.findall(r'(?:href|src)="(/octocat/compiler[^"]*|/avatars/[^"]*)"', await page(session, start)))
        assert links
        for link in links:
            async with session.get(link, headers={"Accept": "text/html"}) as answer:
                assert answer.status == 200, link


async def test_html_urls_of_the_api_lead_to_the_pages(
    github: GitHubSandbox, session: aiohttp.ClientSession, pull: PullRequest
) -> None:
    from sandbox.views import issues

    assert issues.pull(pull)["html_url"] == f"{github.url}/octocat/compiler/pull/1"
    assert "Saves a pass." in await page(session, issues.pull(pull)["html_url"])


async def test_a_missing_page_does_not_count_as_a_mistake_of_the_bot(
    github: GitHubSandbox, session: aiohttp.ClientSession
) -> None:
    async with session.get("/octocat/nowhere", headers={"Accept": "text/html"}) as answer:
        assert answer.status == 404
    assert github.violations == []


async def test_a_visitor_comments_as_anybody_whose_name_they_choose(
    session: aiohttp.ClientSession, github: GitHubSandbox, pull: PullRequest
) -> None:
    github.user("octo-friend")
    address = f"/octocat/compiler/pull/{pull.number}"
    text = await page(session, address)
    people = re.findall(r"<option [^>]*>([^<]*)</option>", text)
    assert people[:3] == ["octocat (admin)", "hubot (write)", "monalisa (triage)"]
    assert "octo-friend (read)" in people
    statuses = []
    for login, body in [("octo-friend", "@ci help me"), ("nobody-at-all", "@ci help"), ("hubot", " ")]:
        async with session.post(address, data={"by": login, "body": body}) as answer:
            statuses.append(answer.status)
    async with session.post("/octocat/compiler/pull/99", data={"by": "hubot", "body": "@ci help"}) as answer:
        statuses.append(answer.status)
    assert statuses == [200, 422, 422, 404]
    assert [(comment.user.login, comment.body) for comment in pull.comments] == [("octo-friend", "@ci help me")]
    assert "@ci help me" in await page(session, address)


async def test_a_range_a_file_and_the_form_of_an_issue_have_pages(
    session: aiohttp.ClientSession, repo: Repository, pull: PullRequest
) -> None:
    base = repo.branch("main")
    range_page = await page(session, f"/octocat/compiler/compare/{base}...{pull.head_sha}")
    assert range_page.count("<li>") == len(pull.commits)
    for change in pull.files:
        assert change.path in range_page
        text = repo.git.commits[pull.head_sha].files[change.path]
        assert escape(text) in await page(session, f"/octocat/compiler/blob/{pull.head_sha}/{change.path}")
    assert "Fuse" in await page(session, f"/octocat/compiler/commit/{pull.head_sha}/checks")
    assert "&lt;b&gt;" in await page(session, "/octocat/compiler/issues/new?title=%3Cb%3E&body=x")
    for path in (f"compare/{base}", f"compare/{base}...no", f"blob/{base}/no.py"):
        async with session.get(f"/octocat/compiler/{path}", headers={"Accept": "text/html"}) as answer:
            assert answer.status == 404, path
