"""How a check run reports on the runs behind it and their lab: missing, late, unusable, or not verified."""

from __future__ import annotations

from dataclasses import replace

from nightjar_formats.model import Counts

from bot.results.report.check_run import results_report
from bot.results.state import RunState
from tests.results.reported import a_run, a_suite, compared, findings

SAYS_NOTHING = "41 of 41 files could not be collected"


def test_missing_waiting_and_broken_runs_are_named_with_their_time() -> None:
    suite = a_suite(
        shard_total=4,
        missing_shards=(2, 3),
        waiting=(a_run("run-2b", reason="te.xml is missing"),),
        broken=(a_run("night-1", reason="te.xml has another hash"),),
    )
    summary = results_report(findings((suite, compared()))).summary
    assert "- `operators`: shards 2, 3 of 4 are missing. The first run arrived on 2026-11-20" in summary
    assert "run `run-2b` has been waiting for its files since 2026-11-20 05:26 UTC: te.xml is missing" in summary
    assert "run `night-1`, which arrived on 2026-11-20 05:26 UTC, is unusable: te.xml has another hash" in summary
    assert results_report(findings((suite, compared()))).title.startswith(
        "Incomplete: 2 of 4 shards of operators, 2 more problems · "
    )


def test_the_report_says_when_the_deadline_has_passed() -> None:
    reported = findings((a_suite(shard_total=2, missing_shards=(2,)), compared()), over=True)
    assert "shard 2 of 2 is missing." in results_report(reported).summary
    assert "The deadline has passed. Results that arrive later still count." in results_report(reported).summary
    assert "deadline" not in results_report(findings((a_suite(), compared()), over=True)).summary


def test_a_suite_without_results_so_far_is_not_broken() -> None:
    waiting = a_suite(name="codegen", seen={}, waiting=(a_run("run-2c", "codegen"),))
    content = results_report(findings((waiting, compared(infra="no test ran", counts=Counts()))))
    assert content.title == "Incomplete: 1 run of codegen without all files"
    assert "no test ran" not in content.summary
    assert "| not arrived |" in content.summary


def test_a_run_that_arrived_and_is_unusable_is_reported() -> None:
    broken = a_suite(name="codegen", seen={}, broken=(a_run("run-2c", "codegen", reason="a.xml ends too early"),))
    content = results_report(findings((broken, compared(infra="no test ran", counts=Counts()))))
    assert content.title == "Incomplete: 1 unusable run of codegen"
    assert "`run-2c`, which arrived on 2026-11-20 05:26 UTC, is unusable: a.xml ends too early" in content.summary
    assert "| unusable |" in content.summary


def test_a_broken_lab_is_reported_before_missing_suites() -> None:
    reported = findings((a_suite(), compared(infra=SAYS_NOTHING)), missing_suites=("arith", "relax"))
    assert results_report(reported).title == (
        f"Lab setup problem, no usable results: {SAYS_NOTHING} · Incomplete: arith and 1 more suite are missing"
    )


def test_a_run_that_does_not_count_is_marked_in_the_list() -> None:
    good, bad = a_run("run-2b"), replace(a_run("run-2a"), state=RunState.INCOMPLETE, reason="a.xml is a web page")
    text = results_report(findings((a_suite(runs=[bad, good]), compared()))).text
    assert "| `run-2a`, unusable |" in text
    assert "| `run-2b` |" in text


def test_statements_by_the_lab_are_marked_as_such() -> None:
    run = a_run(
        started_at="2026-11-20T05:10:00Z", environment={"device": "Pixel 9"}, log_url="https://logs.example.org/7"
    )
    text = results_report(findings((a_suite(runs=[run]), compared()))).text
    assert "What the lab reports about its runs (not verified):" in text
    assert "| attempt | shard | from | environment | log |" in text
    assert "| `2026-11-20T05:10:00Z` | `device=Pixel 9` | `https://logs.example.org/7` |" in text


def test_the_table_of_runs_has_a_column_if_one_run_fills_it() -> None:
    suite = a_suite(runs=[a_run("run-1"), a_run("run-2", log_url="https://logs.example.org/7")])
    text = results_report(findings((suite, compared()))).text
    assert "| run | suite | attempt | shard | log |" in text


def test_contacts_are_shown_without_a_mention() -> None:
    assert (
        "Questions about this lab: `@example-lab-ci` (not notified)."
        in results_report(findings((a_suite(), compared()), contacts=("@example-lab-ci",))).summary
    )
