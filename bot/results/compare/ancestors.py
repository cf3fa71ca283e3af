"""Find out which candidates are ancestors of a commit, from stored relations and GitHub's answers. No I/O.

The relation of two commits never changes, so each answer is stored and serves all targets and later commits. Usually
one request is left, whatever the distance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

MOST_ASKED = 10
"""Requests to GitHub about one commit, at most; usually there is one."""
ASKED_IN_ORDER = 5
"""After so many requests, candidates that are newer than a common ancestor are left out."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit with results that another may be compared with; `committed_at` is in seconds since 1970."""

    sha: str
    committed_at: float


@dataclass(frozen=True, slots=True)
class Relation:
    """Whether another commit is an ancestor of a commit (`sha`).

    `url` is the page of the other commit. If it is not an ancestor, `met_at` is the time of the newest commit that both
    contain, in seconds since 1970.
    """

    sha: str
    other: str
    is_ancestor: bool
    url: str = ""
    met_at: float = 0.0


class AncestorSearch:
    """Finds the nearest ancestors of a commit among the candidates of each suite.

    `candidates` are those of each suite, newest first; `known` are relations, and `wanted` is how many ancestors of
    each suite are enough. While `next` returns a candidate, ask GitHub whether it is an ancestor, and `learn` the
    answer; `found` has the result.
    """

    def __init__(
        self, sha: str, candidates: Mapping[str, Sequence[Candidate]], known: Iterable[Relation], wanted: int
    ) -> None:
        self._sha = sha
        self._candidates = candidates
        self._wanted = wanted
        self._ancestors_of = defaultdict[str, list[Relation]](list)
        self._dates = {one.sha: one.committed_at for every in candidates.values() for one in every}
        self._pages: dict[str, str] = {}
        self._others: set[str] = set()
        self._asked: set[str] = set()
        self._met_at = inf
        self.learned: list[Relation] = []
        """What was not known before, to be stored."""
        relations = list(known)
        for relation in relations:
            if relation.is_ancestor:
                self._ancestors_of[relation.sha].append(relation)
        for relation in relations:
            if relation.sha == sha:
                self._follow(relation)

    def next(self) -> str | None:
        """Return the next commit to ask GitHub about; None if enough is known, or no more may be asked."""
        if len(self._asked) >= MOST_ASKED:
            return None
        return next((one for every in self._candidates.values() for one in self._unknown(every)), None)

    def learn(self, relation: Relation, met: str = "") -> None:
        """Note the answer; `met` is the newest commit that both contain, empty if there is none."""
        self._asked.add(relation.other)
        self.learned.append(relation)
        self._follow(relation)
        if not relation.is_ancestor and met in self._dates and met not in self._pages:
            self._derive(Relation(self._sha, met, is_ancestor=True, url=relation.url.replace(relation.other, met)))

    def fail(self, other: str) -> None:
        """Note that GitHub cannot compare the commits; that may change, so it is not stored."""
        self._asked.add(other)
        self._others.add(other)

    def found(self) -> dict[str, list[Relation]]:
        """Return the nearest ancestors of each suite, the nearest first; suites without are missing."""
        found = {}
        for suite, candidates in self._candidates.items():
            ancestors = [one.sha for one in candidates if one.sha in self._pages][: self._wanted]
            if ancestors:
                found[suite] = [Relation(self._sha, sha, is_ancestor=True, url=self._pages[sha]) for sha in ancestors]
        return found

    def derived(self) -> list[Relation]:
        """Return the relations of the result that follow from others: stored, they answer for later commits."""
        direct = {one.other for one in (*self._ancestors_of[self._sha], *self.learned)}
        results = {one.other: one for found in self.found().values() for one in found}
        return [one for sha, one in results.items() if sha not in direct]

    def _unknown(self, candidates: Sequence[Candidate]) -> Iterator[str]:
        ancestors = 0
        for one in candidates:
            if one.sha in self._pages:
                ancestors += 1
                if ancestors == self._wanted:
                    return
            elif one.sha not in self._others and (
                len(self._asked) < ASKED_IN_ORDER or one.committed_at <= self._met_at
            ):
                yield one.sha

    def _follow(self, relation: Relation) -> None:
        if relation.is_ancestor:
            self._derive(relation)
            return
        self._met_at = min(self._met_at, relation.met_at)
        self._others.add(relation.other)
        # What the other one contains, and was made after the histories met, this one does not contain.
        for inside in self._reached(relation.other):
            if self._dates.get(inside.other, 0.0) > relation.met_at:
                self._others.add(inside.other)

    def _derive(self, relation: Relation) -> None:
        self._pages[relation.other] = relation.url
        for inside in self._reached(relation.other):
            self._pages.setdefault(inside.other, inside.url)

    def _reached(self, sha: str) -> Iterator[Relation]:
        waiting, seen = [sha], {sha}
        while waiting:
            for relation in self._ancestors_of.get(waiting.pop(), ()):
                if relation.other not in seen:
                    seen.add(relation.other)
                    waiting.append(relation.other)
                    yield relation
