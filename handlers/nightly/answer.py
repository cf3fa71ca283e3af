"""Say in a sentence which commit labs test, and why it is not a newer one. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import commit_path
from bot.web.answers import AnswerPart
from bot.web.page_filters import date, short
from handlers.nightly import texts
from handlers.tracking_branches.decide import ScannedCommit
from handlers.tracking_branches.records import sole_blockers

if TYPE_CHECKING:
    from handlers.tracking_branches.records import TrackingState


def nightly_answer(state: TrackingState, repository: str, tested: Collection[str]) -> list[AnswerPart]:
    """Return the sentence about a scanned branch; `tested` are commits with results, which have a page."""
    sha, previous = state["sha"], state["previous_sha"]
    if state["trouble"]:
        return [AnswerPart(text=texts.CANNOT_MOVE_NOW)]
    if not sha:
        return [AnswerPart(text=texts.NO_BRANCH_YET.format(branch=state["branch"]))]
    parts = [
        AnswerPart(text=texts.LABS_TEST),
        AnswerPart(text=short(sha), href=commit_path(repository, sha) if sha in tested else ""),
    ]
    if state["moved_at"]:
        parts.append(AnswerPart(text=texts.SINCE_DAY.format(day=date(datetime.fromisoformat(state["moved_at"])))))
    if state["commits"] and previous:
        previous_path = commit_path(repository, previous) if previous in tested else ""
        parts.append(AnswerPart(text=texts.COMMITS_AFTER.format(commits=counted(state["commits"], "commit"))))
        parts.append(AnswerPart(text=short(previous), href=previous_path))
    newer = _newer(state)
    if not newer:
        return [*parts, AnswerPart(text=texts.NO_NEWER_COMMIT)]
    commits = counted(len(newer), "newer commit")
    words = texts.NEWER_COMMIT if len(newer) == 1 else texts.NEWER_COMMITS
    return [*parts, AnswerPart(text=words.format(commits=commits))]


def nightly_steps(state: TrackingState) -> list[list[AnswerPart]]:
    """Return what a maintainer and a lab can do."""
    steps = []
    blocker = next(iter(sole_blockers(_newer(state)).items()), None)
    if blocker:
        name, count = blocker
        fix = texts.FIX_BLOCKER.format(name=name[: texts.LONGEST_NAME], commits=counted(count, "commit"))
        steps.append([AnswerPart(text=fix)])
    if state["sha"]:
        steps.append([AnswerPart(text=texts.TEST_NIGHTLY), AnswerPart(text=texts.NIGHTLY_COMMAND, is_command=True)])
    return steps


def _newer(state: TrackingState) -> list[ScannedCommit]:
    # The commit that was chosen is the last one of the scan.
    return [ScannedCommit.read(commit) for commit in state["why_not_newer"] if commit["sha"] != state["sha"]]
