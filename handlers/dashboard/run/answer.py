"""Compose the sentence with which the page of a run begins, and the next steps below it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import lab_path, view_path
from bot.results.state import RunState
from bot.web.page_filters import short
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import MOST_STEPS, Sentence, command, name_list, phrase, sentence

if TYPE_CHECKING:
    from handlers.dashboard.run.causes import FailureCause
    from handlers.dashboard.run.model import RunDetails, SuiteSummary

SUITES_ID, RUN_ID = "suites", "this-run"
"""The IDs of sections of the page; those of causes are `cause1` and so on, in their order."""


def run_answer(page: RunDetails, repository: str, missing: str) -> Sentence:
    """Say what failed at the commit on the target, since which commit, and whether all results have arrived.

    `missing` names what has not arrived; it is empty if everything has.
    """
    return sentence(*_clauses(page, repository, missing))


def _clauses(page: RunDetails, repository: str, missing: str) -> Iterator[Sentence]:
    if page.run.state is not RunState.STORED:
        reason = f": {texts.shortened_reason(page.run.reason)}" if page.run.reason else ""
        yield [phrase(texts.RUN_STATES[page.run.state.value] + reason, f"#{RUN_ID}")]
    usable = [suite for suite in page.suites if not suite.infra]
    unusable = [suite for suite in page.suites if suite.infra]
    if usable:
        yield from _failures(page, repository, usable)
    elif unusable:
        yield [phrase(texts.NOTHING_USABLE.format(why=texts.shortened_reason(unusable[0].infra)), f"#{SUITES_ID}")]
    if usable and unusable:
        suites = [phrase(texts.shortened(suite.suite), f"#{SUITES_ID}") for suite in unusable]
        yield [*name_list(suites, texts.SUITE), phrase(texts.NO_USABLE_RESULTS_OF_SUITE)]
    if page.suites and missing:
        yield [phrase(texts.INCOMPLETE.format(missing=missing), f"#{SUITES_ID}")]
    elif usable and not unusable:
        yield [phrase(texts.COMPLETE)]


def _failures(page: RunDetails, repository: str, usable: list[SuiteSummary]) -> Iterator[Sentence]:
    """Yield the clauses about the failures of suites with usable results; each failure is counted once."""
    new, still_failing, unjudged = (
        sum(getattr(suite, name) for suite in usable) for name in ("new_failures", "still_failing", "unjudged")
    )
    known = sum(suite.known_flaky + suite.quarantined for suite in usable)
    if new:
        link = _cause(page, lambda cause: cause.new)
        yield [phrase(counted(new, "new failure"), link), *_since(page, repository, usable, fresh=True)]
    elif any(suite.baseline for suite in usable):
        yield [phrase(texts.NO_NEW_FAILURE), *_since(page, repository, usable, fresh=False)]
    elif not (still_failing or unjudged or known):
        yield [phrase(texts.NO_TEST_FAILED)]
    if still_failing:
        yield [phrase(texts.RUN_STILL_FAILS.format(count=still_failing), _cause(page, _older_failures))]
    if unjudged:
        words = texts.FAIL_UNCOMPARED.format(failures=counted(unjudged, "failure"))
        yield [phrase(words, _cause(page, _older_failures))]
    if known:
        yield [phrase(counted(known, "known failure"), _cause(page, lambda cause: cause.known))]


def _older_failures(cause: FailureCause) -> int:
    return cause.count - cause.new - cause.known - cause.unusable


def _cause(page: RunDetails, count: Callable[[FailureCause], int]) -> str:
    """Return the address of the first cause with failures that `count` counts, or of the suites if none is listed."""
    number = next((number for number, cause in enumerate(page.causes, 1) if count(cause)), 0)
    return f"#cause{number}" if number else f"#{SUITES_ID}"


def _baselines(suites: list[SuiteSummary], *, fresh: bool) -> set[str]:
    """Return the commits that suites were compared with; with `fresh`, only those of suites with new failures."""
    return {suite.baseline for suite in suites if suite.baseline and (suite.new_failures or not fresh)}


def _since(page: RunDetails, repository: str, usable: list[SuiteSummary], *, fresh: bool) -> Sentence:
    baselines = _baselines(usable, fresh=fresh)
    if len(baselines) != 1:
        return []
    (base,) = baselines
    target = f"{page.lab}/{page.target}"
    return [
        phrase(texts.SINCE),
        phrase(short(base), view_path(repository, "compare", target=target, base=base, head=page.sha)),
    ]


def _mute(page: RunDetails, repository: str) -> Sentence:
    """Return the link that mutes the first new failure, after another link."""
    test = next((cause.tests[0].test for cause in page.causes if cause.new), "")
    href = view_path(repository, "mute", id=test, target=f"{page.lab}/{page.target}")
    return [phrase(texts.OR), phrase(texts.MUTE.format(test=texts.shortened(test)), href)] if test else []


def run_steps(page: RunDetails, repository: str, github: str) -> list[Sentence]:
    """Say what a maintainer, a contributor and the lab can do."""
    steps: list[Sentence] = []
    usable = [suite for suite in page.suites if not suite.infra]
    baselines = sorted(_baselines(usable, fresh=True))
    if baselines and page.pull_request is None:
        href = f"{github}/{repository}/compare/{baselines[0]}...{page.sha}"
        read_commits = phrase(texts.READ_COMMITS_SINCE_BASE.format(sha=short(baselines[0])), href)
        steps.append([phrase(texts.MAINTAINER), read_commits, *_mute(page, repository)])
    reproduce = next((cause.reproduce for cause in page.causes if cause.new and cause.reproduce), "")
    if reproduce:
        steps.append([phrase(texts.CONTRIBUTOR), phrase(texts.REPRODUCE), command(reproduce)])
    is_lacking = any(suite.infra or suite.missing for suite in page.suites) or bool(page.missing_suites)
    if is_lacking or page.run.state is not RunState.STORED:
        href = lab_path(repository, page.lab)
        steps.append([phrase(texts.LAB), phrase(texts.SEE_LAB.format(lab=page.lab), href)])
    return steps[:MOST_STEPS]
