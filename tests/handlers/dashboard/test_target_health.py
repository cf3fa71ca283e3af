"""A target's state is that of its nightly runs, and every page says the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.columns.collect import collect

from bot.core.page_paths import badge_path, lab_path, view_path
from bot.github.repositories.in_force import REPOSITORY_FILE, StoredFile, ValidFile
from bot.results.compare.ancestors import Relation
from bot.results.compare.target_health import STALE_SECONDS, TargetHealth, TargetReport, is_stale
from bot.results.state import Admission
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from handlers.dashboard.overview.page import RepositoryOverview, TargetOverview, overview_answer
from tests.handlers.dashboard.nightly_runs import (
    ADRENO,
    BOARD,
    HEXAGON,
    NOW,
    TIMEOUT,
    Sent,
    Target,
    committed_at,
    operators,
    runtime,
    sha,
)
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")
HERE = "octocat/compiler"
TESTS, OTHER_TESTS = tuple(runtime()), tuple(operators()[:6])
MANY_TESTS = tuple(operators()[:25])
OLD, NEWEST = 9, 13
DAY = 86_400.0


def one_of_each(store: ResultsStore) -> None:
    """Store a target that missed its nightly runs, one whose device did not answer, and one that began with a failure.

    The first one's lab still tests pull requests.
    """
    _put(store, Sent(OLD, ADRENO, "runtime", TESTS))
    _put(store, Sent(NEWEST, ADRENO, "runtime", TESTS, run_id="pull"), pull_request=42)
    _put(store, Sent(12, HEXAGON, "runtime", TESTS))
    _put(store, Sent(NEWEST, HEXAGON, "runtime", TESTS, failed=dict.fromkeys(TESTS, TIMEOUT)))
    _put(store, Sent(NEWEST, BOARD, "operators", OTHER_TESTS, failed={OTHER_TESTS[0]: "AssertionError: 1 != 2"}))


def _put(store: ResultsStore, sent: Sent, pull_request: int | None = None) -> None:
    admission = Admission(committed_at(sent.number), pull_request is None, pull_request)
    key = sent.run.key if pull_request is None else replace(sent.run.key, sha=sha(99))
    run = replace(sent.run, key=key, admission=admission)
    store.put(run, collect(sent.cases(), lambda case: (case.nodeid, case.path)))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def states(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of those three targets."""
    async with dashboard_site(tmp_path_factory.mktemp("states"), filled=one_of_each) as running:
        yield running


@pytest.mark.parametrize(
    ("target", "state", "badge"),
    [
        (ADRENO, TargetHealth.STALE, "stale"),
        (HEXAGON, TargetHealth.UNUSABLE, "no usable results"),
        (BOARD, TargetHealth.FAILING, "1 failing"),
    ],
)
async def test_overview_and_badge_say_the_same(
    states: DashboardSite, target: Target, state: TargetHealth, badge: str
) -> None:
    _, answered = await states.json("/api/v1/repos")
    (listed,) = [
        candidate
        for repository in answered["repositories"]
        if repository["repository"] == HERE
        for candidate in repository["targets"]
        if (candidate["lab"], candidate["target"]) == target
    ]
    assert listed["state"] == state
    assert badge in (await states.get(badge_path(HERE, "/".join(target))))[2]


async def test_a_pull_requests_run_does_not_hide_missing_nightly_runs(states: DashboardSite) -> None:
    _, _, page = await states.get("/")
    assert "stale, over 36 h" in page
    assert "unknown since" in page
    lab = (await states.json(f"/api/v1/repos/{HERE}/labs/{ADRENO[0]}"))[1]
    (adreno,) = [target for target in lab["targets"] if target["target"] == ADRENO[1]]
    assert (adreno["stale"], adreno["newest"]["sha"]) == (True, sha(OLD))
    assert "stale, over 36 h" in (await states.get(lab_path(HERE, ADRENO[0])))[2]


async def test_a_lab_problem_is_not_green(states: DashboardSite) -> None:
    _, _, page = await states.get("/")
    assert "⊘ no usable results" in page
    assert "✓ none" not in page
    assert "No test fails in the newest nightly runs" not in page


LATE = "example-lab/board has not reported for 28 days"


def report(*, at: int | None = None, suites: int = 0, failing: int = 0, infra: str = "") -> TargetReport:
    """Return the newest run of a target, which arrived so many days after now."""
    return TargetReport(None if at is None else NOW + at * DAY, infra, suites, failing)


