"""The requests to GitHub and S3 for labs' results do not grow with tests, suites or nightly runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import list_runs
from tests.bucket import World, point_to
from tests.conversations.lab import LabTown, junit, lab_town
from tests.robustness.gate import Gate, gate

REPO = "/repos/{owner}/{repo}"
COMMIT, ON_BRANCH = f"GET {REPO}/git/commits/{{commit_sha}}", f"GET {REPO}/compare/{{basehead}}"
FILES = f"GET {REPO}/git/trees/{{tree_sha}}"
HEADS_PULLS = f"GET {REPO}/commits/{{commit_sha}}/pulls"
CHECKS, CHECK = f"GET {REPO}/commits/{{ref}}/check-runs", f"POST {REPO}/check-runs"
UPDATE, COMMENTS = f"PATCH {REPO}/check-runs/{{check_run_id}}", f"GET {REPO}/check-runs/{{check_run_id}}/annotations"
ROLE = f"GET {REPO}/collaborators/{{username}}/permission"
LIST, MANIFEST, FILE = "list", "manifest", "file"

TAKEN = {ON_BRANCH: 1, FILES: 1}
ANSWERED = {CHECKS: 1, CHECK: 1}
COMPARED = {ON_BRANCH: 2}
"""That a commit is on the branch, and that the one before is its ancestor, are the same request."""
FLOOD = 40
SCANS = 2
SUITES = ("arith", "ir", "relax", "target", "te")
GOOD, BAD = junit(test_add="passed", test_mul="passed"), junit(test_add="passed", test_mul="AssertionError")


@pytest.fixture
async def counted(tmp_path: Path, aws_world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Counted]:
    """A lab in a town whose requests are counted."""
    async with gate(aws_world.server) as s3:
        point_to(s3.url, monkeypatch)
        async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
            yield Counted(place, s3)


class Counted:
    """A lab in a town whose requests are counted."""

    def __init__(self, place: LabTown, s3: Gate) -> None:
        self.place = place
        self.s3 = s3

    async def cost(self, step: Callable[[], object]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the requests to GitHub and to S3 that a step causes, including the scans until all is settled."""
        await self.place.settle()
        self.place.town.github.requests.clear()
        self.s3.requests.clear()
        step()
        await self.place.settle()
        github_requests = Counter(f"{r.method} {r.route}" for r in self.place.town.github.requests.of_installation)
        # The repository's own number is looked up once.
        del github_requests[f"GET {REPO}"], github_requests["GET /users/{username}"]
        s3_requests = Counter(kind_of(path) for _, path in self.s3.requests)
        # Each scan lists once. The bot's own timer may list too at the moment at which a scan moves the clock: to see
        # whether there is work, and to do it.
        assert SCANS <= s3_requests[LIST] <= 3 * SCANS
        return dict(github_requests), {**s3_requests, LIST: SCANS}

    def nightly_run(self, suites: tuple[str, ...] = SUITES, content: bytes = GOOD) -> Callable[[], object]:
        """Return a step in which a lab uploads some suites of a new nightly run."""

        def upload() -> None:
            sha = self.place.nightly_run()
            for suite in suites:
                self.place.upload(sha, {"a.xml": content}, suite=suite)

        return upload


def kind_of(path: str) -> str:
    return LIST if "list-type=" in path else MANIFEST if path.endswith("manifest.json") else FILE


def read(runs: int) -> dict[str, int]:
    """Return the requests to S3 for a number of runs with one file each, found by two scans."""
    return {LIST: SCANS, MANIFEST: runs, FILE: runs}


async def test_a_nightly_run_of_five_suites_costs_one_set_of_reads_and_one_write(counted: Counted) -> None:
    # The very first run of a target waits for nothing, so that night may cost a second look at the check run.
    _, s3_requests = await counted.cost(counted.nightly_run())
    assert s3_requests == read(5)
    # The second nightly run has an earlier one to compare with.
    assert await counted.cost(counted.nightly_run()) == (TAKEN | ANSWERED | COMPARED, read(5))


@pytest.mark.exhaustive
async def test_the_cost_does_not_grow_with_tests_suites_or_nightly_runs(counted: Counted) -> None:
    await counted.cost(counted.nightly_run(SUITES[:1]))
    second = TAKEN | ANSWERED | COMPARED
    many = junit(**{f"test_{n}": "passed" for n in range(2000)})
    worse = junit(**{f"test_{n}": "AssertionError" if n % 30 == 0 else "passed" for n in range(2000)})
    for suites, content in ((SUITES[:1], many), (SUITES[:1], worse), (SUITES[:1], many)):
        assert await counted.cost(counted.nightly_run(suites, content)) == (second, read(len(suites)))
    await counted.cost(counted.nightly_run())
    assert await counted.cost(counted.nightly_run(content=many)) == (second, read(5))


