"""Set the check run `nightjar/lint`: what to improve in a pull request's title and text. It never fails.

The predecessor failed the build, and was removed because of false positives (TVM #19798): it took e-mail addresses and
names in code for people (TVM #12840, #12848), and names after `cc`, which another of its bots needed (TVM #18432).
Here, a name outside of code causes only a warning, and a name after `cc` none.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.core.events import MERGE_GROUP, PullRequest
from bot.core.run_in_thread import run_in_thread
from bot.core.titles import folded, tags_of
from bot.effects.checks import CHECK_RUN, PutCheckRun
from bot.feature import Feature
from bot.github.check_runs import NEUTRAL, SUCCESS, Block, CheckContent, joined_blocks
from bot.github.merge_queue import CHECKS_REQUESTED, MergeGroup
from bot.github.pull_heads import head_of, pulls_with_head
from bot.github.text.commit_message import without_template
from bot.github.text.markdown import code, truncate
from bot.github.text.mentions import mentioned, parse_ccs
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import pull_page_url
from handlers.changed_files.changes import read_proposed
from handlers.lint.config import KEYS, LINT
from handlers.lint.texts import (
    ADVICE,
    ALL_IS_WELL,
    CHECKED_ON_PULLS,
    FAULTS,
    MOVED,
    NO_TEXT,
    NO_TITLE,
    NO_TITLE_IN_GROUP,
    ONE_FAULT,
    PEOPLE,
    PERIOD,
    UNKNOWN_TAGS,
    WARNED,
    WELL,
)
from handlers.skip_ci.config import SKIP_CI
from handlers.teams.config import TEAMS
from handlers.teams.handler import KnownTopics, topics_of

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME, AGAIN_NAME, KEY = "lint", "lint-again", "lint"
CHECK = "nightjar/lint"
"""The check run's name."""
MOST_SHOWN = 50
"""The most tags or names in one line."""
LONGEST_SHOWN = 60
"""The most characters of a tag that the check run shows."""


router = Router()


@dataclass(frozen=True, slots=True)
class LintRules:
    """The rules for a pull request: `tags` are the known tags, folded, or None if every tag is allowed.

    `owner` is the repository's; `not_meant` are lowercase names that the lint ignores, such as the bot's own.
    """

    tags: Collection[str] | None
    owner: str
    not_meant: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class LintFindings:
    """The faults of a pull request, each with its fix, in Markdown; `people` is a warning, empty if there is none."""

    faults: tuple[str, ...] = ()
    people: str = ""


def decide_lint(title: str, body: str, rules: LintRules) -> LintFindings:
    """Find the faults of a title and a text."""
    faults = []
    if not title.strip():
        faults.append(NO_TITLE)
    if title.rstrip().endswith("."):
        faults.append(PERIOD)
    unknown = [tag for tag in tags_of(title) if rules.tags is not None and folded(tag) not in rules.tags]
    if unknown:
        faults.append(
            UNKNOWN_TAGS.format(tags=_list_quoted(unknown), known=_list_quoted(sorted(rules.tags or ())) or "none")
        )
    if not without_template(body, ()):
        faults.append(NO_TEXT)
    ccs = parse_ccs(body)
    allowed = {name.lower() for name in (*ccs.users, *ccs.teams)} | set(rules.not_meant)
    people = [name for name in mentioned(f"{title}\n\n{body}", rules.owner) if name.lower() not in allowed]
    return LintFindings(tuple(faults), PEOPLE.format(names=_list_quoted(people)) if people else "")


