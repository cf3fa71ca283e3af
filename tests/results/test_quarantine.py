"""Quarantined tests in check runs: never counted as new failures, never left out, and never a silent success."""

from __future__ import annotations

from typing import Any

from nightjar_formats.model import Detail

from bot.github.check_runs import NEUTRAL, SUCCESS
from bot.results.compare.quarantine import Quarantine, quarantine_at
from bot.results.report.check_run import IGNORE, results_report
from bot.results.report.findings import Findings, IgnoredFailures
from bot.results.settings.quarantine import EXAMPLE, QuarantinedTest
from tests.results.reported import ABOUT, AT, a_suite, compared, findings

TILE, MATMUL = "tests/test_tile.py::test_tile[llvm]", "tests/test_matmul.py::test_matmul"
BOTH = {TILE: Detail(message="assert 1 == 2"), MATMUL: Detail(message="wrong")}
DAY = 86_400.0
ROW = "| `{test}` | `operators` | failed | `octocat` | [Times out on boards with old firmware](https://github.com/"


def item(test: str, **keys: Any) -> QuarantinedTest:
    return QuarantinedTest.model_validate(EXAMPLE | {"test": test, "until": "2026-11-20"} | keys)


def quarantine_of(*items: QuarantinedTest, moment: float = AT) -> Quarantine:
    return quarantine_at(items, ABOUT, moment)[0]


def reported_with(
    *items: QuarantinedTest, moment: float = AT, failing: tuple[str, ...] = (), **values: Any
) -> Findings:
    """Return the findings of a run in which both tests fail; `failing` tests also failed before."""
    quarantine, ended = quarantine_at(items, ABOUT, moment)
    new_failures = [test for test in BOTH if test not in failing]
    comparison = compared(*new_failures, still_failing=failing, failing=tuple(sorted(BOTH)))
    return findings((a_suite(BOTH), comparison), quarantine=quarantine, ended=ended, **values)


def test_a_new_failure_of_a_quarantined_test_is_listed_separately_with_owner_and_reason() -> None:
    report = results_report(reported_with(item(MATMUL)))
    assert report.title.startswith("1 new failure, 1 failure quarantined")
    assert "### Quarantined: 1\n\n| test |" in report.summary
    assert ROW.format(test=MATMUL) in report.summary
    assert "2026-11-20 |" in report.summary
    assert f"| `{MATMUL}` |" not in report.summary.partition("### Quarantined")[0]


def test_new_failures_of_quarantined_tests_alone_are_no_success() -> None:
    report = results_report(reported_with(item("tests/*")))
    assert report.title.startswith("2 failures quarantined")
    assert report.conclusion == NEUTRAL
    assert "**Neutral**: 2 new failures of quarantined tests." in report.summary


def test_a_quarantined_test_that_still_fails_is_listed_too() -> None:
    report = results_report(reported_with(item(MATMUL), item(TILE), failing=(MATMUL, TILE)))
    assert report.conclusion == SUCCESS
    assert report.title.startswith("2 failures quarantined · ")
    assert "### Quarantined: 2" in report.summary


def test_a_quarantine_lasts_through_its_last_day_and_its_end_is_reported() -> None:
    assert "### Quarantined: 1" in results_report(reported_with(item(MATMUL))).summary
    report = results_report(reported_with(item(MATMUL), moment=AT + DAY))
    assert report.title.startswith("2 new failures ")
    assert "### Quarantined" not in report.summary
    assert "### No longer quarantined: 1" in report.summary
    assert "these failures count again" in report.summary


def test_a_prolonged_quarantine_wins_over_one_that_has_ended() -> None:
    report = results_report(reported_with(item(MATMUL), item("tests/*", until="2026-12-01"), moment=AT + DAY))
    assert "### Quarantined: 2" in report.summary
    assert "### No longer quarantined" not in report.summary


def test_ignored_failures_are_counted_without_quarantined_ones() -> None:
    ignored = IgnoredFailures("hubot", "1" * 40, "2026-11-20T05:26:40Z", frozenset({("operators", MATMUL)}))
    reported = reported_with(item(MATMUL), pull_request=1, ignored=ignored)
    assert (reported.quarantined_counts[0], reported.ignored_failures, len(reported.new_failures)) == (1, 0, 1)
    assert IGNORE in results_report(reported).actions
    all_quarantined = reported_with(item("tests/*"), pull_request=1)
    assert IGNORE not in results_report(all_quarantined).actions, "there is nothing to ignore"


def test_an_exact_name_wins_over_a_prefix_and_a_longer_prefix_over_a_shorter_one() -> None:
    rules = [item("a.*", reason="short"), item("a.b.*", reason="long"), item("a.b.c", reason="exact")]
    for items in (rules, rules[::-1]):
        matches = [quarantine_of(*items).of(test) for test in ("a.b.c", "a.b.d", "a.d", "b")]
        assert [match and match.reason for match in matches] == ["exact", "long", "short", None]


def test_an_item_applies_to_the_targets_that_it_names() -> None:
    own_item, other_item = (
        item(MATMUL, targets=("example-lab/hexagon-v73",)),
        item(TILE, targets=("example-lab/adreno",)),
    )
    quarantine = quarantine_of(own_item, other_item)
    assert (quarantine.of(MATMUL), quarantine.of(TILE)) == (own_item, None)


def test_more_than_ten_are_counted() -> None:
    many = {f"tests/test_a.py::test_{n:02}": Detail() for n in range(12)}
    quarantine, ended = quarantine_at([item("tests/*")], ABOUT, AT)
    comparison = compared(*many, failing=tuple(many))
    report = results_report(findings((a_suite(many), comparison), quarantine=quarantine, ended=ended))
    assert "### Quarantined: 12" in report.summary
    assert "| and 2 more |" in report.summary
