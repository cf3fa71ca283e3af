"""States and comparisons for tests of the report, each with only what its test needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from nightjar_formats.model import Claims, Counts, Detail, RunKey, SeenTest, Status, TargetKey

from bot.results.compare.diff import Comparison
from bot.results.report.findings import Baseline, ComparedSuite, Findings
from bot.results.state import Run, RunState, SuiteState, TargetState

SHA = "1" * 40
BASE = Baseline("b" * 40, f"https://github.example/octocat/compiler/commit/{'b' * 40}")
ABOUT = TargetKey("octocat/compiler", "example-lab", "hexagon-v73")
AT = 1_795_152_400.0  # 2026-11-20 05:26:40 UTC


def a_run(run_id: str = "night-2", suite: str = "operators", *, reason: str = "", **claims: Any) -> Run:
    key = RunKey(ABOUT.repository, ABOUT.lab, ABOUT.target, SHA, run_id)
    return Run(key, "v1", RunState.STORED, reason, AT, claims=Claims(suite, **claims))


def a_suite(
    failures: Mapping[str, Detail] | None = None, *, name: str = "operators", runs: Iterable[Run] = (), **values: Any
) -> SuiteState:
    """Return a suite in which these tests failed."""
    details = dict(failures or {})
    seen = {test: SeenTest(Status.FAILED, trouble=d.trouble, message=d.message) for test, d in details.items()}
    seen |= values.pop("seen", {"tests/test_ok.py::test_ok": SeenTest(Status.PASSED)})
    return SuiteState(name, tuple(runs) or (a_run(suite=name),), seen, details, **values)


def compared(
    *new_failures: str, baseline: Baseline | None = BASE, confirmed: Iterable[str] = (), **values: Any
) -> ComparedSuite:
    """Return a comparison with these new failures; a number stands for as many tests of that kind."""
    counts = values.pop("counts", Counts(passed=576, failed=len(new_failures), skipped=1267))
    some = {kind: tests if not isinstance(tests, int) else many(kind, tests) for kind, tests in values.items()}
    has = baseline is not None
    failing = (*new_failures, *(some.get("still_failing") or ()), *(some.get("known_flaky") or ()))
    some = {"failing": tuple(sorted(failing))} | some
    return ComparedSuite(
        Comparison(counts, has, new_failures=tuple(sorted(new_failures)), **some), baseline, frozenset(confirmed)
    )


def many(kind: str, number: int) -> Any:
    return True if kind in ("mass", "unsearched") else tuple(f"tests/test_{kind}.py::test_{n}" for n in range(number))


def findings(
    *suites: tuple[SuiteState, ComparedSuite],
    pull_request: int | None = None,
    files: Collection[str] | None = ("tests/test_tile.py",),
    missing_suites: tuple[str, ...] = (),
    **values: Any,
) -> Findings:
    state = TargetState(
        ABOUT, SHA, {suite.suite: suite for suite, _ in suites}, pull_request, missing_suites=missing_suites
    )
    return Findings(state, {suite.suite: comparison for suite, comparison in suites}, files, **values)
