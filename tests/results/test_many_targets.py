"""Reading many targets together gives the same as reading each alone, whatever their tests did."""

from __future__ import annotations

import random
from itertools import pairwise

from nightjar_formats.columns import SEEN, at
from nightjar_formats.model import BAD, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import WINDOW
from bot.results.store.grid.rows import GridRange
from bot.results.store.grid.test_runs import is_new_failure
from bot.results.store.store import ResultsStore
from tests.results.uploads import LAB, REPOSITORY, SUITE, Upload

TARGETS = ("adreno", "hexagon")
RUNS = 50
ALIASES = Aliases([("test_old", "test_3")])


def random_uploads(chance: random.Random) -> list[Upload]:
    """Return runs of two targets in any order; some tests are flaky, one is renamed, some are absent."""
    uploads = []
    for target in TARGETS:
        for number in range(1, RUNS + 1):
            tests = {f"test_{one}": chance.choices(("passed", "failed", "skipped"), (6, 3, 1))[0] for one in range(8)}
            if number < 25:
                tests["test_old"] = tests.pop("test_3")
            tests |= {f"test_ok_{one}": "passed" for one in range(20)}
            if chance.random() < 0.2:
                del tests["test_5"]
            flaky = frozenset(one for one in ("test_1", "test_2", "test_old") if chance.random() < 0.3) & tests.keys()
            shard = (1, 2) if number == 30 else (1, 1)
            uploads.append(Upload(number, tests, target=target, flaky=flaky, shard=shard))
    chance.shuffle(uploads)
    return uploads


def test_many_targets_give_the_same_as_each_alone(store: ResultsStore) -> None:
    for upload in random_uploads(random.Random(1)):
        store.put(upload.run, upload.columns)
    for aliases in (NO_ALIASES, ALIASES):
        check_explained_failures_of_a_grid(store, aliases)
        check_what_fails_now(store, aliases)


def check_explained_failures_of_a_grid(filled: ResultsStore, aliases: Aliases) -> None:
    grid = filled.grids.read(GridRange(REPOSITORY, limit=14, aliases=aliases))
    explained = compared = 0
    for line in grid.lines:
        names = filled.grids.names(line)
        shas = [sha for _, sha in grid.commits]
        for sha, older in pairwise(shas):
            point, before = grid.points[line.series, sha], grid.points[line.series, older]
            assert point.before is not None
            bad = {place for place, byte in enumerate(point.now) if SEEN[byte].status in BAD and byte}
            was_bad = {place for place in bad if at(before.now, place) and SEEN[at(before.now, place)].status in BAD}
            now = {names[place]: SEEN[point.now[place]] for place in bad - was_bad}
            alone = filled.failures.flakiness(line.about, SUITE, sha, now, aliases)
            for place in bad - was_bad:
                listed = SEEN[at(point.before, place)].status in BAD and at(point.before, place) > 0
                assert listed == alone[names[place]].explains, (line.about, sha, names[place])
                explained += listed
                compared += 1
    assert 0 < explained < compared


def check_what_fails_now(filled: ResultsStore, aliases: Aliases) -> None:
    found = filled.failures.targets_now(REPOSITORY, 3, aliases)
    for target in TARGETS:
        about = TargetKey(REPOSITORY, LAB, target)
        listed, failing = filled.failures.failing(about, 3, aliases)
        newest = filled.failures.newest_runs(about)
        assert (found[about].sha, found[about].suites, found[about].failing) == (newest[0].sha, 1, failing)
        assert [(one.suite, one.test, one.since) for one in found[about].failures] == [
            (one.suite, one.test, one.context.since or one.sha) for one in listed
        ]


def test_a_history_of_any_length_has_the_new_failures_of_the_grid(store: ResultsStore) -> None:
    """A test that both passed and failed in all earlier runs is known to be flaky, however few runs are listed."""
    for number in range(1, WINDOW + 4):
        complete = number < WINDOW + 2
        upload = Upload(
            number,
            {"test_flaky": "passed" if complete else "failed", "test_ok": "passed" if complete else "failed"},
            flaky=frozenset({"test_flaky"} if complete else ()),
            shard=(1, 1) if complete else (1, 2),
        )
        store.put(upload.run, upload.columns)
    grid = store.grids.read(GridRange(REPOSITORY))
    (line,) = grid.lines
    names, shas = store.grids.names(line), [sha for _, sha in grid.commits[:2]]
    for test, is_new in (("test_flaky", False), ("test_ok", True)):
        points = [grid.points[line.series, sha] for sha in shas]
        places = [(at(one.before or b"", names.index(test)), at(one.now, names.index(test))) for one in points]
        assert [is_new_failure(*one) for one in places] == [is_new, is_new]
        traced = store.history(REPOSITORY, SUITE, test)
        for count in (WINDOW, 3, 2, 1):
            asked = GridRange(REPOSITORY, limit=count)
            runs = store.grids.runs_of_test([line], test, traced, asked)[line.series][:2]
            assert {is_new_failure(run.was, run.now) for run in runs} == {is_new}
