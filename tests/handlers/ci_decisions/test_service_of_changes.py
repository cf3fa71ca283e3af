"""Skipping CI and building images: the requests to GitHub, the commit that they are for, and the result of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import TryAgain
from bot.github.client import GitHub
from handlers.ci_decisions.service import Decisions
from tests.handlers.driver import FULL_NAME, World, a_world

PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"
FILES = f"{PULL}/files"
FEATURES = {"skip_ci": {"globs": ["*.md"]}, "rebuild_docker": {}}
NOT_ASKED = "Fallback: GitHub did not answer about the pull request, so {}."
ELSEWHERE = "d" * 40


class Asker:
    """A CI that asks the bot of a world; `now` is the bot's clock."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 0.0
        self._decisions = Decisions(world.pipeline.config, world.records, self._github_for, lambda: self.now)

    async def _github_for(self, repository: str) -> GitHub:
        app = self.world.pipeline.app
        return await app.reader(repository)

    async def ask(self, number: int, sha: str = "") -> Mapping[str, Any]:
        return await self._decisions(FULL_NAME, number, sha)

    async def skips(self, number: int, sha: str = "") -> tuple[bool, str]:
        answer_ = (await self.ask(number, sha))["skip_ci"]
        return answer_["value"], answer_["reason"]

    async def builds(self, number: int, sha: str = "") -> tuple[bool, str]:
        answer_ = (await self.ask(number, sha))["rebuild_docker"]
        return answer_["value"], answer_["reason"]

    def requests(self) -> list[str]:
        """Return the requests to GitHub since the previous call."""
        sent = [f"{r.method} {r.route}" for r in self.world.github.requests.of_installation]
        self.world.github.requests.clear()
        return sent


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    async with a_world(tmp_path, features=FEATURES) as world:
        yield Asker(world)


async def test_title_and_files_decide(asker: Asker) -> None:
    world = asker.world
    docs = world.open(files={"docs/index.rst": "x", "a/README.md": "x"})
    code = world.open(files={"docs/index.rst": "x", "src/codegen.cc": "x"})
    image = world.open("", title="Revert it [skip ci]", files={"docker/Dockerfile": "x"})
    text = world.open(files={"docker/README.md": "x", "tests/docker/x.py": "x"})
    await world.happen()
    nothing = "The images are not rebuilt: none of their files changed."
    assert await asker.skips(docs.number) == (True, "CI is skipped: no file that CI needs changed (2 files).")
    assert await asker.builds(docs.number) == (False, nothing)
    assert await asker.skips(code.number) == (False, "CI runs because src/codegen.cc changed.")
    answer_ = "CI is skipped: the title had [skip ci] when CI started."
    assert await asker.skips(image.number) == (True, answer_)
    assert await asker.builds(image.number) == (True, "The images are built because docker/Dockerfile changed.")
    assert await asker.skips(text.number) == (False, "CI runs because tests/docker/x.py changed.")
    assert await asker.builds(text.number) == (False, nothing)


async def test_without_a_changed_file_ci_runs(asker: Asker) -> None:
    """TVM #9221: its script skipped CI in this case."""
    pull = asker.world.open(files={})
    await asker.world.happen()
    assert await asker.skips(pull.number) == (False, "CI runs: no file changed.")


async def test_changes_on_main_do_not_count_as_changes_of_the_pull_request(asker: Asker) -> None:
    """TVM #12097, #12210: its scripts guessed what to compare with, wrongly on branches."""
    world = asker.world
    pull = world.open(files={"docs/x.rst": "x"})
    world.repository.push("main", {"docker/Dockerfile": "x", "src/x.cc": "x"}, by="octocat")
    await world.happen()
    assert (await asker.skips(pull.number))[0] is True
    assert (await asker.builds(pull.number))[0] is False


async def test_the_message_of_a_commit_does_not_skip_ci(asker: Asker) -> None:
    """TVM #10537: only titles do, because everybody sees them."""
    pull = asker.world.open(files={"src/x.cc": "x"})
    pull.push({"src/x.cc": "y"}, message="[skip ci] Fix it")
    await asker.world.happen()
    assert (await asker.skips(pull.number))[0] is False


async def test_a_file_moved_out_of_a_relevant_folder_still_counts(asker: Asker) -> None:
    world = asker.world
    world.repository.push("main", {"src/codegen.cc": "int x;\n", "docker/Dockerfile": "FROM x\n"}, by="octocat")
    moved = world.open(files={"src/codegen.cc": None, "docs/codegen.cc": "int x;\n"})
    image = world.open(files={"docker/Dockerfile": None, "old/Dockerfile": "FROM x\n"})
    await world.happen()
    assert await asker.skips(moved.number) == (False, "CI runs because src/codegen.cc changed.")
    assert await asker.builds(image.number) == (True, "The images are built because docker/Dockerfile changed.")


