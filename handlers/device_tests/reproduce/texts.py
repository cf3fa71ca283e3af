"""Every sentence about reproduced failures, and the functions that build answers from them. Pure.

Text from labs is shown as code only: it comes from outside, and must not become Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.runs.few_tests import BASE, HEAD

from bot.core.listing import counted
from bot.core.patterns import Pattern
from bot.github.text.markdown import code, fenced, truncate
from bot.results.few_tests import FewTestsOutcome, TestAttempts
from bot.results.rates import (
    CONFIDENCE,
    FailureRate,
    RepeatVerdict,
    chance_of_more,
    repeat_verdict,
    runs_to_tell,
)
from handlers.device_tests.model import MOST_REPEATS, DeviceJob
from handlers.device_tests.texts import ENDS, LAB_SAYS

# Help
REPRODUCE_SUMMARY = (
    "Run one test several times on a device, at this pull request's head and at its base in turn, and report both "
    "failure rates. On an issue about a regression: at the nightly commit where it began, and at the last good one."
)

# Answers to the command
USAGE = "Name a test and a target, as in {command}. Test IDs with spaces need quotes."
BAD_COUNT = "A test runs 1 to {most} times at each commit, and {written} is no such number."
ONE_TARGET = "{name} is a target of several labs. Name one of them: {names}."
REQUESTED = "{name}: I run {test} {times} at {sha} and at its base {base}, and answer here."
REQUESTED_ON_ISSUE = (
    "{name}: I run {test} {times} at {sha}, where it began to fail, and at {base}, where it last passed, and "
    "answer here."
)
REQUESTED_ALONE = "{name}: I run {test} {times} at {sha}, and answer here."

# The answer
REPRODUCED = "{test} failed in {failed} of {runs} runs at {sha} on {name}."
PASSED = "{test} passed in all {runs} runs at {sha} on {name}."
NOT_RUN = (
    "{test} did not run at {sha} on {name}. Check its ID, and whether the lab's command runs it; the report of the "
    "lab has other tests only."
)
NO_RESULT = "I could not reproduce {test} at {sha} on {name}: {reason}"
MORE_OFTEN = "It fails more often than at the {base} (95 %)."
LESS_OFTEN = "It fails less often than at the {base} (95 %)."
NO_DIFFERENCE = "These runs do not show that it fails more often than at the {base}."
FIXED = "**Fixed (95 %)**: it failed in {failed} of {runs} runs at {sha}, and in none of {now} runs at this head."
STILL_FAILS = "**Still fails**: it failed in {failed} of {runs} runs at {sha}."
UNKNOWN = "**Not enough runs to tell** whether it is fixed: it failed in {failed} of {runs} runs at {sha}.{needed}"
NEEDED = " {runs} without a failure would tell."
TABLE = "| commit | failed | failure rate | 95 % interval |\n| --- | --- | --- | --- |"
ROW = "| {side} {sha} | {failed} of {runs} | {rate:.0%} | {low:.0%} to {high:.0%} |"
SIDE_NAMES = {HEAD: "head", BASE: "base"}
REGRESSION_NAMES = {HEAD: "failing commit", BASE: "last good commit"}
NO_BASE = "The {base} did not run: the lab's agent does not offer it (`--can sides`), or there was no time."
SKIPPED = "Skipped runs at the {side}, which do not count: {count}."
FAILURES = "Failures at the {side}:"
KIND = "{number}. {runs}: {message}"
OTHER_KINDS = "\n{runs} failed in other ways."
NO_MESSAGE = "a failure without a message"
FULL_TEXT = "<details><summary>The text of failure {number}</summary>\n\n{text}\n\n</details>"
LOG = "[The lab's log]({url})"
OFFER = "The head is now {sha}. To see whether this is fixed, comment {command}."
REPEAT = "After a push, comment {command} again: the answer then says whether it is fixed."
REPEAT_ON_ISSUE = "To repeat this, comment {command} again."

# The audit log
WHY_REPRODUCED = "{test} ran: {failed} of {runs} failed at the head"
WHY_NO_RESULT = "no result: {reason}"
WHY_UNWANTED = "nobody waits for it any more: {reason}"

_PLAIN = Pattern(r"[A-Za-z0-9./:=+\[\]_-]*[A-Za-z0-9\]]")
_EMPHASIS = Pattern(r"(?:^|[^A-Za-z0-9_])_|_[^A-Za-z0-9_]")
"""An ID that a comment can have as it is, but for this: in any other, something may be Markdown or a quotation mark."""

MOST_MESSAGE = 200
"""Characters of a failure's message in the answer."""
MOST_ANSWER = 40_000
"""Characters of an answer; further texts of failures are left out."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The runs of a test at an earlier head."""

    sha: str
    attempts: TestAttempts


def failure_rate(attempts: TestAttempts) -> FailureRate:
    """Return the failure rate of a test's attempts."""
    return FailureRate(attempts.failed, attempts.attempts)


def reproduce_command(mention: str, job: DeviceJob) -> str:
    """Return the command that requests a job again."""
    count = f" x{job.few_tests.repeat}"
    return f"{mention} reproduce {named_test(job.few_tests.tests[0])} on {job.about.full_name}{count}"


