"""The first sentence of the page of a test, and the next steps below it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import commit_path, history_path
from bot.web.answers import AnswerPart
from bot.web.page_filters import short
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import (
    MOST_STEPS,
    Sentence,
    command,
    link_to_test,
    name_list,
    phrase,
    sentence,
)

if TYPE_CHECKING:
    from handlers.dashboard.history.model import HistoryOnTarget, HistoryPage


def with_first_lines(page: HistoryPage, repository: str, github: str) -> HistoryPage:
    """Return a page with its first sentence and its next steps; `github` is the repository's address on GitHub."""
    answer, steps = _answer(page, repository), _steps(page, github)
    return page.model_copy(update={"answer": answer, "next_steps": steps})


def _answer(page: HistoryPage, repository: str) -> Sentence:
    """Say where a test fails, and since when; where it is flaky; or that it passes; or that no target has it now.

    What the newest runs of late targets say is old, so they neither pass nor fail. Of targets that app.yaml no longer
    has, no run is expected.
    """
    targets = _current(page)
    gone = [history for history in page.targets if not history.configured]
    # The test may have moved to another suite of the same target.
    present = {(history.lab, history.target) for history in (*targets, *gone)}
    removed = [history for history in page.targets if (history.lab, history.target) not in present]
    fresh, late = ([history for history in targets if history.stale == stale] for stale in (False, True))
    flaky = [history for history in targets if history.flakiness and not history.failing]
    return sentence(
        _state(fresh, repository, page.id) if fresh else [],
        _unknown(late, repository, page.id, is_all=not fresh) if late else [],
        [phrase(texts.IS_FLAKY_ON), *name_list(_targets(flaky, repository, page.id), "target")] if flaky else [],
        _quarantined(targets, repository, page.id),
        _removed(removed, repository, page.id, is_all=not targets) if removed else [],
        [phrase(texts.RENAMED_TO), link_to_test(repository, page.renamed_to, "")]
        if removed and page.renamed_to
        else [],
        _gone(gone, repository, page.id, is_all=not targets and not removed) if gone else [],
    )


def _current(page: HistoryPage) -> list[HistoryOnTarget]:
    """Return the targets of app.yaml whose newest nightly runs have the test."""
    return [history for history in page.targets if history.configured and not history.is_removed]


def _state(targets: Sequence[HistoryOnTarget], repository: str, test: str) -> Sentence:
    links, failing = _targets(targets, repository, test), [history for history in targets if history.failing]
    if failing:
        return _fails_on(failing, len(links), repository, test)
    if len(links) > 1:
        return [phrase(texts.FAILS_NOWHERE.format(targets=counted(len(links), "target")))]
    return [phrase(texts.PASSES_ON_ONE), *links]


def _unknown(late: Sequence[HistoryOnTarget], repository: str, test: str, *, is_all: bool) -> Sentence:
    """Say on which targets nobody knows whether a test fails now, and where it failed when it last ran."""
    words = texts.UNKNOWN_ON.capitalize() if is_all else texts.UNKNOWN_ON
    names = name_list(_targets(late, repository, test), "target")
    failed = _targets([history for history in late if history.failing], repository, test)
    last = [phrase(texts.CLAUSE_END), phrase(texts.FAILED_LAST_ON), *name_list(failed, "target")] if failed else []
    return [phrase(words), *names, phrase(texts.NO_REPORT), *last]


def _quarantined(targets: Sequence[HistoryOnTarget], repository: str, test: str) -> Sentence:
    """Say until when a test is quarantined, by the quarantine that ends first; on which targets, unless on all."""
    quarantine = min(
        (history.quarantine for history in targets if history.quarantine),
        key=lambda candidate: candidate.until,
        default=None,
    )
    if quarantine is None:
        return []
    quarantined = [history for history in targets if history.quarantine == quarantine]
    words = texts.QUARANTINED_UNTIL.format(day=quarantine.until, owner=quarantine.owner)
    names = [] if quarantined == targets else name_list(_targets(quarantined, repository, test), "target")
    return [phrase(words, quarantine.issue), *([phrase(texts.QUARANTINED_ON), *names] if names else [])]


def _removed(removed: Sequence[HistoryOnTarget], repository: str, test: str, *, is_all: bool) -> Sentence:
    """Say that the newest results no longer have a test, on all of its targets or on these."""
    if is_all:
        return [phrase(texts.REMOVED)]
    return [phrase(texts.REMOVED_ON), *name_list(_targets(removed, repository, test), "target")]


def _gone(gone: Sequence[HistoryOnTarget], repository: str, test: str, *, is_all: bool) -> Sentence:
    """Say on which targets that app.yaml no longer has the test once ran."""
    words = texts.NOT_CONFIGURED.capitalize() if is_all else texts.NOT_CONFIGURED
    return [phrase(words), *name_list(_targets(gone, repository, test), "target")]


def _fails_on(failing: Sequence[HistoryOnTarget], total: int, repository: str, test: str) -> Sentence:
    first_shas = {history.failing.since for history in failing if history.failing}
    since = min(first_shas)
    links, words = _targets(failing, repository, test), texts.FAILS_ON_ONE
    if total > 1:
        words = texts.FAILS_ON.format(count=len(links), targets=counted(total, "target"))
    start = [phrase(words), *name_list(links, "target")]
    if len(first_shas) > 1:
        return start
    return [*start, phrase(texts.SINCE), phrase(short(since), commit_path(repository, since))]


def _targets(targets: Iterable[HistoryOnTarget], repository: str, test: str) -> list[AnswerPart]:
    names = dict.fromkeys(f"{history.lab}/{history.target}" for history in targets)
    return [phrase(name, history_path(repository, test, name)) for name in names]


def _steps(page: HistoryPage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about a failing or flaky test; nothing if it or its target was removed."""
    targets = _current(page)
    failing = next((history for history in targets if history.failing), None)
    reportable = [history for history in targets if history.issue_url]
    reported = min(reportable, key=lambda history: history.quarantine is not None, default=None)
    steps = []
    if failing and failing.failing and failing.failing.last_passed_at:
        href = f"{github}/compare/{failing.failing.last_passed_at}...{failing.failing.since}"
        steps.append([phrase(texts.MAINTAINER), phrase(texts.READ_COMMITS_SINCE, href)])
    if reported and reported.quarantine:
        steps.append([phrase(texts.MAINTAINER), phrase(texts.READ_QUARANTINE_ISSUE, reported.quarantine.issue)])
    elif reported:
        steps.append([phrase(texts.MAINTAINER), phrase(texts.OPEN_ISSUE, reported.issue_url)])
    if failing and failing.reproduce:
        steps.append([phrase(texts.CONTRIBUTOR), phrase(texts.REPRODUCE), command(failing.reproduce)])
    return steps[:MOST_STEPS]
