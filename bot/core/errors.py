"""The two families of error, and what the engine does about each.

A `UserError` is for the person, who sees its text unchanged; the text says what to do next. Every other error is for
the log, and the person sees only the delivery's ID. Independently of that, the engine either tries again (`TryAgain`),
or the error is final. A final error is a failure, except a `Refusal`.
"""

from collections.abc import Iterable

from nightjar_formats.errors import TryAgain as TryAgain
from nightjar_formats.errors import UserError as UserError

NO_HANDLER = "this version has no handler {name!r}; replay the delivery with a version that has it"
NO_EFFECT = "this version has no effect {kind!r}; replay the delivery with a version that has it"


class Refusal(Exception):
    """Mark an error as the answer to a person's request, not as a failure of the bot.

    Final. The bot shows the error to the person like any other, but the job ends as `refused`: an operator has nothing
    to check or to replay.
    """


class RefusedToPerson(Refusal, UserError):
    """Refuse a person's request: they may not make it, the rules forbid it, or something prevents it."""


class UnknownName(Exception):
    """A stored job names something that this version of the program does not have. Final; a replay may work later."""


class UnknownHandler(UnknownName):
    """A job names a handler that this version does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(NO_HANDLER.format(name=name))


class UnknownEffect(UnknownName):
    """A job names a kind of effect that this version does not have."""

    def __init__(self, kind: str) -> None:
        super().__init__(NO_EFFECT.format(kind=kind))


class PayloadError(Exception):
    """A webhook payload lacks a field that a handler needs. Final, for that handler alone.

    `path` is the place of the field, as in `pull_request.head.sha`.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


OUTAGE_PATIENCE = 3 * 86400.0
"""Seconds for which work waits for a service that gives no answer: as long as GitHub itself offers a delivery again.

https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks
"""


class Away(TryAgain):
    """A service that the bot depends on does not answer. Waiting for it uses up no tries.

    `patience` is how long to wait for the service, in seconds since the first try without an answer.
    """

    patience: float = OUTAGE_PATIENCE


class GiveWay(TryAgain):
    """Other work goes first: this work waits for `retry_in` seconds, and then behind all other work under its lock.

    The code that raises the error decides when to stop waiting.
    """

    retry_in: float

    def __init__(self, reason: str, *, retry_in: float) -> None:
        super().__init__(reason, retry_in=retry_in)


class AnswerError(TryAgain):
    """An answer of GitHub's lacks a field that it should have: GitHub most likely has an incident, so try again.

    A delivery that lacks a field is another case (`PayloadError`): no retry changes that. `path` is the place in the
    answer.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"GitHub's answer: {path}: {problem}")
        self.path = path


class StorageError(Exception):
    """Something could not be stored, and it is unknown whether a part of it was. Try again later."""


class SettingsError(Exception):
    """The environment cannot be used; `problems` holds one line for each variable, which names it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StartError(Exception):
    """A process cannot start, or had to end; the text is one line for the operator."""


class DeclarationError(StartError, ValueError):
    """Features declare the same name, or one that is taken: one of another package may, and the operator must know."""
