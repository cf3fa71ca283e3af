"""The summary of a check run: failures first, each reason once, and no rows or columns of zeros."""

from __future__ import annotations

from dataclasses import replace

from nightjar_formats.measurements import Better
from nightjar_formats.model import Counts, Detail

from bot.results.compare.quarantine import Quarantine
from bot.results.measurements.unexpected import NumbersOfPull, UnexpectedNumber
from bot.results.report.check_run import results_report
from bot.results.report.texts import ADVISORY
from bot.results.settings.quarantine import EXAMPLE, QuarantinedTest
from bot.results.state import RunState
from tests.results.reported import BASE, a_run, a_suite, compared, findings

TILE, MATMUL = "tests/test_tile.py::test_tile[llvm]", "tests/test_matmul.py::test_matmul"
BOTH = {TILE: Detail(message="assert 1 == 2"), MATMUL: Detail(message="wrong")}


def test_the_title_counts_missing_suites_as_one_problem() -> None:
    waiting = a_suite(waiting=(a_run("run-2b"),), broken=(a_run("run-1"), a_run("run-0")))
    reported = findings((waiting, compared()), missing_suites=("arith", "relax", "target", "tirx-transform"))
    assert results_report(reported).title.startswith(
        "Incomplete: arith and 3 more suites are missing, 2 more problems · "
    )
    assert results_report(findings(missing_suites=("arith",))).title == "Incomplete: arith is missing"


def test_missing_suites_are_named_in_one_sentence() -> None:
    summary = results_report(findings((a_suite(), compared()), missing_suites=("arith", "relax", "target"))).summary
    assert (
        "- Missing: `arith`, `relax`, `target` (reported by the previous nightly run). If the lab no longer" in summary
    )
    assert summary.count("previous nightly run") == 1


def test_counts_have_no_column_of_zeros_and_no_numbers_for_a_suite_that_has_not_arrived() -> None:
    none = a_suite(name="relax", seen={}, waiting=(a_run("run-2b", "relax"),))
    reported = findings((a_suite(), compared()), (none, compared(baseline=None, counts=Counts())))
    rows = [line for line in results_report(reported).summary.splitlines() if line.startswith("|")]
    assert rows[0] == "| suite | passed | skipped | compared with |"
    assert rows[2:] == [
        f"| `operators` | 576 | 1,267 | [`bbbbbbbbbb`]({BASE.url}) |",
        "| `relax` |  |  | not arrived |",
    ]


def test_the_summary_shows_failures_before_the_reason_and_ends_with_the_boilerplate() -> None:
    summary = results_report(findings((a_suite(BOTH), compared(*BOTH, fixed=1)))).summary
    places = [summary.index(text) for text in ("### New failures: 2", "**Neutral**: ", "Compared with", "| suite |")]
    assert summary.startswith("### New failures: 2\n\n| test |")
    assert places == sorted(places)
    assert summary.endswith(ADVISORY)


def test_repairs_in_the_files_of_a_run_are_listed() -> None:
    run = a_run("night-2", reason="te.xml was repaired: white space before <?xml was ignored")
    refused = replace(a_run("night-1", reason="unusable"), state=RunState.INCOMPLETE)
    summary = results_report(findings((replace(a_suite(), runs=(run, refused)), compared()))).summary
    assert (
        "Files of this lab needed repairs before they could be read:\n\n"
        "- `operators`: run `night-2`: te.xml was repaired: white space before &lt;?xml was ignored\n\n"
    ) in summary
    assert "needed repairs" not in results_report(findings()).summary


def test_measurements_are_listed_if_they_are_not_as_expected_and_never_change_the_conclusion() -> None:
    latency = UnexpectedNumber(
        "operators", "te/a.py::test_a", "latency", "ms", Better.LOWER, 467.2, 412.0, 404.1, 421.0
    )
    nodes = UnexpectedNumber("operators", "te/a.py::test_b", "delegated_nodes", "nodes", Better.HIGHER, 12, 11, 11, 11)
    quarantined = replace(latency, test="te/a.py::test_known")
    as_expected = findings((a_suite(), compared()), pull_request=7, numbers=NumbersOfPull(24))
    report = results_report(as_expected)
    assert "24 measurements are as the nightly runs lead to expect." in report.summary
    quarantine = Quarantine({}, (("te/a.py::test_known", QuarantinedTest.model_validate(EXAMPLE)),))
    numbers = NumbersOfPull(24, (latency, quarantined, nodes))
    unexpected = results_report(replace(as_expected, numbers=numbers, quarantine=quarantine))
    assert (unexpected.conclusion, unexpected.title) == (report.conclusion, report.title)
    table = unexpected.summary.partition("### Measurements: 2\n\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [
        "| test | measurement | value | expected |",
        "| --- | --- | --- | --- |",
        "| `te/a.py::test_a` | `latency` | `467 ms (worse)` | `404 to 421 ms` |",
        "| `te/a.py::test_b` | `delegated_nodes` | `12 nodes` | `11 nodes` |",
    ]
    assert "To find out whether it is chance" not in unexpected.summary
    asked = results_report(
        replace(as_expected, numbers=numbers, quarantine=quarantine, benchmark="@ci benchmark a on b")
    )
    assert (
        "comment `@ci benchmark a on b`: a device runs this pull request's head and its base in turn" in asked.summary
    )
    # One number of a quarantined test is not as expected, and is left out.
    assert "Of 23 measurements that were compared, these are outside" in unexpected.summary
    left_out = replace(as_expected, numbers=NumbersOfPull(24, (quarantined,)), quarantine=quarantine)
    assert "23 measurements are as the nightly runs lead to expect." in results_report(left_out).summary


def test_a_summary_without_any_result_says_what_is_missing_and_nothing_else() -> None:
    assert results_report(findings(missing_suites=("arith",))).summary == (
        "**Neutral**: the results are incomplete. Neutral means: please take a look.\n\n"
        "- Missing: `arith` (reported by the previous nightly run). If the lab no longer runs it, the next nightly run "
        f"does not expect it.\n\n{ADVISORY}"
    )
    assert results_report(findings()).summary == (
        f"**Neutral**: no usable results. Neutral means: please take a look.\n\n{ADVISORY}"
    )
