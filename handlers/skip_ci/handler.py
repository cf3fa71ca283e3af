"""Set the status `ci/skip` on a pull request's head: whether CI may skip it, and why.

CI asks once, when it starts (`handlers.ci_decisions.service`). So if an edit changes the decision about a head, the
status says that CI has to run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_lab.ci.decision import CiVerdict

from bot.core.events import MERGE_GROUP
from bot.effects.remember import StoreRecord
from bot.effects.statuses import DESCRIPTION_LIMIT, SetStatus
from bot.github.check_runs import three_byte
from bot.github.merge_queue import CHECKS_REQUESTED, MergeGroup
from bot.github.pull_heads import head_of
from bot.github.text.markdown import truncate
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import pull_page_url
from handlers.changed_files.changes import (
    NOT_NEEDED,
    Changes,
    ProposedChange,
    UnknownChanges,
    read_changes,
    read_proposed,
)
from handlers.skip_ci import texts
from handlers.skip_ci.config import SKIP_CI as SKIP_CI_KEY
from handlers.skip_ci.decide import has_tag, skip_ci, skip_needs_files
from handlers.skip_ci.records import SKIP_CI, ShownSkip

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME = "skip-ci"
SUCCESS = "success"  # never anything else: the status informs and must not block a merge


router = Router()


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a delivery can change the decision: an edit must add or remove the tag, or change the base branch."""
    payload, rules = delivery.payload, config.of(SKIP_CI_KEY)
    if delivery.action != "edited" or payload.has("changes", "base") or rules is None:
        return True
    if not payload.has("changes", "title"):
        return False
    old_title, new_title = payload.text("changes", "title", "from"), payload.text("pull_request", "title")
    return has_tag(old_title, rules.title_tag) != has_tag(new_title, rules.title_tag)


async def show_failure(context: Context, message: str) -> Plan:
    """Show that CI runs because the changes could not be read."""
    proposed = ProposedChange.of(context.delivery.payload.at("pull_request"))
    return await _plan_status(
        context,
        proposed,
        skip_ci(context.config.of(SKIP_CI_KEY), proposed.pull.title, UnknownChanges(texts.NOT_LISTED)),
    )


@router.on(
    "pull_request",
    *("opened", "reopened", "synchronize", "edited"),
    name=NAME,
    feature="skip_ci",
    on_failure=show_failure,
    accepts=accepts,
)
async def show_on_head(context: Context) -> Plan:
    """Show on a head whether CI may skip it.

    Where the files decide, this takes two requests, and one more for each hundred files after the first.
    """
    proposed, rules = ProposedChange.of(context.delivery.payload.at("pull_request")), context.config.of(SKIP_CI_KEY)
    repository, number, sha = context.repository.full_name, proposed.pull.number, proposed.pull.head_sha
    if rules is None or not proposed.pull.is_open:
        return NOTHING
    recorded_head = await head_of(context.records, context.repository.id, number)
    if recorded_head is not None and recorded_head.updated_at > proposed.pull.updated_at:
        # Webhooks arrive in any order, so ask GitHub for the current title.
        proposed = await read_proposed(context.github, repository, number)
        if proposed.pull.head_sha != sha:
            return Plan(why=texts.NEWER_PUSH)
    changes: Changes = NOT_NEEDED
    if skip_needs_files(rules, proposed.pull.title):
        changes = await read_changes(context.github, repository, proposed)
    return await _plan_status(context, proposed, skip_ci(rules, proposed.pull.title, changes))


@router.on(MERGE_GROUP, CHECKS_REQUESTED, name="merge-group-skip-ci", feature="skip_ci")
async def show_on_group(context: Context) -> Plan:
    """Show that CI does not skip a group of the merge queue."""
    config = context.config.of(SKIP_CI_KEY)
    if config is None:
        return NOTHING
    group = MergeGroup.of(context.delivery.payload)
    page = pull_page_url(context, group.number)
    # If the status is required and not reported on the group, the queue waits until it times out.
    # https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
    status = SetStatus(group.sha, config.status, SUCCESS, texts.NOT_SKIPPED_IN_GROUP, page)
    return Plan((status,), why=texts.NOT_SKIPPED_IN_GROUP)


async def _plan_status(context: Context, proposed: ProposedChange, verdict: CiVerdict) -> Plan:
    rules, pull = context.config.of(SKIP_CI_KEY), proposed.pull
    if rules is None:
        return NOTHING
    key = SKIP_CI.of(context.repository.id, pull.number)
    status_record = status_for(verdict, pull.head_sha, await context.records.get(key))
    # A late retry may find that the status must say something else by now.
    recorded = SKIP_CI.dump(status_record)
    url = pull_page_url(context, pull.number)
    status = SetStatus(pull.head_sha, rules.status, SUCCESS, status_record.description, url, key.name, recorded)
    return Plan((StoreRecord.of(key, status_record), status), why=verdict.reason)


def status_for(verdict: CiVerdict, sha: str, last: ShownSkip | None) -> ShownSkip:
    """Return the status for a verdict; `last` is the last one that the pull request had, if any."""
    same_head = last if last is not None and last.sha == sha else None
    if same_head is not None and same_head.reason == verdict.reason:
        return ShownSkip(sha, verdict.reason, verdict.value, same_head.description, same_head.run_again)
    run_again = same_head is not None and (same_head.run_again or same_head.value != verdict.value)
    suffix = texts.RESTART_CI if run_again else ""
    description = truncate(three_byte(verdict.reason), DESCRIPTION_LIMIT - len(suffix)) + suffix
    return ShownSkip(sha, verdict.reason, verdict.value, description, run_again)
