"""Combine all runs of a suite at a commit: the result of each test, and the reason."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from nightjar_formats.columns import SEEN, STATUS_BYTES, at, good_and_bad, merged
from nightjar_formats.columns.collect import IN_ID, Reason
from nightjar_formats.model import Detail, SeenTest, Trouble
from nightjar_formats.runs.shared_outcomes import ColumnOutcomes, SuiteNames

from bot.results.store.tables.blobs import Reasons, RunColumns

Fetch = Callable[[int], str]
"""Returns the text that has a number."""

_OF_THE_RUNNER = {Trouble.COLLECTION, Trouble.CRASH, Trouble.INTERNAL}


class Details(Mapping[str, Detail]):
    """The details of tests that did not simply pass, by test ID.

    The text of a failure is read on access, because a broken lab may send 100,000 of them. Each access is a query, so
    use a thread.
    """

    def __init__(self, reasons: Mapping[str, Reason], fetch: Fetch) -> None:
        self._reasons = reasons
        self._fetch = fetch

    def __getitem__(self, test_id: str) -> Detail:
        reason = self._reasons[test_id]
        path = test_id.partition("::")[0] if reason.path == IN_ID else reason.path
        text = self._fetch(reason.text) if reason.text else ""
        measures = json.loads(reason.measures) if reason.measures else None  # noqa: TID251  # ours; it may have NaN
        return Detail(reason.trouble, reason.message, text, path, reason.line, measures)

    def __iter__(self) -> Iterator[str]:
        return iter(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons)


def has_evidence(runs: Sequence[RunColumns], statuses: bytes) -> bool:
    """Return whether runs are clearly usable, so that no closer check for a lab setup problem is needed.

    That is so if most of their tests passed and the test runner had no error. `statuses` is their merged column.
    """
    troubles = {reason.trouble for run in runs for reason in run.reasons.distinct}
    good, bad = good_and_bad(statuses)
    return good > bad and not troubles & _OF_THE_RUNNER


def reason_of(reasons: Reasons, ordinal: int) -> Reason | None:
    """Return the reason of a test; None if it has none."""
    index = bisect_left(reasons.ordinals, ordinal)
    if index == len(reasons.ordinals) or reasons.ordinals[index] != ordinal:
        return None
    return reasons.distinct[reasons.numbers[index]]


def verdicts(names: SuiteNames, runs: Sequence[RunColumns]) -> tuple[ColumnOutcomes, dict[str, Reason]]:
    """Return how each test ended and why, from its runs in their order."""
    statuses = merged([run.statuses for run in runs])
    reasons, numbers = _last_reasons(runs)
    kinds = [number * STATUS_BYTES + statuses[ordinal] for ordinal, number in numbers.items()]
    shared: dict[int, SeenTest] = {}
    for kind in set(kinds):
        reason, result = reasons[kind // STATUS_BYTES], SEEN[kind % STATUS_BYTES]
        shared[kind] = result._replace(trouble=reason.trouble, message=reason.message)
    explained = dict(zip(numbers, map(shared.__getitem__, kinds), strict=True))
    test_ids = map(names.ordered.__getitem__, numbers)
    reason_of_test = dict(zip(test_ids, map(reasons.__getitem__, numbers.values()), strict=True))
    return ColumnOutcomes(names, statuses, explained), reason_of_test


def _last_reasons(runs: Sequence[RunColumns]) -> tuple[list[Reason], dict[int, int]]:
    """Return all reasons, and by ordinal the number of the reason that the last run with the test gives."""
    reasons: list[Reason] = []
    reason_of: dict[int, int] = {}
    for run in runs:
        # A later run of a test replaces its reason, also if the test simply passed there.
        for ordinal in [ordinal for ordinal in reason_of if at(run.statuses, ordinal)]:
            del reason_of[ordinal]
        start = len(reasons)
        reasons += run.reasons.distinct
        numbers = [start + number for number in run.reasons.numbers] if start else run.reasons.numbers
        reason_of.update(zip(run.reasons.ordinals, numbers, strict=True))
    return reasons, reason_of
