"""Every sentence about benchmarks, and the functions that build the section of the sticky comment from them. Pure.

Names of tests and measurements come from outside and are shown as code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey
from nightjar_formats.pairs import LEAST_BLOCKS
from nightjar_formats.runs.benchmark import BenchmarkEnd, BenchmarkReport, ComparedMeasurement

from bot.core.docs import table
from bot.core.listing import MORE, counted, listed, middle_cut
from bot.effects.section_words import short
from bot.github.text.markdown import code
from bot.results.measurements.texts import number_text
from handlers.device_tests.benchmarks.model import BENCHMARK, report_of
from handlers.device_tests.model import DeviceJob, DeviceJobState
from handlers.device_tests.reproduce.texts import named_test
from handlers.device_tests.texts import status_text, time_text

# The command
SUMMARY = (
    "Run this pull request's head and its base in turn on one device, and compare what tests measure. After the "
    "target, `to 1%` asks for another precision than 2 %, and `within 1h` for another time limit."
)
NAME_TARGET = "Name one target after `on`, as in {command}."
BAD_OPTIONS = (
    "After the target, write a precision from 0.5 % to 50 %, as in `to 1%`, a time limit, as in `within 30m`, both, or "
    "neither."
)
TOO_LONG = "A test on {name} may take {most} at most, so a benchmark cannot measure for {time}."
SEVERAL_TARGETS = (
    "Several labs have a target named {name}. A benchmark runs on one device, so name one of them: {names}."
)
NO_BASE = "The head has no commit in common with {branch}, so there is nothing to compare it with."
OTHER_OPEN = "A benchmark of {sha} on {name} with other tests or options has not ended. Ask again when it has."
REQUESTED = "{name} will run {sha} and its base {base} in turn. The result will be in my comment on this pull request."

# The section
TITLE = "Benchmark of {sha} against its base {base} on {target}"
TITLE_OF_TESTS = "{title}: {tests}"
HEADED = "**{title}**: {answer}."
NOT_MEASURED = (
    "no test measured anything at both commits. Tests report numbers with the fixture `measure` of the pytest plugin "
    "`nightjar_lab.pytest`, or in one of the formats of benchmarks"
)
TOO_FEW_RUNS = (
    "not enough runs to tell. There was time for {runs}; a comparison takes {least}. Name fewer tests, or ask for more "
    "time with `within`"
)
NO_RATIO = "no measurement can be compared as a ratio"
WITHOUT_RATIO = (
    "These measurements changed, but have no ratio, because a value is zero or negative or the units differ:"
)
EQUAL = "no difference larger than {most} (95 %) in {measurements}"
DIFFERENT = "{measurements} changed; no difference larger than {most} (95 %) in {others}"
ALL_DIFFERENT = "{measurements} changed (95 %)"
MEASUREMENTS = ("measurement", "measurements")
HEADER = ("test", "measurement", "base", "head", "head compared with base (95 %)")
DIFFERENCE = "{share} % ({low} to {high})"
EXACT = "{share} %"
SAME = "the same in all runs"
WITHIN = "no difference larger than {most}"
ENDS = {
    BenchmarkEnd.PRECISE: "{runs} in {time}.",
    BenchmarkEnd.BUDGET: "{runs} in {time}: the time ended before all intervals were as narrow as ±{precision}.",
    BenchmarkEnd.MOST_BLOCKS: "{runs} in {time}: after so many, not all intervals were as narrow as ±{precision}.",
}
RUNS = ("run of each commit, in turn,", "runs of each commit, in turn,")
OF_EACH = ("run of each commit", "runs of each commit")
BY_CHANCE = "Each interval is right with a probability of 95 %, so a few of {count} may be wrong."
FAILED = "Failed at the {side}: {tests}."
FOLDED = "<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
NO_RESULT = "no result. {reason}"
MEASURED = "benchmark: {answer}"
NO_REPORT = "no result. The report of the lab could not be read"

# The audit log
WHY_SHOWN = "benchmarks of {sha}: {count}"
WHY_NO_BENCHMARK = "job {job} no longer exists"

MOST_BENCHMARKS = 5
"""The most benchmarks that the section shows, the newest first."""
MOST_ROWS = 30
"""The most rows of one table."""
MOST_FAILED = 5
MOST_TITLED = 3
"""The most tests that a title names."""
SHOWN_TEST, SHOWN_NAME = 200, 60
MANY_INTERVALS = 20
"""Of so many intervals, one that is wrong by chance is likely."""


def benchmark_command(test: str, target: TargetKey) -> str:
    """Return the command, without a mention, that requests a benchmark of a test."""
    return f"{BENCHMARK} {named_test(test)} on {target.full_name}"


def section_text(jobs: Sequence[DeviceJob]) -> str:
    """Return the section with the benchmarks of a head that have ended: of each target and its tests, the newest one.

    `jobs` has the oldest first.
    """
    newest: dict[tuple[TargetKey, tuple[str, ...]], DeviceJob] = {}
    for job in reversed(jobs):
        if not job.is_open:
            newest.setdefault((job.about, job.few_tests.tests), job)
    return "\n\n".join(map(job_text, list(newest.values())[:MOST_BENCHMARKS]))


def title_of(job: DeviceJob) -> str:
    """Return the title of a benchmark, in Markdown."""
    title = TITLE.format(sha=short(job.sha), base=short(job.few_tests.base_sha), target=code(job.about.full_name))
    tests = [_code(test, SHOWN_TEST) for test in job.few_tests.tests]
    return TITLE_OF_TESTS.format(title=title, tests=listed(tests, MOST_TITLED)) if tests else title


def job_text(job: DeviceJob) -> str:
    """Return what a benchmark that has ended shows, in Markdown."""
    report = report_of(job)
    if report is None:
        is_done = job.state is DeviceJobState.DONE
        answer = NO_REPORT if is_done else NO_RESULT.format(reason=status_text(job, None, job.ended_at, ""))
        return HEADED.format(title=title_of(job), answer=answer)
    return report_text(title_of(job), report)


def status_words(job: DeviceJob) -> str:
    """Return what a benchmark has shown, for a list of jobs; empty for any other job, and without a report."""
    report = report_of(job)
    return MEASURED.format(answer=answer_text(report)) if report else ""


def report_text(title: str, report: BenchmarkReport) -> str:
    """Return the report of a benchmark in Markdown: the answer, what differs, and what does not, folded."""
    different = [row for row in report.measurements if row.interval.excludes_one]
    others = [row for row in report.measurements if not row.interval.excludes_one]
    unlisted = report.unlisted
    parts = [HEADED.format(title=title, answer=answer_text(report))]
    if different:
        parts.append(_table(different, report.precision, 0 if others else unlisted))
    if others:
        summary = EQUAL.format(most=_most(others, report.precision), measurements=_count(len(others) + unlisted))
        parts.append(FOLDED.format(summary=summary, content=_table(others, report.precision, unlisted)))
    parts += [
        FAILED.format(side=side, tests=listed([_code(test, SHOWN_TEST) for test in tests], MOST_FAILED))
        for side, tests in report.failures.items()
        if tests
    ]
    if report.without_ratio:
        names = [_code(name, SHOWN_TEST) for name in report.without_ratio]
        parts.append(f"{WITHOUT_RATIO} {listed(names, MOST_FAILED)}.")
    if report.measurements:
        parts.append(_end(report))
    return "\n\n".join(parts)


def answer_text(report: BenchmarkReport) -> str:
    """Return what a benchmark has shown, as a part of a sentence."""
    different = [row for row in report.measurements if row.interval.excludes_one]
    others = [row for row in report.measurements if not row.interval.excludes_one]
    if not report.measurements and report.end is BenchmarkEnd.BUDGET:
        return TOO_FEW_RUNS.format(runs=counted(2 * report.blocks, *OF_EACH), least=2 * LEAST_BLOCKS)
    if not report.measurements:
        return NO_RATIO if report.without_ratio else NOT_MEASURED
    if not different:
        return EQUAL.format(most=_most(others, report.precision), measurements=_count(len(others) + report.unlisted))
    if not others:
        return ALL_DIFFERENT.format(measurements=_count(len(different)))
    most = _most(others, report.precision)
    return DIFFERENT.format(
        measurements=_count(len(different)), others=_count(len(others) + report.unlisted), most=most
    )


def difference_text(row: ComparedMeasurement, precision: float) -> str:
    """Return how head and base differ in a measurement: `+5.1 % (3.8 to 6.4), worse`."""
    ratio = row.interval
    if ratio.low == ratio.high == 1:
        return SAME
    if not ratio.excludes_one:
        return WITHIN.format(most=_share(max(ratio.largest, precision)))
    share, low, high = (f"{100 * (bound - 1):+.1f}" for bound in (ratio.value, ratio.low, ratio.high))
    difference = EXACT if ratio.low == ratio.high else DIFFERENCE
    verdict = verdict_of(row)
    return difference.format(share=share, low=low, high=high) + (verdict and f", {verdict}")


def verdict_of(row: ComparedMeasurement) -> str:
    """Return `better` or `worse`; empty if they do not differ, or nobody says which values are better."""
    if not row.interval.excludes_one or row.better is Better.NONE:
        return ""
    return "worse" if (row.ratio > 1) == (row.better is Better.LOWER) else "better"


def _table(rows: Sequence[ComparedMeasurement], precision: float, unlisted: int) -> str:
    cells = [
        (
            _code(row.test, SHOWN_TEST),
            _code(row.name, SHOWN_NAME),
            *(_code(f"{number_text(value)} {row.unit}".strip(), SHOWN_NAME) for value in (row.base, row.head)),
            difference_text(row, precision),
        )
        for row in rows[:MOST_ROWS]
    ]
    more = len(rows) - len(cells) + unlisted
    return table(HEADER, [*cells, *([(MORE.format(count=more), "", "", "", "")] if more else [])])


def _end(report: BenchmarkReport) -> str:
    runs = counted(2 * report.blocks, *RUNS)
    end = ENDS[report.end].format(runs=runs, time=time_text(report.seconds), precision=_share(report.precision))
    count = len(report.measurements) + report.unlisted
    return f"{end} {BY_CHANCE.format(count=count)}" if count >= MANY_INTERVALS else end


def _most(rows: Sequence[ComparedMeasurement], precision: float) -> str:
    """Return the largest difference that any of these intervals has, or the precision if that is larger."""
    return _share(max([precision, *(row.interval.largest for row in rows)]))


def _share(share: float) -> str:
    """Return a share in percent, rounded up to a decimal."""
    return f"{math.ceil(round(1000 * share, 6)) / 10:g} %"


def _count(number: int) -> str:
    return counted(number, *MEASUREMENTS)


def _code(text: str, limit: int) -> str:
    return code(middle_cut(text, limit))
