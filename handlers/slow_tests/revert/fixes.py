"""Slow tests without a command: for our own reverts, and for the fixes of reverted pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.events import PullRequestEvent
from bot.core.patterns import Pattern, escape_pattern
from bot.effects.remember import StoreRecord
from bot.plan.handler import Context, Plan, Router
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.records import REVERT_REQUEST, REVERTED, RevertedPull, SlowTestsChoice
from handlers.slow_tests.revert import texts

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery, PullRequest

MOST_REFERENCES = 20
"""The most numbers that are read from a title and a description."""
_MARKER = Pattern(r"<!-- nightjar:revert:([0-9]{1,9}) -->")

router = Router()


def _accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    pull = PullRequestEvent.of(delivery.payload).pull
    repository = delivery.payload.text("repository", "full_name")
    return bool(pull.merged_at) and reverted_number(pull, repository) is not None


@router.on("pull_request", "closed", name="reverts", feature=SLOW_TESTS.name, accepts=_accepts)
async def remember_revert(context: Context) -> Plan:
    """Remember which pull request a merged one has reverted: by the line that the bot and GitHub's button write."""
    pull = PullRequestEvent.of(context.delivery.payload).pull
    number = reverted_number(pull, context.repository.full_name)
    if number is None:
        return Plan(why=texts.NO_REVERT)
    reverted = RevertedPull(number, pull.number)
    # A fix may also revert the revert, and name only that.
    keys = [REVERTED.of(context.repository.id, known) for known in dict.fromkeys((number, pull.number))]
    why = texts.REMEMBERED.format(revert=pull.number, number=number)
    return Plan(tuple(StoreRecord.of(key, reverted) for key in keys), why=why)


async def automatic_choice(context: Context, pull: PullRequest) -> SlowTestsChoice | None:
    """Return the choice for our own revert, or for the fix of a reverted pull request; None for any other.

    Its time is empty, so every command is later.
    """
    repository = context.repository
    marker = _MARKER.search(pull.body) if pull.author.id == context.me.user_id else None
    if marker is not None:
        request = await context.records.get(REVERT_REQUEST.of(repository.id, int(marker[1])))
        return SlowTestsChoice(on=True, by=request.by, by_id=request.by_id, at="") if request else None
    numbers = references(f"{pull.title}\n{pull.body}", repository.full_name)
    keys = [REVERTED.of(repository.id, number) for number in numbers]
    stored = await context.records.get_some(keys) if keys else {}
    reverted = next((stored[key.name] for key in keys if key.name in stored), None)
    return SlowTestsChoice(on=True, by="", by_id=0, at="", fixes=reverted.number) if reverted else None


def references(text: str, repository: str) -> list[int]:
    """Return the numbers of the repository's pull requests that a text names, each once: as `#12`, or by address."""
    name = escape_pattern(repository)
    pattern = Pattern(rf"(?:(?:^|[^\w/#&-])(?:{name})?#|/{name}/pull/)([0-9]{{1,9}})\b", ignore_case=True)
    numbers: dict[int, None] = {}
    for match in pattern.finditer(text):
        numbers[int(match[1])] = None
        if len(numbers) == MOST_REFERENCES:
            break
    return list(numbers)


def reverted_number(pull: PullRequest, repository: str) -> int | None:
    """Return the number of the pull request that this one says to revert, alone on a line; None if there is none."""
    pattern = Pattern(rf"(?:^|\n)Reverts {escape_pattern(repository)}#([0-9]{{1,9}})\s*(?:\n|$)", ignore_case=True)
    match = pattern.search(pull.body)
    return int(match[1]) if match else None