def lint_check_run(findings: LintFindings) -> CheckContent:
    """Return the check run: neutral if there are faults, else a success, with or without a warning."""
    count = len(findings.faults)
    title = WELL if not count else ONE_FAULT if count == 1 else FAULTS.format(count=count)
    lines = [*findings.faults, findings.people] if findings.faults or findings.people else [ALL_IS_WELL]
    return CheckContent(
        # `neutral` satisfies a required check, `failure` does not.
        # https://docs.github.com/pull-requests/collaborating-with-pull-requests/collaborating-on-repositories-with-code-quality-features/about-status-checks
        conclusion=NEUTRAL if findings.faults else SUCCESS,
        title=title + (WARNED if findings.people else ""),
        summary=joined_blocks([*(Block("a comment", line) for line in lines), Block("", ADVICE)]),
    )


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a delivery changes the head, the title or the text of an open pull request."""
    payload = delivery.payload
    changed = payload.has("changes", "title") or payload.has("changes", "body")
    return payload.text("pull_request", "state") == "open" and (delivery.action != "edited" or changed)


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "synchronize"),
    name=NAME,
    feature=KEY,
    accepts=accepts,
)
async def scan(context: Context) -> Plan:
    """Check the title and the text, and report the faults in a check run on the head."""
    as_of, pull = time.time(), PullRequest.of(context.delivery.payload.at("pull_request"))
    recorded_head = await head_of(context.records, context.repository.id, pull.number)
    if recorded_head is not None and recorded_head.updated_at > pull.updated_at:
        # Webhooks arrive in any order, so ask GitHub for the current title and text.
        current = (await read_proposed(context.github, context.repository.full_name, pull.number)).pull
        # That push has an event of its own, which checks the new head.
        if current.head_sha != pull.head_sha:
            return Plan(why=MOVED)
        pull = current
    return await _put_check(context, pull, as_of)


def _is_rerun_request(delivery: Delivery, config: RepositoryConfig) -> bool:
    return delivery.event == "check_suite" or delivery.payload.text("check_run", "name") == CHECK


@router.on("check_run", "rerequested", name=AGAIN_NAME, feature=KEY, accepts=_is_rerun_request)
@router.on("check_suite", "rerequested", name=AGAIN_NAME, feature=KEY, accepts=_is_rerun_request)
async def scan_again(context: Context) -> Plan:
    """Check again, because somebody asked to rerun this check or all checks of the commit."""
    as_of, rerun = time.time(), context.delivery.payload.at(context.delivery.event)
    sha, is_own = rerun.string("head_sha"), rerun.integer("app", "id") == context.me.app_id
    if not is_own or not await context.records.get(CHECK_RUN.of(context.repository.id, sha, CHECK)):
        return NOTHING
    numbers = await pulls_with_head(context.records, context.repository.id, sha)
    if not numbers:
        return Plan(why=MOVED)
    pull = (await read_proposed(context.github, context.repository.full_name, numbers[-1])).pull
    return await _put_check(context, pull, as_of, is_rerun=True) if pull.head_sha == sha else Plan(why=MOVED)


async def _put_check(context: Context, pull: PullRequest, as_of: float, *, is_rerun: bool = False) -> Plan:
    tags, teams = await _known_tags(context)
    rules = LintRules(
        tags=tags,
        owner=context.repository.full_name.partition("/")[0],
        not_meant=[mention.removeprefix("@").lower() for mention in context.app_config.mentions],
    )
    findings = await run_in_thread(partial(decide_lint, pull.title, pull.body, rules), pull.body)
    content = lint_check_run(findings)
    page = pull_page_url(context, pull.number)
    check_run = PutCheckRun(CHECK, pull.head_sha, str(pull.number), content, as_of, is_rerun, page)
    effects: tuple[Effect, ...] = (teams.store, check_run) if teams.store else (check_run,)
    return Plan(effects, why=teams.with_note(content.title))


async def _known_tags(context: Context) -> tuple[Collection[str] | None, KnownTopics]:
    """Return the known tags, folded, or None if every tag is allowed; and the teams' topics, which are tags."""
    lint, teams, skip = context.config.of(LINT), context.config.of(TEAMS), context.config.of(SKIP_CI)
    if lint is None or lint.tags is None:
        return None, KnownTopics({})
    followed = await topics_of(context, teams) if teams is not None else KnownTopics({})
    skips = [folded(skip.title_tag)] if skip is not None else []
    return {*map(folded, lint.tags), *followed.topics, *skips} - {""}, followed


def _list_quoted(words: Collection[str]) -> str:
    quoted = [code(truncate(word, LONGEST_SHOWN)) for word in list(words)[:MOST_SHOWN]]
    return ", ".join(quoted) + (", …" if len(words) > MOST_SHOWN else "")


@router.on(MERGE_GROUP, CHECKS_REQUESTED, name="merge-group-lint", feature=KEY)
async def show_on_group(context: Context) -> Plan:
    """Show on a group of the merge queue that there is no title to check."""
    group = MergeGroup.of(context.delivery.payload)
    # If the check is required and not reported on the group, the queue waits until it times out.
    # https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
    content = CheckContent(SUCCESS, NO_TITLE_IN_GROUP, CHECKED_ON_PULLS)
    page = pull_page_url(context, group.number)
    check_run = PutCheckRun(CHECK, group.sha, group.branch, content, time.time(), details_url=page)
    return Plan((check_run,), why=NO_TITLE_IN_GROUP)


FEATURE = Feature(
    name="lint",
    config=KEYS,
    router=router,
    titles={"lint": "Title and text", "lint-again": "Title and text", "merge-group-lint": "Title and text"},
)
