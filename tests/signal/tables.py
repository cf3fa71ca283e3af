"""The tables of docs/signal.md, from a score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.core.docs import table
from tests.signal.lab import SILENT, UNRELIABLE, LabFault, TruthClass
from tests.signal.names import DECOYS, RENAMINGS
from tests.signal.score import GAPS, PROVED, RECOVERY, Count, Score

REPORTED_HEADER = ("what happens to a test", "cases", "reported", "not reported", "wrong", "precision", "recall")
SILENT_HEADER = ("what happens to a test", "cases", "wrong reports")
OTHER_HEADER = ("what is recognized", "cases", "right", "missing", "wrong", "precision", "recall")
NONE = "-"


def tables(score: Score) -> str:
    """Return all tables in Markdown, each with the heading of its section."""
    return "\n\n".join(
        [
            "### Failures that are reported",
            table(REPORTED_HEADER, _reported(score)),
            "### Failures that are not reported",
            table(SILENT_HEADER, _silent(score)),
            "### Renamed tests",
            table(OTHER_HEADER, (_row(name, score.renames[name]) for name in (*RENAMINGS, *DECOYS))),
            "### Everything else",
            table(OTHER_HEADER, _others(score)),
        ]
    )


def _reported(score: Score) -> Iterator[tuple[str, ...]]:
    total = Count()
    for truth in TruthClass:
        if truth not in SILENT | UNRELIABLE:
            total.add(score.failures[truth])
            yield _row(truth.value, score.failures[truth])
    total.wrong = score.alarms.wrong
    yield _row("**all reports**, wrong ones of other tests included", total)


def _silent(score: Score) -> Iterator[tuple[str, ...]]:
    for truth in TruthClass:
        if truth in SILENT:
            count = score.failures[truth]
            yield truth.value, f"{count.cases:,}", f"{count.wrong:,}"


def _others(score: Score) -> Iterator[tuple[str, ...]]:
    yield _row("that a failure has ended", score.others[RECOVERY])
    for least, most in GAPS:
        words = f"{least:,} to {most:,}" if most < GAPS[-1][1] else f"{least:,} or more"
        yield _row(f"the run to compare with, {words} commits before", score.baselines[least, most])
    for fault in LabFault:
        yield _row(f"a lab's fault: {fault.value}", score.faults[fault])
    yield _row("a flaky test: one commit had both outcomes", score.others[PROVED])


def _row(name: str, count: Count) -> tuple[str, ...]:
    cases = count.cases or count.right + count.missing
    numbers = (cases, count.right, count.missing, count.wrong)
    return (name, *(f"{number:,}" for number in numbers), _share(count.precision), _share(count.recall))


def _share(share: float | None) -> str:
    """Return a share with four digits; only the whole is 1."""
    if share is None:
        return NONE
    return "1" if share == 1 else f"{min(share, 0.9999):.4f}"


def delays(counts: Iterable[Count]) -> list[int]:
    """Return, for all right reports in order, how many runs later than possible each came."""
    return sorted(delay for count in counts for delay in count.late.elements())