async def test_thirty_steps_of_a_build_cost_three_requests_together(asker: Asker) -> None:
    """In parallel, one after another, and with the commit that they build."""
    pull = asker.world.open(files={"src/x.cc": "x"})
    await asker.world.happen()
    asker.requests()
    answers = await asyncio.gather(*(asker.ask(pull.number, pull.head_sha) for _ in range(30)))
    assert all(answer == answers[0] for answer in answers)
    assert asker.requests() == [f"GET {PULL}", f"GET {FILES}", f"GET {PULL}"]
    for _ in range(30):
        asker.now += 0.2
        await asker.ask(pull.number, pull.head_sha)
    assert asker.requests() == []
    for _ in range(30):
        asker.now += 10
        await asker.ask(pull.number, pull.head_sha)
    # For five minutes: the title is read each time, but its 304 costs no quota; the files of a commit are cached.
    assert asker.requests() == [f"GET {PULL}"] * 30


async def test_each_hundred_files_cost_one_more_request(asker: Asker) -> None:
    pull = asker.world.open(files={f"docs/{n}.rst": "x" for n in range(250)})
    await asker.world.happen()
    asker.requests()
    assert await asker.skips(pull.number) == (True, "CI is skipped: only documentation changed (250 files).")
    assert asker.requests() == [f"GET {PULL}", *[f"GET {FILES}"] * 3, f"GET {PULL}"]


@pytest.mark.no_cover
async def test_more_files_than_github_lists_run_everything(asker: Asker) -> None:
    """It lists 3,000, so nobody can say whether the others matter."""
    pull = asker.world.open(files={f"docs/{n}.rst": "x" for n in range(3_001)})
    await asker.world.happen()
    asker.requests()
    reason = "Fallback: 3001 files are changed and GitHub lists 3000 of them, so {}."
    assert await asker.skips(pull.number) == (False, reason.format("CI runs"))
    assert await asker.builds(pull.number) == (True, reason.format("the images are built"))
    assert asker.requests() == [f"GET {PULL}"]


async def test_an_edited_title_counts_as_soon_as_its_webhook_arrives(asker: Asker) -> None:
    pull = asker.world.open(files={"src/x.cc": "x"})
    await asker.world.happen()
    assert (await asker.skips(pull.number))[0] is False
    asker.world.github.clock.advance(seconds=5)
    pull.edit("octocat", title="[skip ci] Improve it")
    await asker.world.happen()
    assert (await asker.skips(pull.number))[0] is True


async def test_an_edited_title_counts_soon_even_without_a_webhook(asker: Asker) -> None:
    pull = asker.world.open(files={"src/x.cc": "x"})
    await asker.world.happen()
    assert (await asker.skips(pull.number))[0] is False
    pull.edit("octocat", title="[skip ci] Improve it")
    asker.now = 10
    assert (await asker.skips(pull.number))[0] is True


async def test_the_answer_is_about_the_newest_head(asker: Asker) -> None:
    pull = asker.world.open(files={"docs/x.rst": "x"})
    await asker.world.happen()
    assert (await asker.skips(pull.number))[0] is True
    asker.world.github.clock.advance(seconds=5)
    pull.push({"src/x.cc": "x"})
    await asker.world.happen()
    answer_ = await asker.ask(pull.number)
    assert (answer_["sha"], answer_["skip_ci"]["value"]) == (pull.head_sha, False)


async def test_a_build_of_another_commit_than_the_head_skips_nothing(asker: Asker) -> None:
    """An older head, or the merge commit that GitHub creates for a workflow."""
    pull = asker.world.open(files={"docs/x.rst": "x"})
    old = pull.head_sha
    asker.world.github.clock.advance(seconds=5)
    pull.push({"docs/x.rst": "y"})
    await asker.world.happen()
    for other_sha in (old, ELSEWHERE):
        answer_ = await asker.ask(pull.number, other_sha)
        reason = f"Fallback: {other_sha[:7]} is not the head, which is {pull.head_sha[:7]}, so {{}}."
        assert answer_["sha"] == pull.head_sha
        assert answer_["skip_ci"] == {"value": False, "reason": reason.format("CI runs")}
        assert answer_["rebuild_docker"] == {"value": True, "reason": reason.format("the images are built")}
        # This belongs to the pull request, whichever of its commits is built.
        assert answer_["run_slow_tests"]["value"] is False
    assert (await asker.skips(pull.number, pull.head_sha))[0] is True


