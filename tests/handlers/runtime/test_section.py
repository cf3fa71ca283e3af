"""Which suites became slower or faster, which new tests are slow, and the text about them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.config.types import seconds
from bot.github.text.sticky import SIZE_LIMIT
from handlers.ci_reports.outcomes import HeadAndBase, SuiteOutcomes
from handlers.runtime.config import Runtime
from handlers.runtime.section import (
    NewTest,
    RuntimeChange,
    changed_suites,
    describe_runtimes,
    slow_new_tests,
    slower_tests,
)
from handlers.runtime.texts import RUNTIMES_UNSEARCHED
from tests.gfm import Page, rendered
from tests.handlers.ci_reports.reported import OF_HEAD, WHEN, base, id_of, link, outcomes, suite, suite_of

CONFIG = Runtime(lab="ci", target="linux")
HEADING = f"**Runtime of tests** at {OF_HEAD} ({WHEN}):"


def ops(head: SuiteOutcomes, base_outcomes: SuiteOutcomes) -> HeadAndBase:
    return outcomes({"ops": head}, {"ops": base(base_outcomes)})


CHANGES: dict[str, tuple[SuiteOutcomes, SuiteOutcomes, list[RuntimeChange]]] = {
    "120 to 200 minutes": (
        suite(add="passed 12000"),
        suite(add="passed 7200"),
        [RuntimeChange("ops", 7200.0, 12000.0)],
    ),
    "120 to 130 minutes": (suite(add="passed 7800"), suite(add="passed 7200"), []),
    "exactly the threshold": (suite(add="passed 9360"), suite(add="passed 7200"), []),
    "faster": (suite(add="passed 100"), suite(add="passed 200"), [RuntimeChange("ops", 200.0, 100.0)]),
    "a large share of a short time": (suite(add="passed 30"), suite(add="passed 1"), []),
    "the sum counts": (
        suite(add="passed 100", mul="passed 100"),
        suite(add="passed 90", div="passed 10"),
        [RuntimeChange("ops", 100.0, 200.0)],
    ),
    "incomplete results": (suite(add="passed 100", complete=False), suite(add="passed 200"), []),
    "an incomplete base": (suite(add="passed 200"), suite(add="passed 100", complete=False), []),
    "a base without durations": (suite(add="passed 200"), suite(add="passed"), []),
}


@pytest.mark.parametrize("case", CHANGES)
def test_which_totals_differ_much(case: str) -> None:
    head, base_outcomes, expected = CHANGES[case]
    assert changed_suites(ops(head, base_outcomes), 30) == expected


def test_a_suite_missing_at_the_base_is_not_compared() -> None:
    """TVM crashed with a KeyError on a suite that `main` did not have."""
    assert changed_suites(outcomes({"ops": suite(add="passed 9000")}), 30) == []
    assert slow_new_tests(outcomes({"ops": suite(add="passed 9000")}), 1.0) == []


def test_the_suite_with_the_largest_change_is_first() -> None:
    suites = {"a": suite(add="passed 200"), "b": suite(add="passed 500"), "c": suite(add="passed 10")}
    bases = {name: base(suite(add="passed 100")) for name in suites}
    assert [change.suite for change in changed_suites(outcomes(suites, bases), 30)] == ["b", "a", "c"]


NEW: dict[str, tuple[SuiteOutcomes, SuiteOutcomes, list[NewTest]]] = {
    "slow tests, slowest first": (
        suite(a="passed 10", b="failed 60", c="passed 9", d="passed"),
        suite(),
        [NewTest("ops", id_of("b"), 60.0), NewTest("ops", id_of("a"), 10.0)],
    ),
    "an existing test": (suite(a="passed 60"), suite(a="passed 1"), []),
    "a test that was skipped": (suite(a="passed 60"), suite(a="skipped"), []),
    "a test whose file was skipped": (
        suite(a="passed 60"),
        SuiteOutcomes({"tests/test_ops.py": SeenTest(Status.SKIPPED)}),
        [],
    ),
}


@pytest.mark.parametrize("case", NEW)
def test_which_new_tests_are_slow(case: str) -> None:
    head, base_outcomes, expected = NEW[case]
    assert slow_new_tests(ops(head, base_outcomes), 10.0) == expected


def test_renamed_tests_are_not_new() -> None:
    names = [f"case_{number}" for number in range(20)]
    base_outcomes = SuiteOutcomes({f"tests/old/test_ops.py::test_{name}": SeenTest(Status.PASSED) for name in names})
    moved = [f"tests/new/test_ops.py::test_{name}" for name in names]
    head = SuiteOutcomes({test: SeenTest(Status.PASSED) for test in moved}, dict.fromkeys(moved, 60.0))
    assert slow_new_tests(ops(head, base_outcomes), 10.0) == []


TEXTS: dict[str, tuple[HeadAndBase, str]] = {
    "no large difference": (ops(suite(add="passed 100"), suite(add="passed 100")), ""),
    "nothing to compare with": (outcomes({"ops": suite(add="passed 9000")}, troubles=("There is no base.",)), ""),
    "unreadable results": (
        outcomes({}, troubles=("The run of `CI` has no artifact that matches `test-*`.",)),
        f"{HEADING}\n\n- The run of `CI` has no artifact that matches `test-*`.",
    ),
    "slower": (
        ops(suite(add="passed 12000", mul="passed"), suite(add="passed 7200")),
        f"{HEADING}\n\n- `ops`: +66.7 % (120.0 min → 200.0 min, 1 → 2 tests), compared with {link()}."
        " This adds 80.0 min to each run.",
    ),
    "very much slower": (
        ops(suite(add="passed 6000"), suite(add="passed 60")),
        f"{HEADING}\n\n- `ops`: 100 times as long (60.0 s → 100.0 min, 1 → 1 test), compared with {link()}."
        f" This adds 99.0 min to each run.\n\nTests that became slower:\n- `{id_of('add')}`, 60.0 s → 100.0 min",
    ),
    "faster": (
        ops(suite(add="passed 30"), suite(add="passed 90")),
        f"{HEADING}\n\n- `ops`: -66.7 % (90.0 s → 30.0 s, 1 → 1 test), compared with {link()}.",
    ),
    "a slow new test": (
        ops(suite(add="passed 100", mul="passed 25.5"), suite(add="passed 100")),
        f"{HEADING}\n\nSlow new tests:\n- `{id_of('mul')}`, 25.5 s",
    ),
    "both, in several suites": (
        outcomes(
            {"ops": suite(add="passed 200"), "te": suite(add="passed 1", mul="passed 120")},
            {"ops": base(suite(add="passed 100")), "te": base(suite(add="passed 100"))},
        ),
        f"{HEADING}\n\n- `ops`: +100.0 % (1.7 min → 3.3 min, 1 → 1 test), compared with {link()}."
        f" This adds 1.7 min to each run.\n\n"
        f"Tests that became slower:\n- `ops`: `{id_of('add')}`, 1.7 min → 3.3 min\n\n"
        f"Slow new tests:\n- `te`: `{id_of('mul')}`, 2.0 min",
    ),
}


SPREAD = (100.0, 130.0, 110.0, 120.0)


@pytest.mark.parametrize(
    ("head", "totals", "is_reported"),
    [
        (159.0, SPREAD, False),
        (160.0, SPREAD, True),
        (71.0, SPREAD, False),
        (70.0, SPREAD, True),
        (145.0, (114.0, 115.0, 115.0, 114.0), True),
        (145.0, SPREAD[:3], False),
        (159.0, SPREAD[:3], True),
    ],
)
def test_a_total_is_compared_with_the_spread_of_the_bases_last_runs(
    head: float, totals: tuple[float, ...], is_reported: bool
) -> None:
    base_suite = replace(base(suite(add="passed 115")), totals=totals)
    tested = outcomes({"ops": suite(add=f"passed {head}")}, {"ops": base_suite})
    assert bool(changed_suites(tested, 30)) is is_reported


def test_one_test_that_became_slower_is_named_and_many_small_growths_are_summed() -> None:
    tests = {f"t{number}": "passed 10" for number in range(60)}
    slower = dict.fromkeys(tests, "passed 19") | {"conv": "passed 600"}
    longest = {id_of("conv"): 62.0}
    base_suite = replace(base(suite_of(tests | {"conv": "passed 60"})), totals=(650.0, 660.0, 655.0, 665.0))
    tested = outcomes({"ops": suite_of(slower)}, {"ops": replace(base_suite, longest=longest)})
    tested = replace(tested, runs_per_day=30.0)
    text = describe_runtimes(tested, 1_000, seconds(CONFIG.slow))
    assert "(11.0 min → 29.0 min, 61 → 61 tests)" in text
    assert "This adds 18.0 min to each run, about 540.0 min a day at 30 runs a day." in text
    assert f"Tests that became slower:\n- `{id_of('conv')}`, 62.0 s → 10.0 min" in text
    assert text.count("→ 10.0 min") == 1
    # Within what the test took in the base's last runs, nothing is reported.
    noisy = outcomes({"ops": suite_of(slower)}, {"ops": replace(base_suite, longest={id_of("conv"): 320.0})})
    assert slower_tests(noisy) == []


@pytest.mark.parametrize("case", TEXTS)
def test_the_text_of_the_section(case: str) -> None:
    tested, text = TEXTS[case]
    assert describe_runtimes(tested, CONFIG.change, seconds(CONFIG.slow)) == text


def test_of_many_slow_tests_the_slowest_are_listed() -> None:
    new = {f"t{number:03}": f"passed {number + 10}" for number in range(100)}
    text = describe_runtimes(ops(suite_of(new), suite()), CONFIG.change, seconds(CONFIG.slow))
    assert text.count("- `tests/") == 10
    assert f"- `{id_of('t099')}`, 1.8 min\n" in text
    assert text.endswith("- and 90 more")


def test_names_of_tests_and_suites_have_no_effect() -> None:
    hostile = ["@hubot <b>", "x</details>|@octocat", "`` ` ``", "|" * 3_000, "<!-- nightjar:end:runtime -->"]
    heads = {
        name: SuiteOutcomes(dict.fromkeys(hostile, SeenTest(Status.PASSED)), dict.fromkeys(hostile, 90.0))
        for name in hostile
    }
    bases = {name: base(SuiteOutcomes({"old": SeenTest(Status.PASSED)}, {"old": 1.0})) for name in hostile}
    text = describe_runtimes(outcomes(heads, bases), CONFIG.change, seconds(CONFIG.slow))
    page = Page(rendered(text, raw_html=True))
    assert page.tags == {"p", "strong", "code", "ul", "li", "a"}
    assert "@" not in page.speech
    assert len(text) < SIZE_LIMIT / 3


def test_the_section_says_when_renamed_tests_were_not_searched_for() -> None:
    old, new = ({f"{name}_{number}": "passed 5" for number in range(12)} for name in ("old", "new"))
    tested = ops(suite_of(new), suite_of(old))
    assert describe_runtimes(tested, 30, 1.0) == ""
    assert describe_runtimes(tested, 30, 1.0, most_steps=10).endswith(RUNTIMES_UNSEARCHED.format(most=10))
