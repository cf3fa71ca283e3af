"""Which runs are ingested: from which labs, and for which commits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nightjar_formats.model import RunKey
from nightjar_formats.refused import Refused

from bot.results.ingest.admission import Admissions, check_quota, lab_of
from bot.results.settings.results import Lab, Results
from bot.results.state import Admission
from tests.handlers.driver import FULL_NAME, World, a_world

BRANCHES = ("nightly",)
CONFIG = Results.model_validate(
    {
        "bucket": "device-results",
        "labs": {"example-lab": {"targets": ("hexagon-v73", "adreno"), "runs_per_day": 3, "megabytes_per_day": 2}},
    }
)


COMPARE = "/repos/{owner}/{repo}/compare/{basehead}"


def key(sha: str, lab: str = "example-lab", target: str = "adreno") -> RunKey:
    return RunKey(FULL_NAME, lab, target, sha, "1")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def admitted(world: World, sha: str, claimed: int | None = None) -> Admission:
    github = await world.pipeline.app.reader(FULL_NAME)
    return await Admissions(world.records).admit(github, key(sha), world.repository.id, BRANCHES, claimed)


async def refusal(world: World, sha: str, claimed: int | None = None) -> str:
    with pytest.raises(Refused) as caught:
        await admitted(world, sha, claimed)
    return str(caught.value)


def test_only_labs_and_targets_of_app_yaml_are_accepted() -> None:
    assert lab_of(key("5" * 40), CONFIG).runs_per_day == 3
    with pytest.raises(Refused, match=r"has no lab other-lab for octocat/compiler"):
        lab_of(key("5" * 40, lab="other-lab"), CONFIG)
    with pytest.raises(Refused, match=r"no target adreno-2 for the lab example-lab; available: hexagon-v73, adreno"):
        lab_of(key("5" * 40, target="adreno-2"), CONFIG)


@pytest.mark.parametrize(
    ("runs", "sent", "size", "refused"),
    [
        (0, 0, 0, ""),
        (2, 1_000_000, 1_000_000, ""),
        (3, 0, 0, "uploaded 3 runs today"),
        (0, 1_000_000, 1_000_001, "exceed 2 MB today"),
    ],
)
def test_a_lab_may_upload_a_limited_amount_per_day(runs: int, sent: int, size: int, refused: str) -> None:
    lab: Lab = CONFIG.labs["example-lab"]
    if not refused:
        check_quota(lab, runs, sent, size)
        return
    with pytest.raises(Refused, match=refused):
        check_quota(lab, runs, sent, size)


async def test_an_earlier_commit_of_the_nightly_branch_is_accepted(world: World) -> None:
    first = world.repository.push("nightly", by="octocat")
    world.repository.push("nightly", by="octocat")
    assert await admitted(world, first.sha) == Admission(first.date.timestamp(), mainline=True)


async def test_a_commit_only_on_main_is_refused(world: World) -> None:
    world.repository.push("nightly", by="octocat")
    ahead = world.repository.push("main", by="octocat")
    assert f"{ahead.sha} is neither on nightly nor the head of a pull request" in await refusal(world, ahead.sha)


async def test_a_commit_that_does_not_exist_is_refused(world: World) -> None:
    assert await refusal(world, "5" * 40) == f"there is no commit {'5' * 40} in octocat/compiler"


async def test_the_head_of_a_pull_request_is_accepted_and_its_number_found(world: World) -> None:
    pull = world.open()
    admission = await admitted(world, pull.head_sha)
    assert (admission.mainline, admission.pull_request) == (False, pull.number)
    # The answer that has the commit's date has its title and author too, so they cost no request.
    assert admission.summary is not None
    assert admission.summary.pull_request == pull.number
    assert admission.summary.title
    assert admission.summary.author


async def test_an_older_commit_of_a_pull_request_is_refused(world: World) -> None:
    pull = world.open()
    old_head = pull.head_sha
    pull.push(by="octocat")
    assert "neither on nightly nor the head of a pull request" in await refusal(world, old_head)


async def test_the_head_of_a_pull_request_from_a_fork_is_found_by_the_claimed_number(world: World) -> None:
    pull = world.repository.open_pull_request("hubot", fork=True)
    assert (await admitted(world, pull.head_sha, claimed=pull.number)).pull_request == pull.number
    assert "set pull_request in the manifest" in await refusal(world, pull.head_sha)


async def test_a_claimed_pull_request_must_have_that_head(world: World) -> None:
    pull, other_pull = world.open(), world.open()
    text = await refusal(world, pull.head_sha, claimed=other_pull.number)
    assert text.startswith(
        f"the head of pull request {other_pull.number} is {other_pull.head_sha}, not {pull.head_sha}"
    )
    assert "no pull request 4242" in await refusal(world, pull.head_sha, claimed=4242)


async def test_a_commit_of_the_nightly_branch_cannot_be_claimed_for_a_pull_request(world: World) -> None:
    nightly, pull = world.repository.push("nightly", by="octocat"), world.open()
    assert "leave pull_request out" in await refusal(world, nightly.sha, claimed=pull.number)


async def test_the_head_of_the_last_webhook_counts_even_if_github_already_has_a_newer_one(
    world: World,
) -> None:
    pull = world.open()
    await world.happen()
    tested = pull.head_sha
    pull.push(by="octocat")
    assert (await admitted(world, tested, claimed=pull.number)).pull_request == pull.number


async def test_each_question_is_asked_once(world: World) -> None:
    pull = world.open()
    github = await world.pipeline.app.reader(FULL_NAME)
    admissions = Admissions(world.records)
    for _ in range(3):
        await admissions.admit(github, key(pull.head_sha), world.repository.id, BRANCHES, pull.number)
    assert world.github.requests.count("GET", COMPARE) == 1
