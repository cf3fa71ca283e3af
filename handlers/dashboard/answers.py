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
    written = [clause for clause in clauses if clause]
    parts = [
        part
        for number, clause in enumerate(written)
        for part in ([AnswerPart(text=texts.CLAUSE_END)] if number else []) + list(clause)
    ]
    return [*parts, AnswerPart(text=".")] if parts else []


def text(words: str, href: str = "") -> AnswerPart:
    """Return a part of a sentence."""
    return AnswerPart(text=words, href=href)


def listed(names: Sequence[AnswerPart], noun: str) -> Sentence:
    """Write names with commas; of more than `MOST_NAMED`, the rest is counted as so many `noun`."""
    shown = names[:MOST_NAMED]
    parts = list(chain.from_iterable((text(", "), name) for name in shown))[1:]
    unnamed = len(names) - len(shown)
    return [*parts, text(texts.AND_MORE.format(more=counted(unnamed, f"more {noun}")))] if unnamed else parts


def link_to_test(repository: str, test: str, target: str) -> AnswerPart:
    """Return a link to the page of a test, on one target if it is given."""
    return text(texts.shortened(test), history_path(repository, test, target))


# -- the grid --


@dataclass(frozen=True, slots=True)
class LineNews:
    """What the newest complete run of a suite on a target says, at `sha`, compared with `base`, if there is one."""

    target: str
    suite: str
    sha: str
    base: str
    new: int
    failing: int


@dataclass(frozen=True, slots=True)
class GridNews:
    """What a grid says at a glance.

    `subjects` is how many targets it has, or how many suites if it is `by_suite`. `silent` has the targets whose lab is
    late, with the seconds since their newest nightly run, None for none. `unusable` has those whose newest run has no
    usable results. `last_news` is the newest commit with a new failure, and when it was made; `columns` is how many
    commits the grid shows. `commits` says how many commits are between two nightly commits, if that is known.
    """

    repository: str
    filters: Mapping[str, object]
    by_suite: bool
    subjects: int
    lines: Sequence[LineNews]
    silent: Mapping[str, float | None]
    unusable: Sequence[str]
    last_news: tuple[str, float] | None
    columns: int
    commits: Mapping[tuple[str, str], int]

    def _address(self, status: str) -> str:
        return view_path(self.repository, "", **self.filters, status=status)

    def _subjects(self, lines: Iterable[LineNews]) -> str:
        count = len({line.suite if self.by_suite else line.target for line in lines})
        subjects = counted(self.subjects, texts.SUITE if self.by_suite else texts.TARGET)
        return texts.OF_SUBJECTS.format(count=count, subjects=subjects)

    def answer(self) -> Sentence:
        """Say what is new, what still fails, and which labs are late."""
        fresh = [line for line in self.lines if line.new]
        failing = [line for line in self.lines if line.failing]
        return sentence(self._news(fresh, failing), self._unusable(), self._silent())

    def _news(self, fresh: Sequence[LineNews], failing: Sequence[LineNews]) -> Sentence:
        if not self.lines:
            return []
        if fresh:
            new = sum(line.new for line in fresh)
            words = texts.NEW_FAILURES.format(failures=counted(new, "new failure"), on=self._subjects(fresh))
            return [text(words, self._address("new-failure")), *self._since(fresh)]
        if self.last_news:
            sha, committed_at = self.last_news
            day = text(
                texts.DAY_OF_COMMIT.format(day=date(committed_at), sha=short(sha)), commit_path(self.repository, sha)
            )
            start = [text(texts.NOTHING_NEW_SINCE), day]
        else:
            start = [text(texts.NOTHING_NEW.format(commits=counted(self.columns, "nightly commit")))]
        if not failing:
            return [*start, text(texts.NO_TEST_FAILS)]
        count = sum(line.failing for line in failing)
        fail = texts.STILL_FAIL.format(
            tests=counted(count, "test"), fail="fails" if count == 1 else "fail", on=self._subjects(failing)
        )
        return [*start, text(": "), text(fail, self._address("failing"))]

    def _since(self, fresh: Sequence[LineNews]) -> Sentence:
        pairs = {(line.base, line.sha) for line in fresh}
        base, sha = next(iter(pairs), ("", ""))
        if len(pairs) > 1 or not base:
            return []
        compare = view_path(self.repository, "compare", target=fresh[0].target, base=base, head=sha)
        commits = self.commits.get((base, sha))
        count = [text(texts.IN_COMMITS.format(commits=counted(commits, "commit")))] if commits else []
        return [text(texts.SINCE), text(short(base), compare), *count]

    def _unusable(self) -> Sentence:
        names = [text(target, view_path(self.repository, target=target)) for target in self.unusable]
        return [*listed(names, "target"), text(texts.NO_USABLE_RESULTS)] if names else []

    def _silent(self) -> Sentence:
        # One clause for each lab that is late, because each is late by another time.
        clauses = [
            [text(target, lab_path(self.repository, target.partition("/")[0])), text(lateness(seconds))]
            for target, seconds in list(self.silent.items())[:MOST_NAMED]
        ]
        parts = list(chain.from_iterable([text(texts.CLAUSE_END), *clause] for clause in clauses))[1:]
        unnamed = len(self.silent) - len(clauses)
        return [*parts, text(texts.AND_MORE.format(more=counted(unnamed, "more target")))] if unnamed else parts

    def next_steps(self) -> list[Sentence]:
        """Say what a maintainer, a contributor and a lab can do."""
        steps = []
        fresh = next((line for line in self.lines if line.new), None)
        if fresh and fresh.base:
            compare = view_path(self.repository, "compare", target=fresh.target, base=fresh.base, head=fresh.sha)
            steps.append([text(texts.MAINTAINER), text(texts.COMPARE_COMMITS, compare)])
        if any(line.failing for line in self.lines):
            href = self._address("failing")
            steps.append([text(texts.CONTRIBUTOR), text(texts.KNOWN_FAILURES, href), text(texts.NOT_YOURS)])
        for target in [*self.unusable, *self.silent][:1]:
            lab = target.partition("/")[0]
            steps.append([text(texts.LAB), text(texts.SEE_LAB.format(lab=lab), lab_path(self.repository, lab))])
        return steps[:MOST_STEPS]


