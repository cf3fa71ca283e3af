"""What the bot reports on a group of the merge queue, so that a queue which requires its checks goes on.

GitHub tests a commit of its own for each group, and waits on it for everything that the branch requires. Nobody asks
for slow tests there, nothing of it is skipped, and titles were looked at on the pull requests.
https://docs.github.com/webhooks/webhook-events-and-payloads#merge_group
"""

from __future__ import annotations

import time

from bot.config.types import matches
from bot.effects.checks import PutCheckRun
from bot.effects.statuses import DESCRIPTION_LIMIT, SetStatus
from bot.feature import Feature
from bot.github.check_runs import SUCCESS, CheckContent
from bot.github.markdown import truncate
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.lint import CHECK
from handlers.slow_tests.handler import BRANCH_PREFIX
from handlers.slow_tests.texts import ON_BRANCH

EVENT, ACTION = "merge_group", "checks_requested"
NAME = "merge-group"

SLOW_OFF = "Off: a group of the merge queue runs them only where `slow_tests: branches` names its branch"
NOT_SKIPPED = "CI runs: the merge queue tests what it is about to merge"
NO_TITLE = "A group of the merge queue has no title"
LOOKED_AT = "Titles and descriptions are looked at on the pull requests themselves."

router = Router()


@router.on(EVENT, ACTION, name=f"{NAME}-slow-tests", feature="slow_tests")
async def show_slow_tests(context: Context) -> Plan:
    """Show whether the group runs the slow tests."""
    config = context.config.slow_tests
    if config is None:
        return NOTHING
    sha, branch = _group(context)
    said = ON_BRANCH.format(branch=branch) if matches(config.branches, branch) else SLOW_OFF
    return Plan((SetStatus(sha, config.status, SUCCESS, truncate(said, DESCRIPTION_LIMIT)),), why=said)


@router.on(EVENT, ACTION, name=f"{NAME}-skip-ci", feature="skip_ci")
async def show_skip(context: Context) -> Plan:
    """Show that CI does not skip the group."""
    config = context.config.skip_ci
    if config is None:
        return NOTHING
    sha, _ = _group(context)
    return Plan((SetStatus(sha, config.status, SUCCESS, NOT_SKIPPED),), why=NOT_SKIPPED)


@router.on(EVENT, ACTION, name=f"{NAME}-lint", feature="lint")
async def show_lint(context: Context) -> Plan:
    """Show that there is no title to look at."""
    sha, branch = _group(context)
    content = CheckContent(SUCCESS, NO_TITLE, LOOKED_AT)
    return Plan((PutCheckRun(CHECK, sha, branch, content, time.time()),), why=NO_TITLE)


def _group(context: Context) -> tuple[str, str]:
    """Return the group's commit, and the branch that GitHub made for it."""
    group = context.delivery.payload.at(EVENT)
    return group.string("head_sha"), group.string("head_ref").removeprefix(BRANCH_PREFIX)


FEATURE = Feature(name="merge_group", router=router)