@pytest.mark.parametrize(
    ("targets", "answer"),
    [
        ([report(at=0, suites=1)], "No test fails in the newest nightly runs."),
        ([report(at=0, suites=1), report(at=-28, suites=1, failing=2)], f"No test fails on 1 of 2 targets; {LATE}."),
        ([report(at=-28, suites=1, failing=2)], f"{LATE}."),
        ([report(at=0, infra="no device")], "example-lab/board: no usable results in the newest run."),
        ([report(at=-28, infra="no device")], f"{LATE}."),
        ([report()], "No lab has sent results yet."),
    ],
)
async def test_the_overview_says_that_no_test_fails_of_the_targets_of_which_it_is_known(
    targets: list[TargetReport], answer: str
) -> None:
    overviews = [
        TargetOverview(
            lab="example-lab",
            target="board",
            state=target.health(NOW),
            received_at=None if target.received_at is None else datetime.fromtimestamp(target.received_at, UTC),
            stale=is_stale(target.received_at, NOW),
            infra=target.infra,
            sha=None,
            suites=target.suites,
            failing=target.failing,
            known=0,
            failures=[],
        )
        for target in targets
    ]
    repository = RepositoryOverview(
        repository=HERE,
        takes_results=True,
        targets=overviews,
        more_targets=0,
        failing_now=[],
        nightly=None,
        last_good=None,
    )
    assert "".join(part.text for part in overview_answer([repository], NOW)) == answer


async def test_failures_of_a_first_run_are_not_still_failing(states: DashboardSite) -> None:
    _, grid = await states.json(f"/api/v1/repos/{HERE}/grid?target={'/'.join(BOARD)}")
    assert grid["rows"][0]["cells"][0]["state"] == "failing-uncompared"
    assert (
        "".join(part["text"] for part in grid["answer"]) == "1 failure on 1 of 1 suite, with nothing to compare with."
    )
    _, found = await states.json(f"/api/v1/repos/{HERE}/grid?status=failing")
    assert [row["name"] for row in found["rows"]] == [OTHER_TESTS[0]]
    assert (await states.json(f"/api/v1/repos/{HERE}/grid?status=still-failing"))[1]["rows"] == []
    assert "nothing to compare with" in (await states.get(view_path(HERE)))[2]


MOMENTS = st.one_of(st.none(), st.floats(min_value=0, max_value=NOW))


@given(MOMENTS, st.sampled_from(["", "the device did not answer"]), st.integers(0, 3), st.integers(0, 3))
async def test_only_recent_usable_results_without_failures_pass(
    received_at: float | None, infra: str, suites: int, failing: int
) -> None:
    health = TargetReport(received_at, infra, suites, failing).health(NOW)
    good = received_at is not None and NOW - received_at <= STALE_SECONDS and suites and not infra and not failing
    assert (health is TargetHealth.PASSING) == bool(good)


KNOWN_CONFIG = CONFIG.replace(
    "\n  octocat/secret:\n",
    f"""
    quarantine:
      - test: {TESTS[1]}
        owner: octocat
        reason: Times out on old firmware
        issue: https://github.com/octocat/compiler/issues/12
        until: "2030-01-01"
    owners:
      - {{test: "*", owners: [hubot, octo-org/compiler-team]}}
      - {{test: "{TESTS[0]}", owners: [octocat]}}
  octocat/secret:
""",
)


def known_failures(store: ResultsStore) -> None:
    """Store a target whose newest run has a known flaky failure, a quarantined one, and an unusable suite."""
    _put(store, Sent(11, HEXAGON, "operators", MANY_TESTS))
    for number in (10, 11, 12):
        _put(store, Sent(number, HEXAGON, "runtime", TESTS, flaky=frozenset(TESTS[:1] if number == 11 else ())))
    _put(store, Sent(NEWEST, HEXAGON, "runtime", TESTS, failed=dict.fromkeys(TESTS[:2], TIMEOUT)))
    _put(store, Sent(NEWEST, HEXAGON, "operators", MANY_TESTS, failed=dict.fromkeys(MANY_TESTS, TIMEOUT)))
    relations = [
        Relation(sha(number), sha(earlier), is_ancestor=True, url=f"https://github.com/{HERE}/commit/{sha(earlier)}")
        for number in range(10, NEWEST + 1)
        for earlier in range(10, number)
    ]
    store.write(learn, HERE, relations)


