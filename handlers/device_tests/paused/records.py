"""What the bot remembers of paused targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.engine.records import Record
from bot.github.pull_heads import repository_ids
from handlers.device_tests.paused.rule import TargetPause, TargetPauses

if TYPE_CHECKING:
    from bot.engine.records import Records

PAUSES = Record("target-pauses", 1, TargetPauses, "the last pauses of a target: until when, who and why", days=180)


async def stored_pauses(records: Records, repository_id: int) -> Mapping[str, TargetPauses]:
    """Return the pauses of a repository's targets, by LAB/TARGET."""
    stored = await records.under(PAUSES, repository_id)
    return {name.replace(":", "/", 1): pauses for name, pauses in stored.items()}


async def paused_targets(records: Records, repository_id: int, moment: float) -> Mapping[str, TargetPause]:
    """Return the targets of a repository that are paused at a moment, by LAB/TARGET."""
    stored = await stored_pauses(records, repository_id)
    return {name: pause for name, pauses in stored.items() if (pause := pauses.at(moment))}


async def paused_in_repositories(
    records: Records, repositories: Iterable[str], moment: float
) -> Mapping[TargetKey, TargetPause]:
    """Return the targets of several repositories, given as `owner/name`, that are paused at a moment."""
    stored = {
        tuple(name.split(":", 2)): pause
        for name, pauses in (await records.under(PAUSES)).items()
        if (pause := pauses.at(moment))
    }
    ids = await repository_ids(records, repositories) if stored else {}
    names = {str(repository_id): name for name, repository_id in ids.items()}
    return {
        TargetKey(names[repository_id], lab, target): pause
        for (repository_id, lab, target), pause in stored.items()
        if repository_id in names
    }