def named_test(test: str) -> str:
    """Return the ID of a test as a command names it: as code, unless it is a plain word."""
    is_plain = _PLAIN.fullmatch(test) and not _EMPHASIS.search(test)
    return test if is_plain else f"`` {test} ``" if "`" in test else f"`{test}`"


def repeat_offer(head: str, command: str) -> str:
    """Offer to repeat runs at a new head with a command."""
    return OFFER.format(sha=code(head[:7]), command=code(command))


def reproduced(job: DeviceJob, earlier: EarlierRuns | None, log_url: str, command: str) -> str:
    """Return the answer about a job that ended (Markdown); `command` requests it again.

    `earlier` are the runs of the same test at an earlier head, if it failed there.
    """
    test = job.few_tests.tests[0]
    names = {"test": code(test), "sha": code(job.sha[:7]), "name": code(job.about.full_name)}
    outcome = FewTestsOutcome.load(job.outcome)
    head, base = outcome.of(test), outcome.of(test, BASE)
    again = (REPEAT if job.pull_request else REPEAT_ON_ISSUE).format(command=code(command))
    names_of_sides = SIDE_NAMES if job.pull_request else REGRESSION_NAMES
    if not job.outcome:
        note = LAB_SAYS.format(note=code(truncate(job.note, MOST_MESSAGE))) if job.note else ""
        reason = " ".join(filter(None, [ENDS[job.end], note]))
        return "\n\n".join([NO_RESULT.format(**names, reason=reason), again])
    counts = {"failed": head.failed, "runs": head.attempts}
    first = NOT_RUN if not head.attempts else REPRODUCED if head.failed else PASSED
    sentences = [first.format(**names, **counts), *_comparison(head, base, names_of_sides[BASE])]
    lines = [*_repetition(head, earlier), " ".join(sentences)]
    sides = [(HEAD, job.sha, head), *([(BASE, job.few_tests.base_sha, base)] if job.few_tests.base_sha else [])]
    rows = [_row(names_of_sides[side], side_sha, attempts) for side, side_sha, attempts in sides if attempts.attempts]
    if rows:
        lines.append("\n".join([TABLE, *rows]))
    if job.few_tests.base_sha and not base.attempts:
        lines.append(NO_BASE.format(base=names_of_sides[BASE]))
    number, texts = 1, list[str]()
    for side, _, attempts in sides:
        lines += _failures(names_of_sides[side], attempts, number)
        texts += [
            FULL_TEXT.format(number=kind_number, text=fenced(kind.text))
            for kind_number, kind in enumerate(attempts.kinds, number)
            if kind.text
        ]
        number += len(attempts.kinds)
    last = [*([LOG.format(url=log_url)] if log_url else []), again]
    return "\n\n".join([*lines, *_within(texts, MOST_ANSWER - sum(map(len, [*lines, *last]))), *last])


def _comparison(head: TestAttempts, base: TestAttempts, base_name: str) -> list[str]:
    if not head.attempts or not base.attempts or not (head.failed or base.failed):
        return []
    more = chance_of_more(failure_rate(head), failure_rate(base))
    text = MORE_OFTEN if more >= CONFIDENCE else LESS_OFTEN if more <= 1 - CONFIDENCE else NO_DIFFERENCE
    return [text.format(base=base_name)]


def _repetition(head: TestAttempts, earlier: EarlierRuns | None) -> list[str]:
    if earlier is None or not head.attempts:
        return []
    before = failure_rate(earlier.attempts)
    words = {"failed": before.failed, "runs": before.runs, "sha": code(earlier.sha[:7])}
    match repeat_verdict(before, failure_rate(head)):
        case RepeatVerdict.FIXED:
            return [FIXED.format(**words, now=head.attempts)]
        case RepeatVerdict.STILL_FAILS:
            return [STILL_FAILS.format(**words)]
        case _:
            count = runs_to_tell(before, MOST_REPEATS)
            return [UNKNOWN.format(**words, needed=NEEDED.format(runs=counted(count, "run")) if count else "")]


def _row(side: str, sha: str, attempts: TestAttempts) -> str:
    rate = failure_rate(attempts)
    low, high = rate.interval
    words = {"failed": rate.failed, "runs": rate.runs, "rate": rate.value, "low": low, "high": high}
    return ROW.format(side=side, sha=code(sha[:7]), **words)


def _failures(side: str, attempts: TestAttempts, first_number: int) -> list[str]:
    lines = [SKIPPED.format(count=attempts.skipped, side=side)] if attempts.skipped else []
    if attempts.kinds:
        kinds = [
            KIND.format(number=number, runs=counted(kind.count, "run"), message=_message(kind.message))
            for number, kind in enumerate(attempts.kinds, first_number)
        ]
        others = attempts.failed - sum(kind.count for kind in attempts.kinds)
        more = [OTHER_KINDS.format(runs=counted(others, "run"))] if others > 0 else []
        lines.append("\n".join([FAILURES.format(side=side), *kinds, *more]))
    return lines


def _message(message: str) -> str:
    return code(truncate(message, MOST_MESSAGE)) if message else NO_MESSAGE


def _within(texts: Sequence[str], characters: int) -> list[str]:
    """Return the first texts that together have at most so many characters."""
    kept: list[str] = []
    for text in texts:
        characters -= len(text)
        if characters < 0:
            break
        kept.append(text)
    return kept
