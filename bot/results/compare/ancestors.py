"""Find the candidates that are ancestors of a commit, from stored relations and GitHub's answers. No I/O.

The relation of two commits never changes, so each answer is stored and serves all targets and later commits. Usually
one request suffices, whatever the distance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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

    `candidates` are those of each suite, newest first; `stored` are the relations that are known already; `most` is how
    many ancestors of each suite are enough. While `next` returns a candidate, ask GitHub whether it is an ancestor, and
    pass the answer to `learn`; `nearest` returns the result.
    """

    def __init__(
        self, sha: str, candidates: Mapping[str, Sequence[Candidate]], stored: Iterable[Relation], most: int
    ) -> None:
        self._sha = sha
        self._candidates = candidates
        self._most = most
        self._ancestors_of = defaultdict[str, list[Relation]](list)
        self._dates = {
            candidate.sha: candidate.committed_at for of_suite in candidates.values() for candidate in of_suite
        }
        self._pages: dict[str, str] = {}
        self._unrelated: set[str] = set()
        self._asked: set[str] = set()
        self._met_at = inf
        self.learned: list[Relation] = []
        """The relations that GitHub returned, for the caller to store."""
        relations = list(stored)
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
        return next((sha for of_suite in self._candidates.values() for sha in self._unknown(of_suite)), None)

    def learn(self, relation: Relation, merge_base: str = "") -> None:
        """Add GitHub's answer; `merge_base` is the newest commit that both contain, empty if there is none."""
        self._asked.add(relation.other)
        self.learned.append(relation)
        self._follow(relation)
        if not relation.is_ancestor and merge_base in self._dates and merge_base not in self._pages:
            self._derive(
                Relation(self._sha, merge_base, is_ancestor=True, url=relation.url.replace(relation.other, merge_base))
            )

    def fail(self, other: str) -> None:
        """Note that GitHub cannot compare the commits; that may change, so it is not stored."""
        self._asked.add(other)
        self._unrelated.add(other)

    def nearest(self) -> dict[str, list[Relation]]:
        """Return the nearest ancestors of each suite, the nearest first; suites without ancestors are missing."""
        nearest_by_suite: dict[str, list[Relation]] = {}
        for suite, candidates in self._candidates.items():
            ancestors = [candidate.sha for candidate in candidates if candidate.sha in self._pages][: self._most]
            if ancestors:
                nearest_by_suite[suite] = [
                    Relation(self._sha, sha, is_ancestor=True, url=self._pages[sha]) for sha in ancestors
                ]
        return nearest_by_suite

    def derived(self) -> list[Relation]:
        """Return the relations that follow from other relations. Stored, they save requests for later commits."""
        direct = {relation.other for relation in chain(self._ancestors_of[self._sha], self.learned)}
        nearest = chain.from_iterable(self.nearest().values())
        relations = {relation.other: relation for relation in nearest}
        return [relation for sha, relation in relations.items() if sha not in direct]

    def _unknown(self, candidates: Sequence[Candidate]) -> Iterator[str]:
        ancestors = 0
        for candidate in candidates:
            if candidate.sha in self._pages:
                ancestors += 1
                if ancestors == self._most:
                    return
            elif candidate.sha not in self._unrelated and (
                len(self._asked) < ASKED_IN_ORDER or candidate.committed_at <= self._met_at
            ):
                yield candidate.sha

    def _follow(self, relation: Relation) -> None:
        if relation.is_ancestor:
            self._derive(relation)
            return
        self._met_at = min(self._met_at, relation.met_at)
        self._unrelated.add(relation.other)
        # A commit that the other one contains, and that is newer than the common ancestor, is no ancestor.
        for ancestor in self._known_ancestors(relation.other):
            if self._dates.get(ancestor.other, 0.0) > relation.met_at:
                self._unrelated.add(ancestor.other)

    def _derive(self, relation: Relation) -> None:
        self._pages[relation.other] = relation.url
        for ancestor in self._known_ancestors(relation.other):
            self._pages.setdefault(ancestor.other, ancestor.url)

    def _known_ancestors(self, sha: str) -> Iterator[Relation]:
        waiting, seen = [sha], {sha}
        while waiting:
            for relation in self._ancestors_of.get(waiting.pop(), ()):
                if relation.other not in seen:
                    seen.add(relation.other)
                    waiting.append(relation.other)
                    yield relation
