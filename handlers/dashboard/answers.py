"""Compose the sentence with which each page begins, and the next steps below it, from what the page shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from bot.core.page_paths import commit_path, history_path, lab_path, view_path
from bot.web.answers import AnswerPart
from bot.web.page_filters import age, counted, date, short
from handlers.dashboard import answer_texts as texts

if TYPE_CHECKING:
    from handlers.dashboard.compare_rows import ComparePage
    from handlers.dashboard.history_model import HistoryOnTarget, HistoryPage

Sentence = list[AnswerPart]
MOST_NAMED = 3
"""The most targets, tests or repositories that a sentence names; it counts the rest."""
MOST_STEPS = 3
MINUTE = 60


def sentence(*clauses: Sequence[AnswerPart]) -> Sentence:
    """Join clauses to one sentence; empty ones are left out."""
    nonempty = [clause for clause in clauses if clause]
    parts = [
        part
        for number, clause in enumerate(nonempty)
        for part in ([AnswerPart(text=texts.CLAUSE_END)] if number else []) + list(clause)
    ]
    return [*parts, AnswerPart(text=".")] if parts else []


def phrase(words: str, href: str = "") -> AnswerPart:
    """Return a part of a sentence, a link if it has an address."""
    return AnswerPart(text=words, href=href)


def name_list(names: Sequence[AnswerPart], noun: str) -> Sentence:
    """Write names with commas; of more than `MOST_NAMED`, the rest is counted as so many `noun`."""
    first_names = names[:MOST_NAMED]
    parts = list(chain.from_iterable((phrase(", "), name) for name in first_names))[1:]
    unnamed = len(names) - len(first_names)
    return [*parts, phrase(texts.AND_MORE.format(more=counted(unnamed, f"more {noun}")))] if unnamed else parts


def link_to_test(repository: str, test: str, target: str) -> AnswerPart:
    """Return a link to the page of a test, on one target if it is given."""
    return phrase(texts.shortened(test), history_path(repository, test, target))


# -- the grid --


@dataclass(frozen=True, slots=True)
class SuiteNews:
    """The failures of the newest complete run of a suite on a target: all, and the new ones.

    The run is of the commit `sha`, and compared with that of `base`; that is empty if there is none.
    """

    target: str
    suite: str
    sha: str
    base: str
    new: int
    failing: int


@dataclass(frozen=True, slots=True)
class GridNews:
    """What a grid says at a glance.

    `row_count` is the number of its targets, or of its suites if it is `by_suite`. `late_targets` are those whose lab
    is late, with the seconds since their newest nightly run, None if there is none. `unusable_targets` are those whose
    newest run has no usable results. `last_break` is the newest commit with a new failure, and when it was made.
    `commit_count` is the number of commits that the grid shows. `commits_between` has the number of commits between two
    nightly commits, where it is known.
    """

    repository: str
    filters: Mapping[str, object]
    by_suite: bool
    row_count: int
    suites: Sequence[SuiteNews]
    late_targets: Mapping[str, float | None]
    unusable_targets: Sequence[str]
    last_break: tuple[str, float] | None
    commit_count: int
    commits_between: Mapping[tuple[str, str], int]

    def _status_path(self, status: str) -> str:
        return view_path(self.repository, "", **self.filters, status=status)

    def _scope(self, suites: Iterable[SuiteNews]) -> str:
        count = len({suite.suite if self.by_suite else suite.target for suite in suites})
        rows = counted(self.row_count, texts.SUITE if self.by_suite else texts.TARGET)
        return texts.OF_SUBJECTS.format(count=count, subjects=rows)

    def answer(self) -> Sentence:
        """Say what is new, what still fails, and which labs are late."""
        broken = [suite for suite in self.suites if suite.new]
        failing = [suite for suite in self.suites if suite.failing]
        return sentence(self._failures_clause(broken, failing), self._unusable_clause(), self._late_clauses())

    def _failures_clause(self, broken: Sequence[SuiteNews], failing: Sequence[SuiteNews]) -> Sentence:
        if not self.suites:
            return []
        if broken:
            new = sum(suite.new for suite in broken)
            words = texts.NEW_FAILURES.format(failures=counted(new, "new failure"), on=self._scope(broken))
            return [phrase(words, self._status_path("new-failure")), *self._since_base(broken)]
        if self.last_break:
            sha, committed_at = self.last_break
            day = phrase(
                texts.DAY_OF_COMMIT.format(day=date(committed_at), sha=short(sha)), commit_path(self.repository, sha)
            )
            start = [phrase(texts.NOTHING_NEW_SINCE), day]
        else:
            start = [phrase(texts.NOTHING_NEW.format(commits=counted(self.commit_count, "nightly commit")))]
        if not failing:
            return [*start, phrase(texts.NO_TEST_FAILS)]
        count = sum(suite.failing for suite in failing)
        fail = texts.STILL_FAIL.format(
            tests=counted(count, "test"), fail="fails" if count == 1 else "fail", on=self._scope(failing)
        )
        return [*start, phrase(": "), phrase(fail, self._status_path("failing"))]

    def _since_base(self, broken: Sequence[SuiteNews]) -> Sentence:
        pairs = {(suite.base, suite.sha) for suite in broken}
        base, sha = next(iter(pairs), ("", ""))
        if len(pairs) > 1 or not base:
            return []
        compare = view_path(self.repository, "compare", target=broken[0].target, base=base, head=sha)
        commits = self.commits_between.get((base, sha))
        count = [phrase(texts.IN_COMMITS.format(commits=counted(commits, "commit")))] if commits else []
        return [phrase(texts.SINCE), phrase(short(base), compare), *count]

    def _unusable_clause(self) -> Sentence:
        names = [phrase(target, view_path(self.repository, target=target)) for target in self.unusable_targets]
        return [*name_list(names, "target"), phrase(texts.NO_USABLE_RESULTS)] if names else []

    def _late_clauses(self) -> Sentence:
        # One clause for each lab that is late, because each is late by another time.
        clauses = [
            [phrase(target, lab_path(self.repository, target.partition("/")[0])), phrase(lateness(seconds))]
            for target, seconds in list(self.late_targets.items())[:MOST_NAMED]
        ]
        parts = list(chain.from_iterable([phrase(texts.CLAUSE_END), *clause] for clause in clauses))[1:]
        unnamed = len(self.late_targets) - len(clauses)
        return [*parts, phrase(texts.AND_MORE.format(more=counted(unnamed, "more target")))] if unnamed else parts

    def next_steps(self) -> list[Sentence]:
        """Say what a maintainer, a contributor and a lab can do."""
        steps = []
        broken = next((suite for suite in self.suites if suite.new), None)
        if broken and broken.base:
            compare = view_path(self.repository, "compare", target=broken.target, base=broken.base, head=broken.sha)
            steps.append([phrase(texts.MAINTAINER), phrase(texts.COMPARE_COMMITS, compare)])
        if any(suite.failing for suite in self.suites):
            href = self._status_path("failing")
            steps.append([phrase(texts.CONTRIBUTOR), phrase(texts.KNOWN_FAILURES, href), phrase(texts.NOT_YOURS)])
        for target in [*self.unusable_targets, *self.late_targets][:1]:
            lab = target.partition("/")[0]
            steps.append([phrase(texts.LAB), phrase(texts.SEE_LAB.format(lab=lab), lab_path(self.repository, lab))])
        return steps[:MOST_STEPS]


def matching_answer(count: int, status: str | None) -> Sentence:
    """Say how many tests match the filters of a grid."""
    match = texts.MATCHES.get(status or "", texts.MATCHES[""])[count != 1]
    return sentence([phrase(texts.MATCHING_TESTS.format(tests=counted(count, "test"), match=match))]) if count else []


def lateness(seconds: float | None) -> str:
    """Say how long a target has not reported, in seconds; None if it never has."""
    return texts.NEVER_REPORTED if seconds is None else texts.NOT_REPORTED.format(age=age(seconds))


# -- two commits --


def compare_answer(page: ComparePage, repository: str) -> Sentence:
    """Say how many tests changed from one commit to the other."""
    if not (page.target and page.base and page.head):
        return []
    filters = {"target": page.target, "base": page.base.sha, "head": page.head.sha}
    changes = [
        phrase(
            words.format(count=counted(count, noun) if noun else f"{count:,}"),
            view_path(repository, "compare", **filters, status=kind),
        )
        for kind, (noun, words) in texts.CHANGES.items()
        if (count := page.counts.get(kind, 0))
    ]
    ends = texts.FROM_TO.format(target=page.target, base=short(page.base.sha), head=short(page.head.sha))
    if not changes:
        all_noted = all(suite.note for suite in page.suites)
        return sentence([phrase((texts.NOT_COMPARED if all_noted else texts.NO_CHANGE) + ends)])
    return sentence([*list(chain.from_iterable((phrase(", "), change) for change in changes))[1:], phrase(ends)])


def compare_steps(page: ComparePage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about new failures."""
    if not (page.base and page.head and page.counts.get("new-failure")):
        return []
    href = f"{github}/compare/{page.base.sha}...{page.head.sha}"
    return [[phrase(texts.MAINTAINER), phrase(texts.READ_COMMITS, href)]]


