"""`@ci lab pause hexagon-v73 until 2026-12-01 because the board moves` and `@ci lab resume hexagon-v73`.

The person is identified by ID, never by login: somebody else may register a login that was given up.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.effects.remember import StoreRecord
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code, truncate
from bot.plan.effect import Effect
from handlers.device_tests.paused import texts
from handlers.device_tests.paused.effects import CancelPausedJobs
from handlers.device_tests.paused.records import PAUSES
from handlers.device_tests.paused.rule import TargetPause, TargetPauses, end_of_pause, read_pause
from handlers.results.config import LAB_RESULTS, labs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.config import RepositoryConfig
    from bot.results.settings.results import Results

KEY = "results"
MAINTAINERS = frozenset({"maintain", "admin"})
LONGEST_NAME = 130
EXAMPLE_DAYS = 7


def is_contact(config: RepositoryConfig, person_id: int) -> bool:
    """Say whether a person is a contact of a lab, by their ID."""
    return any(person_id in lab.contact_ids for lab in labs_of(config).values())


LAB_PAUSE = CommandSpec(
    name="lab pause",
    summary=texts.PAUSE_SUMMARY,
    example="lab pause hexagon-v73 until 2026-12-01 because the board moves",
    feature=KEY,
    allowed=("maintain",),
    fixed=True,
    arguments=Arguments(names="TARGET until DATE [because REASON]", sentence=True),
    allows_person=is_contact,
)
LAB_RESUME = CommandSpec(
    name="lab resume",
    summary=texts.RESUME_SUMMARY,
    example="lab resume hexagon-v73",
    feature=KEY,
    allowed=("maintain",),
    fixed=True,
    arguments=Arguments(names="TARGET"),
    allows_person=is_contact,
)


async def lab_pause(request: CommandRequest, command: Command) -> CommandAnswer:
    """Pause the named targets until a day, and cancel their jobs that no lab has."""
    moment, words = request.context.delivery.received_at, read_pause(command.names)
    example = (datetime.fromtimestamp(moment, UTC) + timedelta(days=EXAMPLE_DAYS)).date().isoformat()
    if not words.targets or not words.date:
        usage = code(f"{request.mention} {LAB_PAUSE.name} hexagon-v73 until {example}")
        return CommandAnswer(say=texts.USAGE.format(command=usage), done=False)
    until = end_of_pause(words.date, moment)
    if until is None:
        return CommandAnswer(say=texts.bad_date(words.date, example), done=False)
    pause = TargetPause(moment, until, request.by.login, request.by.id, truncate(words.reason, texts.MOST_REASON))

    def change(name: str, pauses: TargetPauses) -> tuple[TargetPauses | None, str]:
        until_text, reason = texts.day_text(until), texts.reason_text(pause)
        text = texts.PAUSED.format(name=name, until=until_text, reason=reason)
        return pauses.paused(pause, request.comment.written_at), text

    return await _change_pauses(request, words.targets, change, cancels=True)


async def lab_resume(request: CommandRequest, command: Command) -> CommandAnswer:
    """End the pauses of the named targets."""
    moment = request.context.delivery.received_at
    if not command.names:
        usage = code(f"{request.mention} {LAB_RESUME.example}")
        return CommandAnswer(say=texts.RESUME_USAGE.format(command=usage), done=False)

    def change(name: str, pauses: TargetPauses) -> tuple[TargetPauses | None, str]:
        if pauses.at(moment) is None:
            return None, texts.NOT_PAUSED.format(name=name)
        return pauses.resumed(moment, request.comment.written_at), texts.RESUMED.format(name=name)

    return await _change_pauses(request, command.names, change, cancels=False)


async def _change_pauses(
    request: CommandRequest,
    names: Iterable[str],
    change: Callable[[str, TargetPauses], tuple[TargetPauses | None, str]],
    *,
    cancels: bool,
) -> CommandAnswer:
    """Change the pauses of targets, and say what happened to each.

    `change` gets a target, as code, and its pauses; it returns the new ones (None for no change) and a sentence.
    """
    context, results = request.context, request.context.config.of(LAB_RESULTS)
    assert results is not None, "the command is on only where the feature is"
    is_maintainer = await role_of(context.github, context.repository.full_name, request.by) in MAINTAINERS
    effects, lines, done = list[Effect](), list[str](), True
    for name in names:
        targets = targets_named(results, name)
        keys = [key for key in targets if is_maintainer or request.by.id in results.labs[key.lab].contact_ids]
        if not keys:
            text = texts.NOT_YOURS if targets else texts.UNKNOWN_TARGET
            lines.append(text.format(name=code(truncate(name, LONGEST_NAME))))
            done = False
        for target in keys:
            key = PAUSES.of(context.repository.id, target.lab, target.target)
            stored = await context.records.get(key) or TargetPauses((), "")
            if stored.commented_at > request.comment.written_at:
                # Webhooks arrive in any order, and a redelivery late: the latest comment counts.
                lines.append(texts.OVERTAKEN.format(name=code(target.full_name)))
                continue
            changed, text = change(code(target.full_name), stored)
            lines.append(text)
            if changed is not None:
                effects.append(StoreRecord.of(key, changed))
                effects += [CancelPausedJobs(target.lab, target.target)] if cancels else []
    return CommandAnswer(tuple(effects), "\n".join(lines), done=done)


def targets_named(results: Results, name: str) -> list[TargetKey]:
    """Return the targets of all labs that a name means, TARGET or LAB/TARGET; their keys have no repository."""
    folded = name.casefold()
    keys = [TargetKey("", lab, target) for lab, settings in results.labs.items() for target in settings.targets]
    return [key for key in keys if folded in (key.target.casefold(), key.full_name.casefold())]


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((LAB_PAUSE, lab_pause), (LAB_RESUME, lab_resume))
