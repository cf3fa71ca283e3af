"""The content of a check run: its title, its conclusion with the reason, its tables, its buttons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nightjar_formats.model import Case, Counts, Detail, SeenTest, Status, Trouble
from nightjar_formats.runs.identity import Resolver

from bot.github.check_runs import TEXT_LIMIT, size
from bot.results.report.check_run import results_report
from bot.results.report.findings import Baseline, ComparedSuite, Findings, IgnoredFailures
from bot.results.report.texts import ADVISORY
from bot.results.state import SuiteState
from tests.results.reported import BASE, SHA, a_run, a_suite, compared, findings, many

TILE, MATMUL = "tests/test_tile.py::test_tile[llvm]", "tests/test_matmul.py::test_matmul"
BOTH = {TILE: Detail(message="assert 1 == 2"), MATMUL: Detail(message="wrong\nby far")}
INFRA = ComparedSuite(compared().comparison, BASE)
IGNORED = IgnoredFailures("hubot", "c" * 40, "2026-11-20T05:10:00Z", frozenset({("operators", TILE)}))
ALL_IGNORED = replace(IGNORED, tests=frozenset({("operators", TILE), ("operators", MATMUL)}))
STILL = many("still_failing", 24)
SAYS_NOTHING = "41 of 41 files could not be collected"


def both(**values: object) -> Findings:
    return findings((a_suite(BOTH), compared(*BOTH, fixed=1)), **values)  # type: ignore[arg-type]


def incomplete() -> Findings:
    suite = a_suite(shard_total=4, missing_shards=(3,))
    return findings((suite, compared(fixed=1)))


def without_baseline(failing: int) -> Findings:
    counts = Counts(passed=576, failed=failing)
    return findings((a_suite(), compared(baseline=None, failing=failing, counts=counts)))


def skipping(tests: int) -> SuiteState:
    return a_suite(seen={f"tests/test_device.py::test_{n}": SeenTest(Status.SKIPPED) for n in range(tests)})


def broken_lab() -> Findings:
    return findings((a_suite(), compared(infra=SAYS_NOTHING, counts=Counts(errored=41))))


def one_broken_suite() -> Findings:
    infra = compared(infra=SAYS_NOTHING, counts=Counts(errored=41))
    return findings((a_suite(BOTH), compared(*BOTH)), (a_suite(name="codegen"), infra))


@pytest.mark.parametrize(
    ("reported", "title", "conclusion"),
    [
        (both(), "2 new failures, 1 fixed · 576 passed, 1,267 skipped", "neutral"),
        (findings((a_suite(), compared())), "Nothing changed · 576 passed, 1,267 skipped", "success"),
        (
            findings((a_suite(), compared(still_failing=5, fixed=2))),
            "2 fixed, 5 still failing · 576 passed, 1,267 skipped",
            "success",
        ),
        (
            findings((a_suite(), compared(still_failing=5))),
            "Nothing changed, 5 still failing · 576 passed, 1,267 skipped",
            "success",
        ),
        (
            findings((a_suite(), compared(removed=3, newly_skipped=2, new=1200, precluded=7))),
            "2 newly skipped, 3 removed, 7 did not run, 1,200 new tests · 576 passed, 1,267 skipped",
            "success",
        ),
        (
            findings((a_suite(), compared(flaky=9, newly_flaky=2, fixed=1))),
            "1 fixed, 2 newly flaky · 576 passed, 1,267 skipped",
            "success",
        ),
        (
            findings((a_suite(), compared(still_failing=5, confirmed=STILL[3:4]))),
            "1 failure confirmed, 4 still failing · 576 passed, 1,267 skipped",
            "success",
        ),
        (findings((skipping(5), compared(baseline=None))), "Nothing was tested: 5 skipped", "neutral"),
        (findings((skipping(2), compared(newly_skipped=2))), "Nothing was tested: 2 skipped", "neutral"),
        (
            findings((skipping(5), compared(baseline=None)), (a_suite(name="codegen"), compared())),
            "Nothing changed · 1,152 passed, 2,534 skipped",
            "success",
        ),
        (incomplete(), "Incomplete: 3 of 4 shards of operators · 1 fixed · 576 passed, 1,267 skipped", "neutral"),
        (without_baseline(0), "First run, nothing to compare with · 576 passed", "success"),
        (without_baseline(3), "First run, nothing to compare with, 3 failing · 576 passed", "neutral"),
        (broken_lab(), f"Lab setup problem, no usable results: {SAYS_NOTHING}", "neutral"),
        (
            one_broken_suite(),
            "2 new failures · no usable results from codegen · 576 passed, 1,267 skipped",
            "neutral",
        ),
        (
            both(ignored=IGNORED),
            "1 new failure, 1 new failure ignored by hubot, 1 fixed · 576 passed, 1,267 skipped",
            "neutral",
        ),
        (
            findings((a_suite(BOTH), compared(TILE)), ignored=IGNORED),
            "1 new failure ignored by hubot · 576 passed, 1,267 skipped",
            "success",
        ),
        (findings(), "", "neutral"),
    ],
)
def test_the_title_says_what_changed_and_the_conclusion_is_never_failure(
    reported: Findings, title: str, conclusion: str
) -> None:
    content = results_report(reported)
    assert (content.title, content.conclusion) == (title or "No usable results", conclusion)


@pytest.mark.parametrize(
    ("reported", "reason"),
    [
        (both(), "**Neutral**: 2 new failures. Neutral means: please take a look."),
        (findings((a_suite(), compared())), "**Success**: no test fails."),
        (
            findings((a_suite(), compared(still_failing=1))),
            "**Success**: no new failures.",
        ),
        (incomplete(), "**Neutral**: the results are incomplete."),
        (
            findings((skipping(5), compared(baseline=None))),
            "**Neutral**: all 5 tests were skipped.",
        ),
        (broken_lab(), "**Neutral**: no usable results from `operators`."),
        (
            without_baseline(1),
            "**Neutral**: 1 test fails, with no earlier run to compare with.",
        ),
        (
            one_broken_suite(),
            "**Neutral**: 2 new failures; no usable results from `codegen`.",
        ),
        (
            findings((a_suite(BOTH), compared(TILE)), ignored=IGNORED, pull_request=42),
            "**Success**: 1 new failure was ignored for `#42` by `hubot`; no other new failures.",
        ),
        (
            both(ignored=ALL_IGNORED, pull_request=42),
            "**Success**: 2 new failures were ignored for `#42` by `hubot`; no other new failures.",
        ),
    ],
)
def test_the_summary_gives_the_reason_in_one_sentence(reported: Findings, reason: str) -> None:
    summary = results_report(reported).summary
    assert f"\n\n{reason}" in f"\n\n{summary}"
    assert summary.endswith(ADVISORY)


def test_the_baseline_is_named_by_sha_and_link() -> None:
    link = f"[`bbbbbbbbbb`]({BASE.url})"
    assert f"Compared with {link}, the nearest earlier commit" in results_report(both()).summary
    two = findings((a_suite(), compared()), (a_suite(name="codegen"), compared(baseline=None)))
    summary = results_report(two).summary
    assert f"Compared with {link}, " in summary
    assert "There are no earlier results for `codegen`." in summary
    assert f"| {link} |" in summary
    assert "| nothing earlier |" in summary


def test_several_baselines_of_suites_are_in_the_table() -> None:
    other_baseline = Baseline("d" * 40, "https://github.example/d")
    reported = findings((a_suite(), compared()), (a_suite(name="codegen"), compared(baseline=other_baseline)))
    summary = results_report(reported).summary
    assert "Each suite is compared with the nearest earlier commit" in summary
    assert "| [`dddddddddd`](https://github.example/d) |" in summary


def test_without_a_baseline_failures_are_listed_separately() -> None:
    content = results_report(without_baseline(3))
    assert "There are no earlier complete results to compare with" in content.summary
    assert "### Failing, with no earlier run to compare with: 3" in content.summary
    assert "New failures" not in content.summary


def test_a_text_that_only_repeats_the_message_is_shown_once() -> None:
    tests = {"a": Detail(message="worker died", text="worker died\n"), "b": Detail(message="x", text="trace\nx")}
    text = results_report(findings((a_suite(tests), compared(*tests)))).text
    assert "Output of `b`:\n\n```text\ntrace\nx\n```" in text
    assert "Output of `a`" not in text


def test_tables_have_ten_rows_and_then_count_the_rest() -> None:
    text = results_report(findings((a_suite(), compared(fixed=24, removed=10)))).text
    assert text.count("tests/test_fixed.py") == 10
    assert "### Fixed: 24" in text
    assert "| and 14 more |" in text
    assert text.count("tests/test_removed.py") == 10
    assert text.count("more |") == 1


def test_tests_that_still_fail_are_listed_with_those_confirmed_by_this_run_first() -> None:
    text = results_report(findings((a_suite(), compared(still_failing=24, confirmed=[STILL[23]])))).text
    rows = [line for line in text.splitlines() if "test_still_failing" in line]
    assert (len(rows), rows[0]) == (10, f"| `{STILL[23]}` | by this run |  |")
    assert "\n\n| test | confirmed | message |\n| --- |" in text
    assert rows[1] == f"| `{STILL[0]}` |  |  |"
    assert "### Still failing: 24" in text
    assert "| and 14 more |" in text
    assert "A failure is confirmed when two runs in a row have it" in text


def test_without_confirmations_the_list_does_not_mention_them() -> None:
    text = results_report(findings((a_suite(BOTH), compared(still_failing=(TILE,))))).text
    assert f"### Still failing: 1\n\n| test | message |\n| --- | --- |\n| `{TILE}` | `assert 1 == 2` |" in text
    assert "confirmed" not in text


def test_new_failures_come_with_their_class_and_the_first_line_of_their_text() -> None:
    summary = results_report(both()).summary
    assert f"| `{TILE}` | failed | `assert 1 == 2` |" in summary
    assert f"| `{MATMUL}` | failed | `wrong` |" in summary


def test_failures_that_say_the_most_about_the_code_come_first() -> None:
    troubles = {
        "e": Trouble.COLLECTION,
        "d": Trouble.SETUP,
        "c": Trouble.TIMEOUT,
        "b": Trouble.OUTPUT,
        "a": Trouble.CRASH,
        "f": Trouble.INTERNAL,
    }
    tests = {test: Detail(trouble, "why") for test, trouble in troubles.items()} | {"b2": Detail()}
    reported = findings((a_suite(tests), compared(*tests)))
    assert [failure.test for failure in reported.new_failures] == ["a", "b", "b2", "c", "d", "e", "f"]


def test_several_suites_of_a_lab_share_one_table_of_new_failures_with_their_suite() -> None:
    reported = findings((a_suite(BOTH), compared(*BOTH)), (a_suite(BOTH, name="codegen"), compared(MATMUL)))
    summary = results_report(reported).summary
    assert "### New failures: 3" in summary
    assert f"| `{MATMUL}` | `codegen` | failed | `wrong` |" in summary


def test_the_command_to_reproduce_is_filled_in_and_quoted() -> None:
    nasty = "tests/test_tile.py::test_tile[a b;$(rm -rf ~)]"
    reported = findings((a_suite({nasty: Detail()}), compared(nasty)), reproduce="on {target} pytest {test} # {sha}")
    assert f"on hexagon-v73 pytest '{nasty}' # {SHA}" in results_report(reported).summary


def test_a_template_that_does_not_name_the_test_gives_one_command() -> None:
    reported = both(reproduce="run {suite} {name} {path}")
    assert results_report(reported).summary.count("\nrun operators") == 2
    assert results_report(both(reproduce="run {suite}")).summary.count("\nrun operators") == 1
    of_suite = both(reproduce="pytest {test}", reproduce_suites={"operators": "repro {suite}"})
    assert results_report(of_suite).summary.count("\nrepro operators") == 1
    assert "How to reproduce" not in results_report(both(reproduce_suites={"others": "repro {test}"})).summary
    assert "How to reproduce" not in results_report(both()).summary


def test_commands_for_the_first_ten_failures_say_of_how_many() -> None:
    def heading(count: int) -> str:
        tests = [f"t{number:02}" for number in range(count)]
        suite = (a_suite({test: Detail() for test in tests}), compared(*tests))
        summary = results_report(findings(suite, reproduce="pytest {test}")).summary
        assert summary.count("\npytest ") == min(count, 10)
        return summary.partition("### How to reproduce\n\n")[2].partition("\n")[0]

    assert heading(11) == "The first 10 of 11 new failures."
    assert heading(10) == "```text"


def test_a_test_with_a_shortened_id_gets_no_command() -> None:
    long, _ = Resolver(None).resolve(Case(f"test_tile[{'x' * 2_000}]", Status.FAILED, classname="a.b"))
    reported = findings((a_suite({long: Detail()}), compared(long)), reproduce="pytest {test}")
    assert "How to reproduce" not in results_report(reported).summary


def test_a_test_name_is_never_taken_for_an_option() -> None:
    reported = findings((a_suite({"--pdb\n-x": Detail()}), compared("--pdb\n-x")), reproduce="pytest {test}")
    assert "pytest './--pdb -x'" in results_report(reported).summary


@pytest.mark.parametrize(
    ("reported", "buttons"),
    [
        (both(pull_request=7), ["re-check", "ignore"]),
        (both(), ["re-check"]),
        (findings((a_suite(), compared()), pull_request=7), ["re-check"]),
        (findings((a_suite(BOTH), compared(TILE)), ignored=IGNORED, pull_request=7), ["re-check"]),
    ],
)
def test_new_failures_of_a_pull_request_can_be_ignored(reported: Findings, buttons: list[str]) -> None:
    actions = results_report(reported).actions
    assert [action.identifier for action in actions] == buttons
    for action in actions:
        assert (len(action.label) <= 20, len(action.description) <= 40, len(action.identifier) <= 20) == (True,) * 3


def test_ignored_failures_are_in_the_details_with_who_ignored_them() -> None:
    content = results_report(both(ignored=IGNORED, pull_request=42))
    assert TILE not in content.summary
    assert "1 new failure is ignored for `#42` by `hubot` at `cccccccccc`" in content.summary
    assert "### Ignored: 1\n" in content.text
    assert f"| `{TILE}` |" in content.text
    all_ignored = results_report(both(ignored=ALL_IGNORED, pull_request=42))
    assert "2 new failures are ignored for `#42` by `hubot` at `cccccccccc`" in all_ignored.summary


def test_a_mass_of_failures_is_reported_as_one() -> None:
    reported = findings((a_suite(BOTH), compared(*BOTH, mass=True)))
    assert "Many tests of `operators` failed at once, probably for one reason." in results_report(reported).summary


def test_the_external_id_is_the_newest_run() -> None:
    old = a_run("z", started_at="2026-11-20T05:10:00Z")
    new = a_run("a", started_at="2026-11-20T06:10:00Z")
    assert findings((a_suite(runs=[new, old]), compared())).external_id == "a"
    assert findings().external_id == ""


@pytest.mark.no_cover
def test_the_largest_report_fits_githubs_limits_and_says_what_was_left_out() -> None:
    suites = []
    for number in range(16):
        name = f"suite-{number}"
        tests = {f"tests/{'|&' * 100}.py::test_{n}": Detail(message="<" * 1000, text="é" * 16_000) for n in range(1250)}
        runs = [a_run(f"{'|' * 90}{n}", name, environment={"k" * 300: "|" * 900}) for n in range(20)]
        suites.append((a_suite(tests, name=name, runs=runs), compared(*tests, fixed=24, removed=24, flaky=24)))
    reported = findings(*suites, reproduce="pytest {test} " * 70, pull_request=1)
    content = results_report(reported)
    assert len(reported.new_failures) == 20_000
    assert content.title.startswith("20,000 new failures, 384 fixed")
    assert max(size(content.summary), size(content.text)) <= TEXT_LIMIT
    assert "and 19,990 more" in content.summary
    assert "*Left out, because GitHub limits the text of a check run: how to reproduce.*" in content.summary
    assert "Left out" in content.text
    assert len(content.annotations) <= 50


def test_the_report_says_when_renamed_tests_were_not_searched_for() -> None:
    text = results_report(findings((a_suite(), compared(unsearched=True)))).text
    assert (
        "`operators`: the search for renamed tests was skipped because it would take more than 40,000,000 steps."
        in text
    )
    assert "renamed" not in results_report(findings((a_suite(), compared()))).text


ONE_PREFIX = [(f"kernel.poll.{name}", name) for name in ("a", "b", "c")]
PREFIXES = [(f"{prefix}.{name}", name) for prefix in "wxyz" for name in ("a", "b", "c", "d")["wxyz".index(prefix) :]]


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([("old.a", "a")], "1 test was renamed and keeps its history: `old.a` is now `a`."),
        (
            ONE_PREFIX[:2],
            "2 tests were renamed and keep their history: the prefix `kernel.poll.` was dropped. For example, "
            "`kernel.poll.a` is now `a`.",
        ),
        (
            [*ONE_PREFIX, ("te.conv", "relax.conv"), ("te.dense", "relax.dense")],
            "5 tests were renamed and keep their history: the prefix `kernel.poll.` was dropped (3); `te.` became "
            "`relax.` (2). For example, `kernel.poll.a` is now `a`.",
        ),
        (
            [("a.b", "b.a"), ("old.x", "x"), ("y", "new.y")],
            "3 tests were renamed and keep their history: the prefix `old.` was dropped (1); the prefix `new.` was "
            "added (1); words were reordered (1). For example, `a.b` is now `b.a`.",
        ),
        (
            [pair for pair in PREFIXES if pair[0][0] != "z"],
            "9 tests were renamed and keep their history: a prefix was dropped: `w.` (4), `x.` (3), `y.` (2). For "
            "example, `w.a` is now `a`.",
        ),
        (
            PREFIXES,
            "10 tests were renamed and keep their history: a prefix was dropped: `w.` (4), `x.` (3), `y.` (2), and 1 "
            "more. For example, `w.a` is now `a`.",
        ),
    ],
)
def test_renamed_tests_are_explained_by_the_largest_rules_of_each_kind(
    pairs: list[tuple[str, str]], sentence: str
) -> None:
    suite = compared(renamed=tuple(pairs), unsearched=False)
    assert results_report(findings((a_suite(), suite))).text.partition("\n\n")[0] == sentence
