"""The first sentence of the page of a search, and the next steps below it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import lab_path
from bot.github.addresses import pull_on_github
from bot.results.culprit.search import CERTAIN, SearchOutcome
from bot.web.answers import AnswerPart
from handlers.dashboard.searches import texts
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import Sentence, command, phrase, sentence
from handlers.searches.revert.records import RevertStage

if TYPE_CHECKING:
    from handlers.dashboard.searches.model import CulpritCommit, CulpritPage


def culprit_answer(page: CulpritPage, github: str) -> Sentence:
    """Say with which commit the tests began to fail, or why nobody can tell, or how far the search is.

    `github` is the address of the repository.
    """
    if not page.outcome:
        return _so_far(page)
    names = {
        "good": page.good[: texts.SHORT],
        "bad": page.bad[: texts.SHORT],
        "runs": counted(len(page.runs), "run"),
        "count": counted(page.last - page.first + 1, "commit"),
        "probability": texts.percent(page.probability),
    }
    match SearchOutcome(page.outcome):
        case SearchOutcome.CULPRIT:
            devices = len({run.target for run in page.runs if run.failed + run.passed})
            rests = texts.ONE_TARGET if devices < 2 else texts.SEVERAL_TARGETS.format(targets=f"{devices} targets")
            return sentence(
                [phrase(texts.BEGAN_WITH), _link(page, page.first, github), phrase(texts.CHANCE.format(**names))],
                [phrase(rests)],
            )
        case SearchOutcome.ENVIRONMENT:
            before = texts.NEW_LEVEL_BEFORE if page.measurement else texts.FAILS_BEFORE
            return sentence([phrase(texts.CHANGED_LAB.format(**names))], [phrase(before.format(**names))])
        case SearchOutcome.NOT_REPEATED:
            text = texts.AS_BEFORE if page.measurement else texts.DOES_NOT_REPEAT
            return sentence([phrase(text.format(**names))])
        case SearchOutcome.RANGE | SearchOutcome.BUDGET as outcome:
            text = texts.ONE_OF if outcome is SearchOutcome.RANGE else texts.OUT_OF_RUNS
            first, last = _link(page, page.first, github), _link(page, page.last, github)
            return sentence([phrase(text.format(**names)), first, phrase(texts.UP_TO), last])


def _so_far(page: CulpritPage) -> Sentence:
    """Say how far a search is. It names no commit: a wrong name costs more than none."""
    text = texts.SO_FAR.format(runs=counted(len(page.runs), "run"), most=page.most_runs)
    tested = {run.position for run in page.runs if run.failed + run.passed}
    if {0, len(page.commits)} <= tested:
        text += texts.LEFT_OF.format(left=counted(_left(page), "commit"), commits=len(page.commits))
    else:
        text += texts.BOTH_ENDS
    return sentence([phrase(text)], [phrase(texts.NOT_CERTAIN)])


def _left(page: CulpritPage) -> int:
    """Return how many commits together are certain to have the culprit, if a commit is the cause."""
    probabilities = sorted((commit.probability for commit in page.commits), reverse=True)
    total, share = sum(probabilities) * CERTAIN, 0.0
    for count, probability in enumerate(probabilities):
        if share >= total:
            return count
        share += probability
    return len(probabilities)


def _link(page: CulpritPage, position: int, github: str) -> AnswerPart:
    commit = page.commits[position - 1]
    return phrase(answer_texts.shortened(commit.words), _address(commit, github))


def _address(commit: CulpritCommit, github: str) -> str:
    return f"{github}/commit/{commit.sha}"


def culprit_steps(page: CulpritPage, repository: str, github: str, mention: str) -> list[Sentence]:
    """Say who can do what: the author of the culprit, the lab, or whoever reads the issue."""
    steps = list[Sentence]()
    if page.outcome == SearchOutcome.CULPRIT.value:
        culprit = page.commits[page.first - 1]
        pull = culprit.pull_request
        address = f"{github}/{pull_on_github(pull)}" if pull else _address(culprit, github)
        name, text = ("benchmark", texts.MEASURE) if page.measurement else ("reproduce", texts.REPRODUCE)
        repeat = command(f'{mention} {name} "{page.tests[0]}" on {page.targets[0]}')
        steps.append([phrase(answer_texts.MAINTAINER), phrase(texts.READ_CHANGE, address)])
        if page.revert is not None and page.revert.stage == RevertStage.OPENED.value and page.revert.pull_request:
            draft = f"{github}/{pull_on_github(page.revert.pull_request)}"
            steps.append([phrase(answer_texts.MAINTAINER), phrase(texts.READ_DRAFT, draft)])
        steps.append([phrase(answer_texts.CONTRIBUTOR), phrase(text), repeat, phrase(texts.ON_A_PULL_REQUEST)])
    elif page.outcome == SearchOutcome.ENVIRONMENT.value:
        target = page.targets[0]
        href = lab_path(repository, target.partition("/")[0])
        steps.append([phrase(answer_texts.LAB), phrase(texts.ASK_LAB.format(target=target), href)])
    elif page.first:
        begin = page.commits[page.first - 2].sha if page.first > 1 else page.good
        href = f"{github}/compare/{begin}...{page.commits[page.last - 1].sha}"
        steps.append([phrase(answer_texts.MAINTAINER), phrase(texts.READ_RANGE, href)])
    if page.issue:
        steps.append([phrase(answer_texts.MAINTAINER), phrase(texts.READ_ISSUE, f"{github}/issues/{page.issue}")])
    return steps
