"""Which commits GitHub is asked about, and what follows from its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from bot.results.compare.ancestors import MOST_ASKED, AncestorSearch, Candidate, Relation

Parents = Mapping[int, tuple[int, ...]]
"""The parents of each commit; a commit is older than those with a higher number."""
PAGE = "https://github.example/octocat/compiler/commit/{}"


def containing(parents: Parents, commit: int) -> set[int]:
    """Return a commit and its ancestors."""
    found, waiting = {commit}, [commit]
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


class Repository:
    """Commits, and the stored relations between them."""

    def __init__(self, parents: Parents) -> None:
        self.parents = parents
        self.known: list[Relation] = []

    def nearest(self, commit: int, *candidates: Iterable[int], wanted: int = 2) -> tuple[list[list[int]], int]:
        """Return the nearest ancestors for each suite, and the number of requests."""
        every = {
            str(number): [Candidate(str(one), float(one)) for one in sorted(suite, reverse=True)]
            for number, suite in enumerate(candidates)
        }
        search, asked = AncestorSearch(str(commit), every, self.known, wanted), 0
        while (other := search.next()) is not None:
            asked += 1
            both = containing(self.parents, commit) & containing(self.parents, int(other))
            if int(other) in both:
                search.learn(Relation(str(commit), other, is_ancestor=True, url=PAGE.format(other)))
            elif both:
                met = max(both)
                relation = Relation(str(commit), other, is_ancestor=False, url=PAGE.format(other), met_at=float(met))
                search.learn(relation, str(met))
            else:
                search.fail(other)
        self.known += [*search.learned, *search.derived()]
        found = search.nearest()
        assert all(one.url == PAGE.format(one.other) for suite in found.values() for one in suite)
        return [[int(one.other) for one in found.get(suite, [])] for suite in every], asked


def line(length: int) -> dict[int, tuple[int, ...]]:
    return {number: (number - 1,) if number else () for number in range(length)}


def test_on_a_linear_history_each_commit_costs_one_request() -> None:
    repository = Repository(line(100))
    asked = [repository.nearest(number, range(0, number, 7)) for number in range(7, 99, 7)]
    assert asked == [([[number - 7, number - 14][: number // 7]], 1) for number in range(7, 99, 7)]


def test_suites_share_their_answers() -> None:
    repository = Repository(line(10))
    assert repository.nearest(9, [8, 7, 6], [8, 6], [7]) == ([[8, 7], [8, 6], [7]], 3)
    assert repository.nearest(9, [8, 7, 6], [8, 6], [7]) == ([[8, 7], [8, 6], [7]], 0)


def test_of_two_branches_only_the_commits_own_one_counts() -> None:
    # Even commits are on one branch, odd ones on another; both begin at 0.
    parents = {number: (max(number - 2, 0),) if number else () for number in range(40)}
    repository = Repository(parents)
    for number in range(4, 40):
        found, asked = repository.nearest(number, range(number))
        own = [one for one in range(number - 1, -1, -1) if one in containing(parents, number)]
        assert found == [own[:2]]
        assert asked <= 3


def test_the_removed_commits_of_a_reset_branch_are_left_out() -> None:
    parents = line(50) | {50: (10,), 51: (50,)}
    repository = Repository(parents)
    for number in range(1, 50):
        repository.nearest(number, range(number))
    assert repository.nearest(50, range(50)) == ([[10, 9]], 1)
    assert repository.nearest(51, range(51)) == ([[50, 10]], 2)


def test_without_stored_relations_a_reset_branch_is_searched_from_the_merge_base() -> None:
    parents = line(50) | {50: (10,), 51: (50,)}
    found, asked = Repository(parents).nearest(51, set(range(50)) - {10})
    assert (found, asked <= MOST_ASKED) == ([[9, 8]], True)


def test_unrelated_commits_give_no_ancestor_after_a_limited_number_of_requests() -> None:
    parents = dict.fromkeys(range(200), ())
    found, asked = Repository(parents).nearest(199, range(199))
    assert (found, asked <= MOST_ASKED) == ([[]], True)


@st.composite
def histories(draw: st.DrawFn) -> dict[int, tuple[int, ...]]:
    """Draw commits with one or two parents, on few branches."""
    parents: dict[int, tuple[int, ...]] = {0: ()}
    for number in range(1, draw(st.integers(2, 14))):
        some = draw(st.lists(st.integers(max(0, number - 4), number - 1), min_size=1, max_size=2, unique=True))
        parents[number] = tuple(some)
    return parents


@given(histories(), st.data())
def test_in_any_history_only_ancestors_are_found(parents: dict[int, tuple[int, ...]], data: st.DataObject) -> None:
    repository = Repository(parents)
    for number in data.draw(st.permutations(range(1, len(parents)))):
        candidates = data.draw(st.sets(st.integers(0, number - 1), min_size=1))
        (found,), asked = repository.nearest(number, candidates)
        assert asked <= MOST_ASKED
        assert set(found) <= containing(parents, number)
        if asked < 5:
            own = sorted(candidates & containing(parents, number), reverse=True)
            assert found == own[:2]
