"""The number of statements of a page does not depend on the number of targets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import NOW
from tests.handlers.dashboard.site import dashboard_site
from tests.results.plans import plans_seen
from tests.results.uploads import LAB, REPOSITORY, SUITE, Upload, sha

DAY = 86_400.0
COMMITS, MANY = 6, 7
HERE = f"/r/{REPOSITORY}"
BROKEN = f"{SUITE}/test_broken.py::test_one"
"""Fails on all targets but one since the last commit but one."""
RESTLESS = f"{SUITE}/test_restless.py::test_one"
PAGES = {
    "overview": "/",
    "grid": HERE,
    "new failures": f"{HERE}?status=new-failure",
    "failures of a simulator": f"{HERE}?status=fails-on-simulator-only",
    "commit": f"{HERE}/commits/{sha(COMMITS)}",
    "part of names": f"{HERE}?q=restless",
    "lab": f"{HERE}/labs/{LAB}",
    "labs": f"{HERE}/labs",
    "all labs": "/labs",
    "search": f"/search?q={sha(3)[:7]}",
    "flaky": f"{HERE}/flaky",
    "slow": f"{HERE}/slow",
    "skipped": f"{HERE}/skipped",
    "compare": f"{HERE}/compare?base={sha(3)}&head={sha(COMMITS)}",
    "test": f"{HERE}/tests?id={RESTLESS}",
    "failing test": f"{HERE}/tests?id={BROKEN}",
    "feed": f"{HERE}/regressions.atom",
}


DEVICE = "board-0"


def targets_of(count: int) -> list[str]:
    return [f"board-{number}" for number in range(count)]


def fill_targets(store: ResultsStore, count: int) -> None:
    """Store nightly runs of each target, with one test that passes and fails in turn and one flaky test."""
    for commit in range(1, COMMITS + 1):
        for target in targets_of(count):
            tests = {
                f"{SUITE}/test_steady.py::test_one": "passed",
                BROKEN: "passed" if commit < COMMITS - 1 or target == DEVICE else "failed",
                RESTLESS: "failed" if commit % 2 else "passed",
                f"{SUITE}/test_restless.py::test_{target}": "passed" if commit % 2 else "failed",
                f"{SUITE}/test_skipped.py::test_one": "skipped",
            }
            uploaded_at = NOW - (COMMITS - commit + 1) * DAY
            upload = Upload(
                commit, tests, target=target, at=uploaded_at, flaky=frozenset({RESTLESS} if commit == 3 else ())
            )
            store.put(upload.run, upload.columns)


async def statements_with(folder: Path, count: int) -> Mapping[str, int]:
    """Return how many statements each page runs on a store with this many targets; all others simulate the first."""
    simulators = targets_of(count)[1:]
    settings = [f"{DEVICE}: {{}}", *(f"{name}: {{simulates: {LAB}/{DEVICE}}}" for name in simulators)]
    config = (
        f"repositories:\n  {REPOSITORY}:\n    results:\n      bucket: device-results\n      labs:\n"
        f"        {LAB}: {{targets: {{{', '.join(settings)}}}}}\n"
    )
    statements = {}
    async with dashboard_site(folder, config=config, filled=lambda store: fill_targets(store, count)) as site:
        for name, address in PAGES.items():
            with plans_seen() as plans:
                status, _, text = await site.get(address)
            assert status == 200, (name, text)
            assert plans.scans == [], name
            statements[name] = plans.statements
    return statements


async def test_the_number_of_statements_does_not_depend_on_the_number_of_targets(tmp_path: Path) -> None:
    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    few, many = await statements_with(tmp_path / "few", 2), await statements_with(tmp_path / "many", MANY)
    assert {name: count for name, count in many.items() if count > few[name]} == {}