def matching_answer(count: int, status: str | None) -> Sentence:
    """Say how many tests match the filters of a grid."""
    match = texts.MATCHES.get(status or "", texts.MATCHES[""])[count != 1]
    return sentence([text(texts.MATCHING_TESTS.format(tests=counted(count, "test"), match=match))]) if count else []


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
        text(
            words.format(count=counted(count, noun) if noun else f"{count:,}"),
            view_path(repository, "compare", **filters, status=kind),
        )
        for kind, (noun, words) in texts.CHANGES.items()
        if (count := page.counts.get(kind, 0))
    ]
    ends = texts.FROM_TO.format(target=page.target, base=short(page.base.sha), head=short(page.head.sha))
    if not changes:
        all_noted = all(suite.note for suite in page.suites)
        return sentence([text((texts.NOT_COMPARED if all_noted else texts.NO_CHANGE) + ends)])
    return sentence([*list(chain.from_iterable((text(", "), change) for change in changes))[1:], text(ends)])


def compare_steps(page: ComparePage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about new failures."""
    if not (page.base and page.head and page.counts.get("new-failure")):
        return []
    href = f"{github}/compare/{page.base.sha}...{page.head.sha}"
    return [[text(texts.MAINTAINER), text(texts.READ_COMMITS, href)]]


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
        else [text(texts.FAILS_NOWHERE.format(targets=counted(len(targets), "target")))],
        [text(texts.IS_FLAKY_ON), *listed(_targets(flaky, repository, test), "target")] if flaky else [],
    )


def _fails_on(failing: Sequence[HistoryOnTarget], total: int, repository: str, test: str) -> Sentence:
    begun = {history.failing.since for history in failing if history.failing}
    since = min(begun)
    names = listed(_targets(failing, repository, test), "target")
    start = [text(texts.FAILS_ON.format(count=len(failing), targets=counted(total, "target"))), *names]
    if len(begun) > 1:
        return start
    return [*start, text(texts.SINCE), text(short(since), commit_path(repository, since))]


def _targets(targets: Iterable[HistoryOnTarget], repository: str, test: str) -> list[AnswerPart]:
    names = dict.fromkeys(f"{history.lab}/{history.target}" for history in targets)
    return [text(name, history_path(repository, test, name)) for name in names]


def history_steps(page: HistoryPage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about a failing or flaky test."""
    failing = next((history for history in page.targets if history.failing), None)
    reported = next((history for history in page.targets if history.issue_url), None)
    steps = []
    if failing and failing.failing and failing.failing.last_passed_at:
        href = f"{github}/compare/{failing.failing.last_passed_at}...{failing.failing.since}"
        steps.append([text(texts.MAINTAINER), text(texts.READ_COMMITS_SINCE, href)])
    if reported:
        steps.append([text(texts.MAINTAINER), text(texts.OPEN_ISSUE, reported.issue_url)])
    if failing and failing.reproduce:
        steps.append(
            [text(texts.CONTRIBUTOR), text(texts.REPRODUCE.format(command=texts.shortened(failing.reproduce)))]
        )
    return steps[:MOST_STEPS]