async def test_no_page_shows_an_explained_failure_as_a_failure_of_the_code(tmp_path: Path) -> None:
    target = "/".join(HEXAGON)
    async with dashboard_site(tmp_path, config=KNOWN_CONFIG, filled=known_failures) as known:
        (row,) = (await known.json(f"/api/v1/repos/{HERE}/grid?target={target}&suite=runtime&folder={TESTS[0]}"))[1][
            "rows"
        ]
        assert [cell["state"] for cell in row["cells"]] == ["known-failure", "passed", "flaky", "passed"]
        suites = (await known.json(f"/api/v1/repos/{HERE}/grid?target={target}"))[1]["rows"]
        assert [(row["name"], row["cells"][0]["state"], row["cells"][0]["known"]) for row in suites] == [
            ("operators", "infra", 0),
            ("runtime", "known-failure", 2),
        ]
        _, run = await known.json(f"/api/v1/repos/{HERE}/runs/{target}/{sha(NEWEST)}/runtime-run-1")
        operators_suite, runtime_suite = run["suites"]
        counts = ("new_failures", "still_failing", "unjudged", "known_flaky", "quarantined")
        assert [runtime_suite[name] for name in counts] == [0, 0, 0, 1, 1]
        assert [operators_suite[name] for name in counts] == [0, 0, 0, 0, 0]
        assert run["check"]["title"].startswith("1 failure quarantined, 1 known flaky")
        owners = {test["test"]: test["owners"] for cause in run["causes"] for test in cause["tests"]}
        assert (owners[TESTS[0]], owners[TESTS[1]]) == (["octocat"], ["hubot", "octo-org/compiler-team"])
        kinds = {test["test"]: test["kind"] for cause in run["causes"] for test in cause["tests"]}
        assert (kinds[TESTS[0]], kinds[TESTS[1]]) == ("known flaky", "quarantined")
        assert {kind for test, kind in kinds.items() if test in MANY_TESTS} == {"unusable run"}
        page = (await known.get(f"/r/{HERE}/runs/{target}/{sha(NEWEST)}/runtime-run-1"))[2]
        assert "■" not in page
        assert "owners: hubot, octo-org/compiler-team" in page
        assert "⊘ 25 failures of an unusable run" in page
        assert "<p>Owners: octocat</p>" in (await known.get(f"/r/{HERE}/tests?id={TESTS[0]}"))[2]
        (history,) = (await known.json(f"/api/v1/repos/{HERE}/tests?id={TESTS[1]}"))[1]["targets"]
        assert history["runs"][0]["cell"]["state"] == "known-failure"
        targets = (await known.json("/api/v1/repos"))[1]["repositories"][0]["targets"]
        (overview,) = [listed for listed in targets if listed["target"] == HEXAGON[1]]
        assert (overview["failing"], overview["known"], overview["failures"]) == (0, 2, [])
        assert "failing" not in (await known.get(badge_path(HERE, target)))[2]
        listed = (await known.json(f"/api/v1/repos/{HERE}/grid?status=known-failure"))[1]["rows"]
        assert [row["name"] for row in listed] == sorted(TESTS[:2])
        assert (await known.json(f"/api/v1/repos/{HERE}/grid?status=failing"))[1]["rows"] == []


async def test_the_first_page_heeds_the_repositorys_own_file(tmp_path: Path) -> None:
    item = KNOWN_CONFIG.partition("quarantine:\n")[2].partition("    owners:")[0].replace(TESTS[1], OTHER_TESTS[1])
    text = f'quarantine:\n{item}owners: [{{test: "{OTHER_TESTS[0]}", owners: ["@hubot"]}}]\n'
    config = CONFIG.replace("\n  octocat/secret:\n", "\n    repository_file: true\n  octocat/secret:\n")

    def two_failures(store: ResultsStore) -> None:
        _put(store, Sent(NEWEST - 1, BOARD, "operators", OTHER_TESTS))
        _put(store, Sent(NEWEST, BOARD, "operators", OTHER_TESTS, failed=dict.fromkeys(OTHER_TESTS[:2], "1 != 2")))

    async with dashboard_site(tmp_path, config=config, filled=two_failures) as site:
        await site.records.put(REPOSITORY_FILE.of(HERE), StoredFile(good=ValidFile("a", "b", text)))
        (overview,) = (await site.json("/api/v1/repos"))[1]["repositories"][:1]
        (board,) = [target for target in overview["targets"] if target["target"] == BOARD[1]]
        assert (board["failing"], board["known"]) == (1, 1)
        assert [(test["test"], test["owners"]) for test in overview["failing_now"]] == [(OTHER_TESTS[0], ["@hubot"])]
        assert "owners: @hubot" in (await site.get("/"))[2]
