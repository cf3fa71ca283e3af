"""Commits whose files are other targets' are unlikely culprits, and nothing else is guessed from paths."""

from __future__ import annotations

from handlers.device_tests.targets import request_targets
from handlers.results.config import LAB_RESULTS
from handlers.searches.decide import traits_of
from handlers.searches.paths import touches_only_other_targets
from handlers.searches.records import SearchedCommit
from tests.settings import repository_config

PHONE, BOARD, GENERAL = "example-lab/phone", "example-lab/board", "example-lab/general"
TARGETS = {
    "phone": {"tier": 1, "paths": ("src/phone/*", "src/shared/*")},
    "board": {"tier": 1, "paths": ("src/board/*", "src/shared/*")},
    "general": {"tier": 2},
}


def test_files_of_other_targets_only_count_where_the_searched_ones_name_theirs() -> None:
    results = {"prefix": "results/", "labs": {"example-lab": {"targets": TARGETS}}}
    known = request_targets(repository_config(results=results).of(LAB_RESULTS))
    cases = [
        (["src/board/a.cc"], {PHONE}, True),
        (["src/board/a.cc", "src/board/b.cc"], {PHONE}, True),
        (["src/board/a.cc"], {PHONE, BOARD}, False),
        (["src/board/a.cc", "src/ir/b.cc"], {PHONE}, False),
        (["src/shared/a.cc"], {PHONE}, False),
        (["src/phone/a.cc"], {PHONE}, False),
        (["src/board/a.cc"], {GENERAL}, False),
        (["src/board/a.cc"], {PHONE, GENERAL}, False),
        (["src/board/a.cc"], {"example-lab/removed"}, False),
        ([], {PHONE}, False),
    ]
    for names, searched, expected in cases:
        assert touches_only_other_targets(names, known, searched) is expected, (names, searched)


def test_traits_of_commits_are_those_of_their_files_and_titles() -> None:
    commits = [
        SearchedCommit("a", "Faster (#1)"),
        SearchedCommit("b", "Docs (#2)", only_docs=True),
        SearchedCommit("c", 'Revert "Faster (#1)" (#3)'),
        SearchedCommit("d", "Board (#4)", only_other_targets=True),
    ]
    traits = traits_of(commits)
    assert [trait.only_docs for trait in traits] == [False, True, False, False]
    assert [trait.only_other_targets for trait in traits] == [False, False, False, True]
    assert [trait.reverts for trait in traits] == [None, None, 0, None]