# -- one test --


def history_answer(targets: Sequence[HistoryOnTarget], repository: str, test: str) -> Sentence:
    """Say where a test fails, and since when; where it is flaky; or that it passes."""
    if not targets:
        return []
    failing = [history for history in targets if history.failing]
    flaky = [history for history in targets if history.flakiness and not history.failing]
    return sentence(
        _fails_on(failing, len(targets), repository, test)
        if failing
        else [phrase(texts.FAILS_NOWHERE.format(targets=counted(len(targets), "target")))],
        [phrase(texts.IS_FLAKY_ON), *name_list(_targets(flaky, repository, test), "target")] if flaky else [],
    )


def _fails_on(failing: Sequence[HistoryOnTarget], total: int, repository: str, test: str) -> Sentence:
    first_shas = {history.failing.since for history in failing if history.failing}
    since = min(first_shas)
    names = name_list(_targets(failing, repository, test), "target")
    start = [phrase(texts.FAILS_ON.format(count=len(failing), targets=counted(total, "target"))), *names]
    if len(first_shas) > 1:
        return start
    return [*start, phrase(texts.SINCE), phrase(short(since), commit_path(repository, since))]


def _targets(targets: Iterable[HistoryOnTarget], repository: str, test: str) -> list[AnswerPart]:
    names = dict.fromkeys(f"{history.lab}/{history.target}" for history in targets)
    return [phrase(name, history_path(repository, test, name)) for name in names]


def history_steps(page: HistoryPage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about a failing or flaky test."""
    failing = next((history for history in page.targets if history.failing), None)
    reported = next((history for history in page.targets if history.issue_url), None)
    steps = []
    if failing and failing.failing and failing.failing.last_passed_at:
        href = f"{github}/compare/{failing.failing.last_passed_at}...{failing.failing.since}"
        steps.append([phrase(texts.MAINTAINER), phrase(texts.READ_COMMITS_SINCE, href)])
    if reported:
        steps.append([phrase(texts.MAINTAINER), phrase(texts.OPEN_ISSUE, reported.issue_url)])
    if failing and failing.reproduce:
        steps.append(
            [phrase(texts.CONTRIBUTOR), phrase(texts.REPRODUCE.format(command=texts.shortened(failing.reproduce)))]
        )
    return steps[:MOST_STEPS]
