"""Pages without content say what to do next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nightjar_formats.columns.collect import collect

from bot.core.page_paths import history_path, lab_path, run_path, view_path
from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import HEXAGON, NIGHTLY_RUNS, Sent, operators, runtime, sha
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")
HERE, TARGET = "octocat/compiler", "/".join(HEXAGON)
TESTS = tuple(operators()[:6])
GREEN_RUNS = 12
ADD_RESULTS = "adds <code>results</code> to its entry"
UPLOAD = "upload with <code>nightjar-lab upload</code>"


def first_run(store: ResultsStore) -> None:
    """Store one nightly run of one suite without failures."""
    _put(store, Sent(12, HEXAGON, "operators", TESTS))


def green_runs(store: ResultsStore) -> None:
    """Store nightly runs without any failure."""
    for number in range(NIGHTLY_RUNS - GREEN_RUNS, NIGHTLY_RUNS):
        _put(store, Sent(number, HEXAGON, "runtime", tuple(runtime())))


def _put(store: ResultsStore, sent: Sent) -> None:
    store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.path)))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def first(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard after the first nightly run."""
    async with dashboard_site(tmp_path_factory.mktemp("first"), filled=first_run) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def green(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of a repository in which everything passes."""
    async with dashboard_site(tmp_path_factory.mktemp("green"), filled=green_runs) as running:
        yield running


@pytest.mark.parametrize(
    ("view", "says"),
    [
        ("", ADD_RESULTS),
        ("compare", ADD_RESULTS),
        ("flaky", ADD_RESULTS),
        ("slow", ADD_RESULTS),
        ("skipped", ADD_RESULTS),
        ("nightly", "an operator adds <code>nightly</code>"),
    ],
)
async def test_a_repository_without_labs_says_how_to_add_one(site: DashboardSite, view: str, says: str) -> None:
    status, _, page = await site.get(view_path("octocat/docs", view))
    assert (status, says in page) == (200, True)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (view_path("octocat/new"), UPLOAD),
        (view_path("octocat/new", "compare"), UPLOAD),
        (view_path("octocat/new", "flaky"), UPLOAD),
        (view_path("octocat/new", "slow"), UPLOAD),
        (view_path("octocat/new", "skipped"), UPLOAD),
        (view_path("octocat/new", "nightly"), "nightjar timer run nightly --repo octocat/new"),
        (lab_path("octocat/new", "example-lab"), "<code>nightjar-lab upload</code> uploads a run"),
        ("/", "no results yet"),
        ("/", "and upload with <code>nightjar-lab upload</code>"),
    ],
)
async def test_a_repository_whose_labs_sent_nothing_says_how_to_upload(
    site: DashboardSite, path: str, says: str
) -> None:
    status, _, page = await site.get(path)
    assert (status, says in page) == (200, True)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (view_path(HERE), "The next one appears beside it, and shows which failures are new."),
        (view_path(HERE, "compare"), "You can compare commits once its lab has tested another one."),
        (view_path(HERE, "flaky"), "A test appears here when it both passes and fails on one commit"),
        (view_path(HERE, "slow"), "No test takes longer than 10 s"),
        (view_path(HERE, "skipped"), "every test ran in the last week"),
        (run_path(HERE, TARGET, sha(12), "operators-run-1"), "The next nightly run is compared with this one."),
        (history_path(HERE, TESTS[0], TARGET), "This is the first nightly run with this test"),
        (lab_path(HERE, "example-lab"), "None: the bot read all uploads"),
        ("/", "✓ none"),
    ],
)
async def test_pages_after_the_first_nightly_run_say_what_comes_next(
    first: DashboardSite, path: str, says: str
) -> None:
    status, _, page = await first.get(path)
    assert (status, says in page) == (200, True)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (view_path(HERE), "✓"),
        (view_path(HERE, status="failing"), "✓ No test fails in the newest nightly runs."),
        (view_path(HERE, status="failing", q="x"), "No test matches."),
        (view_path(HERE, status="new-failure"), "✓ No test has begun to fail in the newest nightly runs."),
        (view_path(HERE, status="failing"), "Remove the filters"),
        (view_path(HERE, "compare"), "Nothing changed: every test ended as it did before, and none fails."),
        (view_path(HERE, "flaky"), "A test appears here when it both passes and fails on one commit"),
        (view_path(HERE, "slow"), "there is nothing to gain by skipping slow tests"),
        (view_path(HERE, "skipped"), "Nothing is skipped"),
        (run_path(HERE, TARGET, sha(11), "runtime-run-1"), "No test failed"),
        (history_path(HERE, runtime()[0], TARGET), "It passed in every nightly run shown."),
        (lab_path(HERE, "example-lab"), "None: the bot read all uploads"),
        ("/", "✓ none"),
    ],
)
async def test_pages_say_that_everything_is_green(green: DashboardSite, path: str, says: str) -> None:
    status, _, page = await green.get(path)
    assert (status, says in page) == (200, True)


async def test_a_lab_without_uploads_is_not_shown_as_one_whose_uploads_were_read(first: DashboardSite) -> None:
    _, _, page = await first.get(lab_path("octocat/new", "example-lab"))
    assert "The lab uploaded nothing for a nightly commit of the last 30 days." in page
    assert "the bot read all uploads" not in page
    assert "note good" not in page


async def test_the_overview_names_the_targets_that_never_reported(first: DashboardSite) -> None:
    _, page = await first.json("/api/v1/repos")
    answer = "".join(part["text"] for part in page["answer"])
    assert "example-lab/adreno has never reported; hubot-lab/rpi-5@rack:2 has never reported" in answer


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "some may not be listed"),
        ("/labs", "the labs of some"),
        ("/search?q=softmax", "some may not have been searched"),
    ],
)
async def test_pages_say_when_github_has_not_answered_which_repositories_are_public(
    tmp_path: Path, path: str, says: str
) -> None:
    """The first page said that no repository here is public."""
    async with dashboard_site(tmp_path, public=(), may_lack_public=True) as unknown:
        _, _, page = await unknown.get(path)
        assert f"GitHub has not said yet which repositories are public, so {says}" in page
        assert "No repository here is public" not in page
        _, answered = await unknown.json(f"/api/v1{path if path != '/' else '/repos'}")
        assert answered["public_unknown"] is True
    async with dashboard_site(tmp_path, public=()) as known:
        _, _, page = await known.get(path)
        assert "GitHub has not said" not in page