async def test_results_of_a_pull_request_cost_one_read_of_its_head(counted: Counted) -> None:
    await counted.cost(counted.nightly_run(SUITES[:1]))
    place = counted.place
    place.town.repo.push("main", onto=place.town.repo.branch("nightly"), by="octocat")
    claimed, unclaimed = (place.town.repo.open_pull_request("octocat", title) for title in ("Faster", "Slower"))
    claim: dict[str, Any] = {"pull_request": claimed.number}
    for pull, claims in ((claimed, claim), (unclaimed, {})):
        upload = partial(place.upload, pull.head_sha, {"a.xml": BAD}, suite="arith", **claims)
        lookups = {COMMIT: 1} if claims else {COMMIT: 1, HEADS_PULLS: 1}
        assert await counted.cost(upload) == (TAKEN | ANSWERED | COMPARED | lookups, read(1))


async def test_rewriting_a_check_reads_nothing_from_the_bucket(counted: Counted) -> None:
    await counted.cost(counted.nightly_run())
    sha = counted.place.town.repo.branch("nightly")
    check = counted.place.check(sha)
    assert await counted.cost(lambda: check.rerequest("hubot")) == (ANSWERED, {LIST: SCANS})
    await counted.cost(counted.nightly_run())
    sha = counted.place.town.repo.branch("nightly")
    check = counted.place.check(sha)
    assert await counted.cost(lambda: check.press("hubot", "re-check")) == (ANSWERED, {LIST: SCANS})


async def test_late_results_change_the_check_with_one_write(counted: Counted) -> None:
    await counted.cost(counted.nightly_run(SUITES[:1], BAD))
    sha = counted.place.town.repo.branch("nightly")
    late = await counted.cost(lambda: counted.place.upload(sha, {"b.xml": GOOD}, suite="te"))
    assert late == ({CHECKS: 1, UPDATE: 1}, read(1))


async def test_ingested_runs_cost_only_the_listing(counted: Counted) -> None:
    await counted.cost(counted.nightly_run())
    assert await counted.cost(lambda: None) == ({}, {LIST: SCANS})


async def test_a_waiting_run_is_not_read_until_all_its_files_are_there(counted: Counted) -> None:
    files = {"a.xml": GOOD, "b.xml": BAD}
    folder = ""

    def upload() -> None:
        nonlocal folder
        folder = counted.place.upload(counted.place.nightly_run(), files, without=("b.xml",))

    await counted.cost(upload)
    counted.s3.requests.clear()
    await counted.place.scan(later=600)
    scans = [method for method, path in counted.s3.requests if kind_of(path) == FILE]
    assert scans == ["HEAD", "HEAD"]
    counted.place.bucket.put(f"{folder}b.xml", BAD)
    await counted.place.scan(later=600)
    assert [run.state for run in counted.place.town.bot.services.part(RESULTS).store.read(list_runs)] == ["stored"]


@pytest.mark.parametrize("sha", ["f" * 40, "of main"])
async def test_many_runs_of_an_unauthorized_commit_cost_one_set_of_requests(counted: Counted, sha: str) -> None:
    if sha == "of main":
        sha = counted.place.town.repo.push("main", {"new.txt": "x"}, by="octocat").sha

    def flood() -> None:
        for _ in range(FLOOD):
            counted.place.upload(sha, {"a.xml": GOOD})

    github_requests, s3_requests = await counted.cost(flood)
    assert github_requests == {ON_BRANCH: 1, COMMIT: 1, **({} if sha == "f" * 40 else {HEADS_PULLS: 1})}
    assert s3_requests == {LIST: SCANS, MANIFEST: FLOOD}


@pytest.mark.exhaustive("arith-{n}")
@pytest.mark.parametrize("suite", ["arith", "arith-{n}"])
async def test_many_runs_at_once_cost_one_set_of_reads_and_a_write_at_begin_and_end(
    counted: Counted, suite: str
) -> None:
    await counted.cost(counted.nightly_run(SUITES[:1]))

    def flood() -> None:
        sha = counted.place.nightly_run()
        for n in range(FLOOD):
            counted.place.upload(sha, {"a.xml": GOOD}, suite=suite.format(n=n) if n else "arith")

    github_requests, s3_requests = await counted.cost(flood)
    assert s3_requests == read(FLOOD)
    taken = TAKEN | COMPARED
    assert {route: github_requests.pop(route) for route in taken} == taken
    # The second scan may find that the first one already reported everything.
    assert github_requests.pop(UPDATE, 0) <= 1
    assert github_requests == {CHECKS: 2, CHECK: 1}
