"""Skipping CI, step by step: what the status on the head says, and what CI gets over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox import PullRequest
from tests.conversations.test_requests import PULL, REPO, SETTINGS, STATUS, STATUSES, cost
from tests.conversations.town import CONFIG, Town
from tests.conversations.town import town as start_town

SKIP = f"""{CONFIG}    skip_ci: {{globs: ["*.md", ".github/*"]}}
    rebuild_docker: {{ignore: ["*.md", "docker/bash.sh"]}}
"""
RUN_AGAIN = " Restart CI if it has started."
TAGGED = "CI is skipped: the title had [skip ci] when CI started."
CODE = "CI runs because src/codegen.cc changed."
DOCS = "CI is skipped: only documentation changed (1 file)."
FILES = f"GET {REPO}/pulls/{{pull_number}}/files"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A town where CI may be skipped."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=SKIP) as town:
        yield town


def status_description(town: Town, pull: PullRequest) -> str:
    """Return the status on the head, after checking that it is no failure."""
    status = town.repo.status(pull.head_sha, "ci/skip")
    assert status is None or status.state == "success"
    return (status.description or "") if status else ""


async def fetch_decision(town: Town, pull: PullRequest, sha: str = "") -> Mapping[str, Any]:
    """Return the answer that CI gets for the head."""
    await town.quiet()
    query = f"?sha={sha}" if sha else ""
    status, kind, answer = await town.ask(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision{query}")
    assert (status, kind) == (200, "application/json")
    return dict(answer)


async def skip_decision(town: Town, pull: PullRequest) -> tuple[bool, str]:
    """Return the decision to skip that CI gets, and its reason, which people see too."""
    answer = await fetch_decision(town, pull)
    assert answer["sha"] == pull.head_sha
    assert status_description(town, pull).removesuffix(RUN_AGAIN) == answer["skip_ci"]["reason"]
    return answer["skip_ci"]["value"], status_description(town, pull)


async def test_the_skip_decision_follows_a_pull_request_through_its_whole_life(town: Town) -> None:
    """If an edit changes the decision, the status says that CI must run again: CI asks only when it starts."""
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    assert await skip_decision(town, pull) == (True, DOCS)
    pull.push({"src/codegen.cc": "x"})
    assert await skip_decision(town, pull) == (False, CODE)
    pull.edit("hubot", title="[Skip CI] Faster")
    assert await skip_decision(town, pull) == (True, TAGGED + RUN_AGAIN)
    pull.edit("hubot", title="[skip ci] Faster still")
    assert await skip_decision(town, pull) == (True, TAGGED + RUN_AGAIN)
    pull.push({"src/codegen.cc": "y"})
    assert await skip_decision(town, pull) == (True, TAGGED)
    pull.edit("hubot", title="Faster")
    assert await skip_decision(town, pull) == (False, CODE + RUN_AGAIN)
    pull.close("hubot")
    pull.reopen("hubot")
    assert await skip_decision(town, pull) == (False, CODE + RUN_AGAIN)
    assert await town.failures() == []


async def test_a_pull_request_from_a_fork_gets_a_decision_too(town: Town) -> None:
    pull = town.repo.open_pull_request("reader", "Faster", fork=True, files={"docs/index.rst": "x"})
    assert await skip_decision(town, pull) == (True, DOCS)


async def test_images_are_built_if_their_sources_changed(town: Town) -> None:
    image = town.repo.open_pull_request("hubot", "Newer", files={"docker/Dockerfile.ci_gpu": "x"})
    script = town.repo.open_pull_request("hubot", "Nicer", files={"docker/bash.sh": "x", "tests/docker/x.py": "x"})
    expected = {"value": True, "reason": "The images are built because docker/Dockerfile.ci_gpu changed."}
    assert (await fetch_decision(town, image))["rebuild_docker"] == expected
    assert (await fetch_decision(town, script))["rebuild_docker"]["value"] is False


async def test_a_build_of_another_commit_skips_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    old = pull.head_sha
    pull.push({"docs/index.rst": "y"})
    answer = await fetch_decision(town, pull, old)
    assert (answer["sha"], answer["skip_ci"]["value"], answer["rebuild_docker"]["value"]) == (
        pull.head_sha,
        False,
        True,
    )
    assert (await fetch_decision(town, pull, pull.head_sha))["skip_ci"]["value"] is True


async def test_if_the_feature_is_off_nothing_is_skipped_shown_or_requested(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db") as town:
        pull = town.repo.open_pull_request("hubot", "[skip ci] Faster", files={"docs/index.rst": "x"})
        answer = await fetch_decision(town, pull)
        assert answer["skip_ci"]["value"] is False
        assert answer["rebuild_docker"]["value"] is True
        assert status_description(town, pull) == ""
        assert not [r for r in town.github.requests.records if "/pulls" in r.path]


async def test_a_repositorys_own_file_says_what_does_not_matter_to_ci(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"notes/a.txt": "x"})
    assert (await skip_decision(town, pull))[0] is False
    text = 'skip_ci: {globs: ["notes/*"], title_tag: no ci}\nrebuild_docker: {paths: ["notes/*"]}\n'
    town.repo.push("main", {".github/nightjar.yaml": text}, by="octocat")
    await town.quiet()
    pull.push({"notes/a.txt": "y"})
    assert (await skip_decision(town, pull))[0] is True
    assert (await fetch_decision(town, pull))["rebuild_docker"]["value"] is True


async def test_if_the_files_cannot_be_listed_the_status_says_that_ci_runs(town: Town) -> None:
    """TVM #10457: nobody noticed a silent fallback for days."""
    town.github.faults.add("GET", FILES.removeprefix("GET "), status=403, message="Forbidden", times=None)
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    assert status_description(town, pull) == "Fallback: GitHub does not list the changed files, so CI runs."
    answer = await fetch_decision(town, pull)
    assert answer["skip_ci"]["reason"] == "Fallback: GitHub did not answer about the pull request, so CI runs."