async def test_invented_commits_cost_no_request_each(asker: Asker) -> None:
    """Anybody may ask, about any commit."""
    pull = asker.world.open(files={"docs/x.rst": "x"})
    await asker.world.happen()
    asker.requests()
    for made_up in range(30):
        assert (await asker.skips(pull.number, f"{made_up:040x}"))[0] is False
    assert asker.requests() == [f"GET {PULL}"] * 2
    asker.now += 10
    for made_up in range(30):
        await asker.ask(pull.number, f"{made_up:040x}")
    assert asker.requests() == [f"GET {PULL}"] * 2


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_push_without_a_webhook_is_found_by_the_commit_that_is_built(asker: Asker, asked_before: bool) -> None:
    pull = asker.world.open(files={"docs/x.rst": "x"})
    await asker.world.happen()
    if asked_before:
        await asker.ask(pull.number)
    pull.push({"src/x.cc": "x"})
    answer_ = await asker.ask(pull.number, pull.head_sha)
    assert (answer_["sha"], answer_["skip_ci"]["reason"]) == (pull.head_sha, "CI runs because src/x.cc changed.")


async def test_a_github_that_lags_behind_its_own_webhooks_skips_nothing(asker: Asker) -> None:
    """Its answer about the previous head does not count for the commit that is built."""
    world = asker.world
    pull = world.open(files={"docs/x.rst": "x"})
    await world.happen()
    old_head = pull.head_sha
    world.github.clock.advance(seconds=5)
    pull.push({"docs/x.rst": "y"})
    await world.happen()
    newest, pull.head_sha, pull.updated_at = pull.head_sha, old_head, world.repository.created_at
    answer_ = await asker.ask(pull.number, newest)
    assert answer_["sha"] == newest
    behind = "Fallback: GitHub does not show the newest push yet, so CI runs."
    assert answer_["skip_ci"] == {"value": False, "reason": behind}
    pull.head_sha = newest
    assert await asker.skips(pull.number, newest) == (True, "CI is skipped: only documentation changed (1 file).")


async def test_a_push_while_the_files_are_listed_skips_nothing(asker: Asker) -> None:
    pull = asker.world.open(files={"src/x.cc": "x"})
    await asker.world.happen()
    held = asker.world.github.faults.pause("GET", FILES, when="after")
    asking = asyncio.create_task(asker.ask(pull.number))
    await held.reached.wait()
    pull.push({"docs/x.rst": "x"}, force=True)
    held.resume()
    answer_ = (await asking)["skip_ci"]
    reason = "Fallback: somebody pushed while the changed files were read, so CI runs."
    assert answer_ == {"value": False, "reason": reason}


async def test_if_github_is_down_everything_runs_and_the_reason_says_so(asker: Asker) -> None:
    """TVM #10457: an error must be reported, and must not count as an answer."""
    world = asker.world
    pull = world.open(title="[skip ci] Revert it", files={"docs/x.rst": "x"})
    await world.happen()
    world.github.faults.add("GET", PULL, status=502, times=None)
    answer_ = await asker.ask(pull.number)
    assert answer_["sha"] == pull.head_sha
    assert answer_["skip_ci"] == {"value": False, "reason": NOT_ASKED.format("CI runs")}
    assert answer_["rebuild_docker"] == {"value": True, "reason": NOT_ASKED.format("the images are built")}
    assert answer_["run_slow_tests"]["value"] is False  # answered from our own records
    asker.requests()
    await asker.ask(pull.number)
    assert asker.requests() == []  # an outage does not cost a request for each step
    world.github.faults.clear()
    asker.now = 10
    assert (await asker.skips(pull.number))[0] is True


@pytest.mark.parametrize("status", [403, 500])
async def test_files_that_cannot_be_listed_run_everything(asker: Asker, status: int) -> None:
    world = asker.world
    pull = world.open(files={"docs/x.rst": "x"})
    await world.happen()
    world.github.faults.add("GET", FILES, status=status, times=None)
    assert await asker.skips(pull.number) == (False, NOT_ASKED.format("CI runs"))
    assert await asker.builds(pull.number) == (True, NOT_ASKED.format("the images are built"))


async def test_an_unknown_pull_request_gets_an_answer_if_the_built_commit_is_named(asker: Asker) -> None:
    """Without a commit the answer is 503; CI acts the same in both cases."""
    world = asker.world
    pull = world.open(files={"docs/x.rst": "x"})
    world.github.webhooks.held.clear()
    world.github.faults.add("GET", PULL, status=502, times=None)
    answer_ = await asker.ask(pull.number, pull.head_sha)
    assert answer_["sha"] == pull.head_sha
    values = {name: answer_[name]["value"] for name in ("run_slow_tests", "skip_ci", "rebuild_docker")}
    assert values == {"run_slow_tests": True, "skip_ci": False, "rebuild_docker": True}
    assert all(answer_[name]["reason"].startswith("Fallback: ") for name in values)
    with pytest.raises(TryAgain):
        await asker.ask(pull.number)
