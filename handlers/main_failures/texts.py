"""Messages about failures on a branch, and the text of the issue while they last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from bot.core.urls import linkable
from bot.effects.issues import BODY_LIMIT
from bot.github.text.markdown import code, escape, truncate
from bot.news.message import News, NewsItem
from handlers.main_failures.decide import FailingContext, FailureChanges, KnownFailures, Recovery

ONE, MANY = "1 check", "{count} checks"
BEGAN, AT_ONE = "{what} began to fail on {branch}", " at {sha}"
ALL_WELL, AFTER = "{branch} has recovered", ", after {how_long}"
SOME_WELL = "{what} on {branch}: recovered"
REMOVED_STATE = "{what} on {branch}: failing, and no longer reported"
OVERDUE = "{what} on {branch}: not fixed within {fix_within}"
NO_NEWS = "no change on {branch}: {count} failing"

AT_COMMIT = "at {sha}: {says}"
WELL_LATER = "recovered at {sha}, {commits} after {broken} {title}"
WELL_ON_RERUN = "recovered: a rerun passed at {broken} {title}, where it was first seen failing"
WELL = "recovered at {sha}; it was first seen failing at {broken} {title}"
NOT_REPORTED = "not reported on the newest commits; it was first seen failing at {broken} {title}"
OVERDUE_ITEM = "not fixed within {fix_within}; first seen failing at {broken} {title}: {says}"
COMMIT = "{sha}: {title}"
STILL = "{what} still failing."

ISSUE_TITLE = "{branch} is failing"
ISSUE_INTRO = "On {branch}, these checks fail:"
ISSUE_LINE = "- {name}: {says}{link}, first on {sha} {title}"
ISSUE_LINK = " ([details](<{url}>))"
ISSUE_MORE = "- and {count} more"
ISSUE_END = "I'll comment here when this changes, and close this issue when all checks have recovered."
MOST_LISTED = 50
LIST_LIMIT = BODY_LIMIT - 1000
"""The most characters of the list in the issue; the rest is for the text around it."""
LONGEST_NAME = 150

UNITS = ((86400, "1 day", "{count} days"), (3600, "1 hour", "{count} hours"), (60, "1 minute", "{count} minutes"))
ONE_COMMIT, COMMITS = "1 commit", "{count} commits"

NO_BRANCH = "there is no branch {branch}; list the branches to watch in app.yaml under main_failures.branches"
NOT_WATCHED = "{branch} is no longer watched"
TO_SCAN, NOTHING_TO_SCAN = "to scan: {branches}", "this changes no known failure, or a pending scan covers it"
SCAN_REQUESTED, SCAN_PENDING = "requested a scan of {branch}", "a scan of {branch} is already pending"


def failure_news(change: FailureChanges, branch: str, fix_within: str = "") -> News:
    """Return the message about a change: first what broke, then what was not fixed in time, then what has recovered."""
    shas = list(dict.fromkeys(failure.sha for failure in change.began))
    items = [
        *(_failure_item(failure, alone=len(shas) == 1) for failure in change.began),
        *(_overdue_item(failure, fix_within) for failure in change.overdue),
        *map(_recovery_item, change.recovered),
        *map(_removed_item, change.removed),
    ]
    still = len(change.state.failing) - len(change.began) - len(change.overdue)
    notes = [COMMIT.format(sha=shas[0][:7], title=change.began[0].title)] if len(shas) == 1 else []
    notes += [STILL.format(what=_checks(still))] if still else []
    return News(
        _title(change, branch, shas, fix_within), tuple(items), notes=tuple(notes), good=not change.state.failing
    )


def issue_text(state: KnownFailures, branch: str) -> tuple[str, str]:
    """Return the title and the body, in Markdown, of the issue; the body is empty if nothing fails."""
    failing = sorted(state.failing.values(), key=lambda failure: (failure.since, failure.name))
    title = ISSUE_TITLE.format(branch=branch)
    if not failing:
        return title, ""
    all_lines = [_line(failure) for failure in failing[:MOST_LISTED]]
    sizes = accumulate(len(line) + 1 for line in all_lines)
    lines = [line for line, size in zip(all_lines, sizes, strict=True) if size <= LIST_LIMIT]
    if len(lines) < len(failing):
        lines.append(ISSUE_MORE.format(count=len(failing) - len(lines)))
    return title, "\n\n".join([ISSUE_INTRO.format(branch=code(branch)), "\n".join(lines), ISSUE_END])


def _title(change: FailureChanges, branch: str, shas: Sequence[str], fix_within: str) -> str:
    if change.began:
        place = AT_ONE.format(sha=shas[0][:7]) if len(shas) == 1 else ""
        return BEGAN.format(what=_checks(len(change.began)), branch=branch) + place
    if change.overdue:
        return OVERDUE.format(what=_checks(len(change.overdue)), branch=branch, fix_within=fix_within)
    if change.recovered and not change.state.failing:
        return ALL_WELL.format(branch=branch) + _recovery_time(change.recovered)
    if change.recovered:
        return SOME_WELL.format(what=_checks(len(change.recovered)), branch=branch)
    return REMOVED_STATE.format(what=_checks(len(change.removed)), branch=branch)


def _failure_item(failure: FailingContext, *, alone: bool) -> NewsItem:
    says = failure.says if alone else AT_COMMIT.format(sha=failure.sha[:7], says=failure.says)
    return NewsItem(failure.name, says, failure.url)


def _recovery_item(recovery: Recovery) -> NewsItem:
    template = WELL if recovery.commits is None else WELL_LATER if recovery.commits else WELL_ON_RERUN
    text = template.format(
        sha=recovery.commit.sha[:7],
        commits=_commits(recovery.commits or 0),
        broken=recovery.failure.sha[:7],
        title=recovery.failure.title,
    )
    return NewsItem(recovery.failure.name, text, recovery.url)


def _overdue_item(failure: FailingContext, fix_within: str) -> NewsItem:
    text = OVERDUE_ITEM.format(fix_within=fix_within, broken=failure.sha[:7], title=failure.title, says=failure.says)
    return NewsItem(failure.name, text, failure.url)


def _removed_item(failure: FailingContext) -> NewsItem:
    return NewsItem(failure.name, NOT_REPORTED.format(broken=failure.sha[:7], title=failure.title), failure.url)


def _line(failure: FailingContext) -> str:
    url = linkable(failure.url)
    return ISSUE_LINE.format(
        name=code(truncate(failure.name, LONGEST_NAME)),
        says=escape(failure.says),
        link=ISSUE_LINK.format(url=url.replace("&", "&amp;")) if url else "",
        sha=failure.sha,
        title=escape(failure.title),
    )


def _recovery_time(recovered: Sequence[Recovery]) -> str:
    """Return how long a recovery took: the longest time of all that recovered."""
    longest = max(recovered, key=lambda recovery: recovery.seconds)
    reported = [_commits(longest.commits)] if longest.commits else []
    unit = next(((length, singular, plural) for length, singular, plural in UNITS if longest.seconds >= length), None)
    if unit is not None:
        length, singular, plural = unit
        reported.append(_counted(int(longest.seconds // length), singular, plural))
    return AFTER.format(how_long=" and ".join(reported)) if reported else ""


def _checks(count: int) -> str:
    return _counted(count, ONE, MANY)


def _commits(count: int) -> str:
    return _counted(count, ONE_COMMIT, COMMITS)


def _counted(count: int, singular: str, plural: str) -> str:
    return singular if count == 1 else plural.format(count=count)
