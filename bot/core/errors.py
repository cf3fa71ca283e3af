"""The two families of error, and what the engine does about each.

A `UserError` is for the person: its text is shown as it is and says what to do next. Everything else is for the
log, and the person sees only the delivery's id. Independently of that, an error is either worth another try
(`TryAgain`) or final, and of what is final a `Refusal` alone is no failure.
"""

from collections.abc import Iterable

from nightjar_formats.errors import TryAgain as TryAgain
from nightjar_formats.errors import UserError as UserError

NO_HANDLER = "this version has no handler {name!r}; replay the delivery with a version that has it"
NO_EFFECT = "this version has no effect {kind!r}; replay the delivery with a version that has it"


class Refusal(Exception):
    """Mark an error as the answer to what a person asked for, not as a failure of the bot.

    Final. The bot shows the error to the person like any other, but the job ends as `refused`: an operator has nothing
    to check or to replay.
    """


class RefusedToPerson(Refusal, UserError):
    """Refuse what a person asked for: they may not, the rules forbid it, or something is in the way."""


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
    """A webhook payload lacks what a handler needs. Final, for that handler alone.

    `path` is where in the payload, as in `pull_request.head.sha`.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


OUTAGE_PATIENCE = 3 * 86400.0
"""Seconds for which work waits for a service that gives no answer: as long as GitHub itself offers a delivery again.

https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks
"""


class Away(TryAgain):
    """A service that we depend on gives no answer. Waiting for it uses up no tries.

    `patience` is how long to wait for it, in seconds since the first try that found it so.
    """

    patience: float = OUTAGE_PATIENCE


class GiveWay(TryAgain):
    """Others come first: the work waits for `retry_in` seconds, and then behind all other work under its lock.

    Who raises it decides when to stop waiting.
    """

    retry_in: float

    def __init__(self, reason: str, *, retry_in: float) -> None:
        super().__init__(reason, retry_in=retry_in)


class AnswerError(TryAgain):
    """An answer of GitHub's lacks a field that it always has: GitHub is most likely in trouble, so try again.

    A delivery that lacks a field is another case (`PayloadError`): no retry changes that. `path` is the place in the
    answer.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"GitHub's answer: {path}: {problem}")
        self.path = path


class StorageError(Exception):
    """Something could not be stored. Nothing is known to have happened: ask again later."""


class SettingsError(Exception):
    """The environment cannot be used; `problems` holds one line for each variable, which names it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StartError(Exception):
    """A process cannot start, or had to end; the text is one line for the operator."""
