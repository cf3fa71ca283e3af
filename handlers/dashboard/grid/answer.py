"""The first sentence of a grid, and the next steps below it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import commit_path, lab_path, view_path
from bot.web.page_filters import date, short
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import (
    MOST_NAMED,
    MOST_STEPS,
    Sentence,
    lateness,
    name_list,
    phrase,
    sentence,
)

if TYPE_CHECKING:
    from handlers.dashboard.grid.rows import ListedRows


NEW_FAILURE = "new-failure"


@dataclass(frozen=True, slots=True)
class SuiteNews:
    """The failures of the newest complete run of a suite on a target: all, and the new ones.

    The run is of the commit `sha`, and compared with that of `base`; that is empty if it is not on the page. Without
    `has_baseline`, the run is compared with none.
    """

    target: str
    suite: str
    sha: str
    base: str
    has_baseline: bool
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

    def _list_path(self, status: str) -> str:
        """Return the address of failures that a sentence counts; none if that list has those of late targets too."""
        late = [suite for suite in self.suites if suite.target in self.late_targets]
        lists_late = any(suite.new if status == NEW_FAILURE else suite.failing for suite in late)
        return "" if lists_late else self._status_path(status)

    def _scope(self, suites: Iterable[SuiteNews]) -> str:
        count = len({suite.suite if self.by_suite else suite.target for suite in suites})
        rows = counted(self.row_count, texts.SUITE if self.by_suite else texts.TARGET)
        return texts.OF_SUBJECTS.format(count=count, subjects=rows)

    def answer(self) -> Sentence:
        """Say what is new, what still fails, and which labs are late.

        What the newest runs of late targets say is old, so those are counted as failing apart.
        """
        fresh = self._fresh()
        broken = [suite for suite in fresh if suite.new]
        failing = [suite for suite in fresh if suite.failing and suite.has_baseline]
        uncompared = [suite for suite in fresh if suite.failing and not suite.has_baseline]
        return sentence(
            self._failures_clause(broken, failing) if broken or failing or not uncompared else [],
            self._uncompared_clause(uncompared),
            self._unusable_clause(),
            self._late_clauses(),
        )

    def _fresh(self) -> list[SuiteNews]:
        return [suite for suite in self.suites if suite.target not in self.late_targets]

    def _uncompared_clause(self, uncompared: Sequence[SuiteNews]) -> Sentence:
        if not uncompared:
            return []
        count = counted(sum(suite.failing for suite in uncompared), "failure")
        words = texts.FAIL_UNCOMPARED.format(failures=f"{count} {self._scope(uncompared)}")
        return [phrase(words, self._list_path("failing"))]

    def _failures_clause(self, broken: Sequence[SuiteNews], failing: Sequence[SuiteNews]) -> Sentence:
        if not self.suites:
            return []
        if broken:
            new = sum(suite.new for suite in broken)
            words = texts.NEW_FAILURES.format(failures=counted(new, "new failure"), on=self._scope(broken))
            return [phrase(words, self._list_path(NEW_FAILURE)), *self._since_base(broken)]
        if self.last_break:
            sha, committed_at = self.last_break
            day = phrase(
                texts.DAY_OF_COMMIT.format(day=date(committed_at), sha=short(sha)), commit_path(self.repository, sha)
            )
            start = [phrase(texts.NOTHING_NEW_SINCE), day]
        else:
            start = [phrase(texts.NOTHING_NEW.format(commits=counted(self.commit_count, "nightly commit")))]
        if not failing:
            unknown = {*self.late_targets, *self.unusable_targets}
            known = [suite for suite in self.suites if suite.target not in unknown]
            if len(known) == len(self.suites):
                return [*start, phrase(texts.NO_TEST_FAILS)]
            return [*start, phrase(texts.NO_TEST_FAILS_ON.format(on=self._scope(known)))] if known else start
        count = sum(suite.failing for suite in failing)
        fail = texts.STILL_FAIL.format(
            tests=counted(count, "test"), fail="fails" if count == 1 else "fail", on=self._scope(failing)
        )
        return [*start, phrase(": "), phrase(fail, self._list_path("failing"))]

    def _since_base(self, broken: Sequence[SuiteNews]) -> Sentence:
        pairs = {(suite.base, suite.sha) for suite in broken}
        base, sha = next(iter(pairs), ("", ""))
        if len(pairs) > 1 or not base:
            return []
        compare = view_path(self.repository, "compare", target=broken[0].target, base=base, head=sha)
        commits = self.commits_between.get((base, sha))
        count = [phrase(" ("), phrase(counted(commits, "commit"), compare), phrase(")")] if commits else []
        return [phrase(texts.SINCE), phrase(short(base), commit_path(self.repository, base)), *count]

    def _unusable_clause(self) -> Sentence:
        names = [phrase(target, view_path(self.repository, target=target)) for target in self.unusable_targets]
        return [*name_list(names, "target"), phrase(texts.NO_USABLE_RESULTS)] if names else []

    def _late_clauses(self) -> Sentence:
        # One clause for each lab that is late, because each is late by another time.
        failed = Counter[str]()
        for suite in self.suites:
            failed[suite.target] += suite.failing
        targets = sorted(self.late_targets, key=lambda target: not failed[target])
        clauses = [
            [
                phrase(
                    f"{target}{lateness(self.late_targets[target])}",
                    lab_path(self.repository, target.partition("/")[0]),
                ),
                *self._failed_then(failed[target], target),
            ]
            for target in targets[:MOST_NAMED]
        ]
        parts = list(chain.from_iterable([phrase(texts.CLAUSE_END), *clause] for clause in clauses))[1:]
        unnamed = targets[MOST_NAMED:]
        if not unnamed:
            return parts
        count = sum(failed[target] for target in unnamed)
        then = f" ({texts.FAILED_THEN.format(tests=counted(count, 'test'))})" if count else ""
        return [*parts, phrase(texts.AND_MORE.format(more=counted(len(unnamed), "more target")) + then)]

    def _failed_then(self, count: int, target: str) -> Sentence:
        failed = texts.FAILED_THEN.format(tests=counted(count, "test"))
        path = view_path(self.repository, "", **{**self.filters, "target": target})
        return [phrase(" ("), phrase(failed, path), phrase(")")] if count else []

    def next_steps(self) -> list[Sentence]:
        """Say what a maintainer, a contributor and a lab can do."""
        steps = []
        broken = next((suite for suite in self._fresh() if suite.new), None)
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


def matching_answer(listed: ListedRows, status: str | None, *, of_one_target: bool) -> Sentence:
    """Say how many tests match the filters of a grid; each row is one test on one target.

    Rows that are not listed may be of any target, so tests are counted only if all are listed or `of_one_target`.
    """
    if not listed.rows:
        return []
    targets = {row.target for row in listed.rows}
    if listed.unlisted and not of_one_target:
        results = counted(len(listed.rows) + listed.unlisted, "result")
        return sentence([phrase(texts.MATCHING_RESULTS.format(results=results))])
    tests = {(row.suite, row.folder) for row in listed.rows}
    count = len(tests) + listed.unlisted
    match = texts.MATCHES.get(status or "", texts.MATCHES[""])[count != 1]
    words = texts.MATCHING_TESTS.format(tests=counted(count, "test"), match=match)
    return sentence([phrase(words + texts.OF_TARGETS.format(count=len(targets)) * (len(targets) > 1))])
