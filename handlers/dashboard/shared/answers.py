"""The parts of the sentences with which pages begin. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from bot.core.listing import counted
from bot.core.page_paths import history_path
from bot.web.answers import AnswerPart
from bot.web.page_filters import age
from handlers.dashboard.shared import answer_texts as texts

Sentence = list[AnswerPart]
MOST_NAMED = 3
"""The most targets, tests or repositories that a sentence names; it counts the rest."""
MOST_STEPS = 3
MINUTE = 60


def sentence(*clauses: Sequence[AnswerPart]) -> Sentence:
    """Join clauses to one sentence; empty ones are left out."""
    nonempty = [clause for clause in clauses if clause]
    parts = [
        part
        for number, clause in enumerate(nonempty)
        for part in ([AnswerPart(text=texts.CLAUSE_END)] if number else []) + list(clause)
    ]
    return [*parts, AnswerPart(text=".")] if parts else []


def phrase(words: str, href: str = "") -> AnswerPart:
    """Return a part of a sentence, a link if it has an address."""
    return AnswerPart(text=words, href=href)


def command(text: str) -> AnswerPart:
    """Return a command as a part of a sentence."""
    return AnswerPart(text=texts.shortened(text), is_command=True)


def name_list(names: Sequence[AnswerPart], noun: str) -> Sentence:
    """Write names with commas; of more than `MOST_NAMED`, the rest is counted as so many `noun`."""
    first_names = names[:MOST_NAMED]
    parts = list(chain.from_iterable((phrase(", "), name) for name in first_names))[1:]
    unnamed = len(names) - len(first_names)
    return [*parts, phrase(texts.AND_MORE.format(more=counted(unnamed, f"more {noun}")))] if unnamed else parts


def link_to_test(repository: str, test: str, target: str) -> AnswerPart:
    """Return a link to the page of a test, on one target if it is given."""
    return phrase(texts.shortened(test), history_path(repository, test, target))


def lateness(seconds: float | None) -> str:
    """Say how long a target has not reported, in seconds; None if it never has."""
    return texts.NEVER_REPORTED if seconds is None else texts.NOT_REPORTED.format(age=age(seconds))
