"""A report that has every part, as a whole: what one part says, in which order, and how tables are cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nightjar_formats.measurements import Better
from nightjar_formats.model import Counts, Detail, SeenTest, Status, Trouble

from bot.github.check_runs import TEXT_LIMIT, CheckContent
from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import Flakiness
from bot.results.compare.health import RunFlips, SuiteHealth
from bot.results.compare.quarantine import Quarantine
from bot.results.measurements.unexpected import NumbersOfPull, UnexpectedNumber
from bot.results.report.check_run import results_report
from bot.results.report.findings import Baseline, Findings, IgnoredFailures
from bot.results.settings.quarantine import EXAMPLE, QuarantinedTest
from bot.results.state import RunState
from tests.results.reported import a_run, a_suite, compared, findings, many

WHOLE = Path(__file__).with_name("whole_report.txt")
NEW = tuple(f"te/new.py::test_{number:02}" for number in range(12))
FLAKY = tuple(f"te/flaky.py::test_{number:02}" for number in range(11))
KNOWN, ENDED = "te/known.py::test_known", "te/known.py::test_ended"
STILL = many("still_failing", 12)
UNCHANGED = Baseline("e" * 40, "https://github.example/octocat/compiler/commit/e")
DEVICE, SIMULATOR = "example-lab/hexagon-v73", "example-lab/hexagon-sim"


def whole_findings() -> Findings:
    """Return findings of five suites: one with changes of every kind, one that is new, and three with problems."""
    item = QuarantinedTest.model_validate({**EXAMPLE, "test": KNOWN})
    troubles = dict(zip(NEW, [*Trouble], strict=False))
    details = {
        test: Detail(troubles.get(test, Trouble.NONE), f"cause of {test[-2:]}", f"output of {test[-2:]}\nend", "", 7)
        for test in NEW
    }
    details |= {test: Detail(message="differs\nby far") for test in (*FLAKY, KNOWN, ENDED, *STILL)}
    operators = a_suite(
        details,
        runs=[
            a_run("night-2", attempt=2, shard_total=2, environment={"device": "Pixel 9", "os": "15"}),
            a_run("night-1", reason="te.xml was repaired", log_url="https://logs.example.org/7"),
            replace(a_run("night-0", reason="te.xml is empty"), state=RunState.INCOMPLETE, claims=None),
        ],
        shard_total=2,
        missing_shards=(2,),
        waiting=(a_run("night-3"),),
        broken=(a_run("night-4", reason="te.xml has another hash"),),
    )
    changes = compared(
        *NEW,
        KNOWN,
        ENDED,
        still_failing=STILL,
        confirmed=STILL[11:],
        known_flaky=FLAKY,
        flaky=FLAKY[:1],
        fixed=1,
        newly_skipped=2,
        removed=11,
        precluded=1,
        renamed=(("old.a", "a"), ("old.b", "b")),
        mass=True,
        counts=Counts(passed=1200, failed=12, errored=1, skipped=1267, xfailed=3),
    )
    changes = replace(changes, flakiness={FLAKY[0]: Flakiness(38, 2, 1, row=1), FLAKY[1]: Flakiness(5, 0, 2, row=1)})
    first = compared(baseline=None, failing=("te/first.py::test_a",), counts=Counts(passed=1, failed=1))
    first_state = a_suite({"te/first.py::test_a": Detail(message="no")}, name="codegen")
    other = compared(baseline=UNCHANGED, unsearched=True, counts=Counts(passed=2))
    unusable = compared(infra="41 of 41 files could not be collected", counts=Counts(errored=41))
    arriving = a_suite(name="target", seen={}, waiting=(a_run("night-5", "target"),))
    latency = UnexpectedNumber("relax", "te/a.py::test_a", "latency", "ms", Better.LOWER, 467.2, 412.0, 404.1, 421.0)
    nodes = UnexpectedNumber("operators", "te/a.py::test_b", "nodes", "", Better.HIGHER, 12, 11, 11, 11)
    health = SuiteHealth("c" * 40, older=True, newest=RunFlips("d" * 40, 750, 7_000), stable=2)
    contexts = {
        ("operators", NEW[1]): FailureContext(good="a" * 40, passes_on_simulators=(SIMULATOR,)),
        ("operators", NEW[2]): FailureContext(good="a" * 40, failed=3, runs=40, passes_on_device=DEVICE),
        ("operators", NEW[3]): FailureContext(passes_on_device=DEVICE),
        ("operators", FLAKY[0]): FailureContext(failed=3, runs=40, also_on=("example-lab/adreno",)),
        ("operators", STILL[0]): FailureContext(since="c" * 40, good="a" * 40),
        ("codegen", "te/first.py::test_a"): FailureContext(since="c" * 40, older=True),
    }
    reported = findings(
        (operators, changes),
        (first_state, first),
        (a_suite(name="relax"), other),
        (a_suite(name="arith", seen={"a": SeenTest(Status.ERRORED)}), unusable),
        (arriving, compared(baseline=None, counts=Counts())),
        pull_request=42,
        missing_suites=("runtime", "tirx"),
        contacts=tuple(f"@hubot{number}" for number in range(11)),
        reproduce="pytest {test} # {suite} on {target}",
        reproduce_suites={"operators": "pytest {path} -k {name}"},
        ignored=IgnoredFailures("hubot", "c" * 40, "2026-11-20T05:10:00Z", frozenset({("operators", NEW[0])})),
        over=True,
        notice="The answer to a button.",
        degraded="The target is degraded.",
        contexts=contexts,
        unreliable={"operators": health},
        quarantine=Quarantine({KNOWN: item}, ()),
        ended=Quarantine({ENDED: replace_test(item, ENDED)}, ()),
        numbers=NumbersOfPull(24, (latency, nodes)),
        benchmark="@ci benchmark a on b",
    )
    return replace(reported, files=("te/new.py",))


def replace_test(item: QuarantinedTest, test: str) -> QuarantinedTest:
    return item.model_copy(update={"test": test, "until": "2026-10-31"})


def written(content: CheckContent) -> str:
    """Return all parts of a report as one text."""
    annotations = [
        f"{each.path}:{each.line} {each.title}\n{each.message}\n{each.details}" for each in content.annotations
    ]
    buttons = [action.identifier for action in content.actions]
    parts = [content.title, content.conclusion, content.summary, content.text, *annotations, ", ".join(buttons)]
    return "\n\n====\n\n".join(parts) + "\n"


def test_a_report_with_every_part_is_written_as_the_file_beside_says() -> None:
    assert written(results_report(whole_findings())) == WHOLE.read_text()


def test_what_a_summary_without_room_leaves_out_is_named() -> None:
    long = "x" * TEXT_LIMIT
    summary = results_report(replace(whole_findings(), notice=long, degraded=long)).summary
    assert summary.startswith("- **Unreliable results** of")
    assert summary.endswith(
        "\n\n*Left out, because GitHub limits the text of a check run: the answer to a button, that the target is "
        "degraded.*"
    )


NAMES_OF_SUMMARY = (
    "that the target is degraded, unreliable results, a warning, new failures, differences between simulator and "
    "device, known flaky tests, failing tests, quarantined tests, tests whose quarantine has ended, measurements,"
    " how to reproduce, why, unusable suites, what is missing, what was ignored, what it is compared with, "
    "counts, what was repaired, the lab's contacts, what advisory means"
)


def test_every_part_of_a_summary_has_a_name_if_nothing_but_the_first_one_has_room() -> None:
    room = TEXT_LIMIT - 1_002  # 1,000 bytes are reserved for the names
    summary = results_report(replace(whole_findings(), notice="x" * room)).summary
    assert summary == f"{'x' * room}\n\n*Left out, because GitHub limits the text of a check run: {NAMES_OF_SUMMARY}.*"
