"""The revision of a repository's results grows with each change that pages show, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

from bot.results.compare.ancestors import Relation
from bot.results.state import RunState
from bot.results.store.failures.failures import Failure, store_reports
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from bot.results.store.tables.revisions import revisions_of
from tests.results.uploads import ABOUT, REPOSITORY, Upload, sha

ONE = Upload(1, {"test_a": "passed", "test_b": "failed"})
OTHER = "octocat/other"


def test_the_revision_grows_with_each_change(store: ResultsStore) -> None:
    def revision() -> int:
        return store.read(revisions_of, [REPOSITORY])[0]

    assert revision() == 0
    seen = [revision()]
    waiting = replace(ONE.run, state=RunState.WAITING)
    for change in (
        lambda: store.put_state(waiting),
        lambda: store.put(ONE.run, ONE.columns),
        lambda: store.write(learn, REPOSITORY, [Relation(sha(2), sha(1), is_ancestor=True)]),
        lambda: store.write(store_reports, ABOUT, sha(1), store.clock(), [Failure("operators", "test_b", sha(1))], {}),
    ):
        change()
        seen.append(revision())
    assert sorted(set(seen)) == seen
    assert not store.put(ONE.run, ONE.columns)
    assert not store.put_state(waiting)
    assert revision() == seen[-1]


def test_each_repository_has_its_own_in_any_letter_case(store: ResultsStore) -> None:
    store.put(ONE.run, ONE.columns)
    assert store.read(revisions_of, [OTHER, REPOSITORY.upper()]) == [0, store.read(revisions_of, [REPOSITORY])[0]]
    assert store.read(revisions_of, [REPOSITORY])[0] > 0
