"""Results of CI, for tests of the sections about them."""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.model import SeenTest, Status

from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes

HEAD, BASE, OLDER = "a" * 40, "b" * 40, "c" * 40
AT = 1_795_152_000.0  # 2026-11-20 05:20 UTC
OF_HEAD, WHEN = "`aaaaaaa`", "2026-11-20 05:20 UTC"
PAGE = "https://github.example/octocat/compiler/commit"


def suite(*, complete: bool = True, **tests: str) -> SuiteOutcomes:
    """Return a suite from tests such as `add="passed 1.5"`: a status, and seconds if known."""
    return suite_of(tests, complete=complete)


def suite_of(tests: Mapping[str, str], *, complete: bool = True) -> SuiteOutcomes:
    """Return a suite from a mapping of tests."""
    seen, seconds = {}, {}
    for name, message in tests.items():
        status, _, took = message.partition(" ")
        seen[id_of(name)] = SeenTest(Status(status))
        if took:
            seconds[id_of(name)] = float(took)
    return SuiteOutcomes(seen, seconds, complete)


def id_of(name: str) -> str:
    """Return a test's ID."""
    return f"tests/test_ops.py::test_{name}"


def base(suite_outcomes: SuiteOutcomes, sha: str = BASE) -> BaseSuite:
    """Return a suite at an earlier commit."""
    return BaseSuite(sha, f"{PAGE}/{sha}", suite_outcomes)


def outcomes(
    suites: dict[str, SuiteOutcomes],
    bases: dict[str, BaseSuite] | None = None,
    *,
    vanished: tuple[str, ...] = (),
    troubles: tuple[str, ...] = (),
    has_all_suites: bool = True,
) -> HeadAndBase:
    """Return the results of CI at HEAD."""
    return HeadAndBase(HEAD, AT, suites, bases or {}, vanished, troubles, has_all_suites)


def link(sha: str = BASE) -> str:
    """Return the link that a text uses for a base."""
    return f"[`{sha[:7]}`]({PAGE}/{sha})"
