"""Compose the sentence with which the page of a lab begins, and the next steps below it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import commit_path, run_path, view_path
from bot.web.answers import AnswerPart
from bot.web.page_filters import date, short
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import MOST_NAMED, MOST_STEPS, Sentence, lateness, phrase, sentence

if TYPE_CHECKING:
    from handlers.dashboard.labs.model import LabPage, LabTarget

UPLOADS_ID = "uploads"
"""The ID of the section with uploads without a result."""


def lab_answer(page: LabPage, repository: str, moment: float) -> Sentence:
    """Say which targets are late or have no usable results, since when, and whom to ask.

    `moment` is now, in seconds since 1970.
    """
    paused = [target for target in page.targets if target.paused]
    late = [target for target in page.targets if target.stale and not target.paused]
    unusable = [target for target in page.targets if target.unusable_since and not target.stale and not target.paused]
    if not late and not unusable and not paused:
        return sentence([phrase(texts.ON_TIME.format(targets=counted(len(page.targets), texts.TARGET)))])
    clauses = [[_grid(page, repository, target), *_lateness(page, repository, target, moment)] for target in late]
    clauses += [[_grid(page, repository, target), *_unusable(repository, target)] for target in unusable]
    clauses += [[_grid(page, repository, target), _pause(target)] for target in paused]
    return sentence(_some(clauses), _ask(page))


def _some(clauses: Sequence[Sentence]) -> Sentence:
    parts = list(chain.from_iterable((phrase(texts.CLAUSE_END), *clause) for clause in clauses[:MOST_NAMED]))[1:]
    unnamed = len(clauses) - MOST_NAMED
    return [*parts, phrase(texts.AND_MORE.format(more=counted(unnamed, "more target")))] if unnamed > 0 else parts


def _grid(page: LabPage, repository: str, target: LabTarget) -> AnswerPart:
    return phrase(target.target, view_path(repository, target=f"{page.lab}/{target.target}"))


def _lateness(page: LabPage, repository: str, target: LabTarget, moment: float) -> Sentence:
    newest = target.newest
    if newest is None:
        return [phrase(lateness(None))]
    href = run_path(repository, f"{page.lab}/{target.target}", newest.sha, newest.run_id)
    return [phrase(lateness(moment - newest.received_at.timestamp()), href)]


def _unusable(repository: str, target: LabTarget) -> Sentence:
    since = target.unusable_since
    assert since is not None
    day = texts.DAY_OF_COMMIT.format(day=date(since.committed_at.timestamp()), sha=short(since.sha))
    return [phrase(texts.UNUSABLE_SINCE), phrase(day, commit_path(repository, since.sha))]


def _pause(target: LabTarget) -> AnswerPart:
    pause = target.paused
    assert pause is not None
    return phrase(texts.PAUSED_UNTIL.format(day=date(pause.until.timestamp()), login=pause.by))


def _ask(page: LabPage) -> Sentence:
    return [phrase(texts.ASK.format(contacts=", ".join(page.contacts[:MOST_NAMED])))] if page.contacts else []


def lab_steps(page: LabPage) -> list[Sentence]:
    """Say what the lab and a maintainer can do about targets that are late or have no usable results."""
    steps: list[Sentence] = []
    if page.unusable:
        steps.append([phrase(texts.LAB), phrase(texts.READ_UPLOADS, f"#{UPLOADS_ID}")])
    missing = next((target for target in page.targets if target.stale and target.missing_commits), None)
    if missing:
        sha = missing.missing_commits[0].sha
        words = texts.SEND_RESULTS.format(target=missing.target, sha=short(sha))
        steps.append([phrase(texts.LAB), phrase(words, f"{page.github}/commit/{sha}")])
    if not page.contacts:
        steps.append([phrase(texts.MAINTAINER), phrase(texts.ADD_CONTACTS)])
    return steps[:MOST_STEPS]
