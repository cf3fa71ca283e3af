"""What needs a person, as the page of operators begins with it: pure, from facts that are already read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from bot.core.health import CheckResult
from bot.core.listing import counted
from bot.engine.retry import LOST
from bot.timers.timers import STOPPED, TimerState
from bot.web.answers import AnswerPart
from handlers.operate import texts

FAILED = "failed"
MOST_DETAILS = 5
"""Details of one matter; its count says how many there are."""
MOST_FAILURES = 20
"""Failures that are read to count them."""
CRASHED = LOST.partition(",")[0]
"""How the text of a job begins that failed as the likely cause of crashes."""
DELIVERIES_PATH, STATE_PATH = "/operate?state=failed", "/operate/state"


class OperatorMatter(BaseModel, extra="forbid"):
    """A matter that needs a person: `summary` in a few words, then details and the remedy."""

    summary: str
    details: list[str] = Field(description="At most five.")
    remedy: str
    href: str = Field(description="The page that shows more.")


@dataclass(frozen=True, slots=True)
class LowQuota:
    """A quota that is nearly used up; `reset` is a text."""

    name: str
    resource: str
    remaining: int
    limit: int
    reset: str


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What the page has read. `failures` are the reasons of the newest failed deliveries, at most MOST_FAILURES.

    `late` are timers that did not run at their last scheduled time; `silent_workers` is None without any worker.
    """

    problem: str
    config_problem: str
    silent_workers: int | None
    failures: Sequence[str]
    timers: Sequence[TimerState]
    late: Sequence[TimerState]
    checks: Sequence[CheckResult]
    low_quotas: Sequence[LowQuota]


def attention_of(facts: OperatorFacts) -> list[OperatorMatter]:
    """Return what needs a person, the most urgent first."""
    return list(_matters(facts))


def operator_answer(matters: Sequence[OperatorMatter]) -> list[AnswerPart]:
    """Return the sentence that the page begins with."""
    if not matters:
        return [AnswerPart(text=texts.NEEDS_NOBODY)]
    parts = [AnswerPart(text=texts.NEEDS_A_PERSON)]
    for number, matter in enumerate(matters):
        parts += [AnswerPart(text="; ")] if number else []
        parts.append(AnswerPart(text=matter.summary, href=matter.href))
    return [*parts, AnswerPart(text=".")]


def _matters(facts: OperatorFacts) -> Iterator[OperatorMatter]:
    if facts.problem:
        yield _matter(texts.NO_JOBS, [facts.problem], "", STATE_PATH)
    if facts.config_problem:
        yield _matter(texts.OLD_CONFIG, [facts.config_problem], texts.CORRECT_CONFIG, STATE_PATH)
    if facts.silent_workers is None:
        yield _matter(texts.NO_WORKER, [], texts.START_WORKER, STATE_PATH)
    elif facts.silent_workers:
        workers = "worker is" if facts.silent_workers == 1 else "workers are"
        summary = texts.SILENT.format(count=facts.silent_workers, workers=workers)
        yield _matter(summary, [], texts.OTHERS_TAKE_OVER, STATE_PATH)
    yield from _deliveries(facts.failures)
    yield from _checks(facts.checks)
    yield from _timers(facts)
    if facts.low_quotas:
        details = [
            texts.QUOTA_TEXT.format(
                name=quota.name,
                remaining=quota.remaining,
                limit=quota.limit,
                resource=quota.resource,
                reset=quota.reset,
            )
            for quota in facts.low_quotas
        ]
        summary = texts.LOW_QUOTA.format(count=counted(len(details), "quota"))
        yield _matter(summary, details, texts.QUOTA_REMEDY, STATE_PATH)


def _deliveries(failures: Sequence[str]) -> Iterator[OperatorMatter]:
    crashes = [reason for reason in failures if CRASHED in reason]
    if crashes:
        jobs = counted(len(crashes), "job")
        details = [texts.CRASHES_TEXT.format(jobs="it" if len(crashes) == 1 else "one of them")]
        yield _matter(texts.CRASHING.format(count=jobs), details, texts.CRASHES_REMEDY, DELIVERIES_PATH)
    other_failures = [reason for reason in failures if CRASHED not in reason]
    if other_failures:
        count = counted(len(other_failures), "delivery", "deliveries")
        if len(failures) == MOST_FAILURES:
            count = f"{texts.OR_MORE.format(count=len(other_failures))} deliveries"
        details = list(dict.fromkeys(other_failures))
        yield _matter(texts.DELIVERIES_FAILED.format(count=count), details, texts.REPLAY_THEM, DELIVERIES_PATH)


def _checks(checks: Sequence[CheckResult]) -> Iterator[OperatorMatter]:
    failing = [result for result in checks if result.remedy]
    if failing:
        details = [f"{result.text.rstrip('.')}. {result.remedy}" for result in failing]
        yield _matter(texts.CHECKS_FAIL.format(count=counted(len(failing), "check")), details, "", STATE_PATH)


def _timers(facts: OperatorFacts) -> Iterator[OperatorMatter]:
    failed = [state for state in facts.timers if state.outcome == FAILED]
    stopped = {state.repository: state.reason for state in facts.timers if state.outcome == STOPPED}
    for states, summary, detail, remedy in (
        (failed, texts.TIMERS_FAILED, texts.FAILED_TEXT, texts.FAILED_REMEDY),
        (facts.late, texts.TIMERS_LATE, texts.LATE_TEXT, texts.LATE_REMEDY),
    ):
        if states:
            details = [detail.format(timer=state.name, repository=state.repository) for state in states]
            yield _matter(summary.format(count=counted(len(states), "timer")), details, remedy, STATE_PATH)
    if stopped:
        details = [texts.STOPPED_TEXT.format(repository=name, reason=reason) for name, reason in stopped.items()]
        count = counted(len(stopped), "repository", "repositories")
        yield _matter(texts.STOPPED_NAMES.format(count=count), details, texts.STOPPED_REMEDY, STATE_PATH)


def _matter(summary: str, details: Sequence[str], remedy: str, href: str) -> OperatorMatter:
    return OperatorMatter(summary=summary, details=list(details[:MOST_DETAILS]), remedy=remedy, href=href)