def closed_and_opened(pull: PullRequest) -> None:
    pull.close("hubot")
    pull.reopen("hubot")


Step = Callable[[Town, PullRequest], object]

TABLE: dict[str, tuple[dict[str, str | None], Step, dict[str, int]]] = {
    "a push": (
        {"src/codegen.cc": "x"},
        lambda town, pull: pull.push({"src/codegen.cc": "y"}),
        {FILES: 1, PULL: 1, STATUSES: 2, STATUS: 2},
    ),
    "a push to 250 files": (
        {f"docs/{n}.rst": "x" for n in range(250)},
        lambda town, pull: pull.push({"docs/1.rst": "y"}),
        {FILES: 3, PULL: 1, STATUSES: 2, STATUS: 2},
    ),
    "the tag in the title": (
        {"src/codegen.cc": "x"},
        lambda town, pull: pull.edit("hubot", title="[skip ci] Faster"),
        {STATUSES: 1, STATUS: 1},
    ),
    "another word in the title": (
        {"src/codegen.cc": "x"},
        lambda town, pull: pull.edit("hubot", title="Faster still"),
        {},
    ),
    "another text": ({"src/codegen.cc": "x"}, lambda town, pull: pull.edit("hubot", body="Please look."), {}),
    "reopened, nothing changed": (
        {"src/codegen.cc": "x"},
        lambda town, pull: closed_and_opened(pull),
        {FILES: 1, PULL: 1, STATUSES: 2},
    ),
}


@pytest.mark.parametrize("scenario", TABLE)
async def test_each_request_is_accounted_for(town: Town, scenario: str) -> None:
    files, step, expected = TABLE[scenario]
    pull = town.repo.open_pull_request("hubot", "Faster", files=files)
    requests = await cost(town, lambda: step(town, pull))
    requests.pop(SETTINGS, None)  # for the repository's own file
    assert requests == expected


async def test_many_questions_from_ci_cost_only_a_few_requests(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"src/codegen.cc": "x"})
    await town.quiet()

    def do_nothing() -> None:
        """Cause no request: `cost` then forgets those of the pull request."""

    assert await cost(town, do_nothing) == {}
    path = f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision?sha={pull.head_sha}"
    answers = [await town.ask(path) for _ in range(30)]
    assert {answer["skip_ci"]["reason"] for _, _, answer in answers} == {CODE}
    requests = [f"{r.method} {r.route}" for r in town.github.requests.of_installation]
    # The first question also asks whether the repository is public, unless the lists that a start reads have said so.
    requests = [request for request in requests if request != "GET /repos/{owner}/{repo}"]
    assert requests[:3] == [PULL, FILES, PULL]
    assert len(requests) < 10  # the title, once every ten seconds
