"""Random histories of a repository, and what pages must say of them: written from docs/signal.md, not from the code."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status

from bot.results.compare.ancestors import Relation
from bot.results.state import Admission, Run, RunState
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from tests.handlers.dashboard.nightly_runs import NOW, TIMEOUT

LAB = "example-lab"
TARGETS, SUITES = ("adreno", "hexagon"), ("operators", "runtime")
SIMULATOR, DEVICE = TARGETS
COMMITS = 9
"""With fewer than ten runs a flaky test has no rate, so flakiness explains two failed runs in a row."""
HOUR = 3600.0
QUARANTINED = "tests/test_e.py::test_quarantined"
OLD_NAME, NEW_NAME = "tests/test_f.py::test_former", "tests/test_g.py::test_latter"
RENAMED_AT = 5
FILLERS = tuple(f"tests/test_ok.py::test_{letter}" for letter in "abcdefghijkl")
STATES = ("new-failure", "still-failing", "failing-uncompared", "known-failure", "flaky", "skipped", "passed")
FAILING = STATES[:3]
FLAKINESS_EXPLAINS = 2
"""Failed runs in a row of a test that was proved flaky."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended at a commit: `passed`, `failed` or `skipped`; `flaky`: it both passed and failed."""

    status: str
    flaky: bool = False


@dataclass(frozen=True)
class SentRun:
    """A run of a suite on a target; with `broken`, the device answered no test."""

    repository: str
    target: str
    suite: str
    commit: int
    outcomes: Mapping[str, Outcome]
    run_id: str = "run-1"
    shard: tuple[int, int] = (1, 1)
    pull_request: int | None = None
    broken: bool = False
    newest_age: float = 10 * HOUR

    @property
    def committed_at(self) -> float:
        """When its commit was made; heads of pull requests are made an hour after the commit that they are based on."""
        return committed_at(self.commit, self.newest_age) + (HOUR if self.pull_request else 0.0)

    @property
    def sha(self) -> str:
        """The SHA of its commit."""
        return sha(self.commit, self.pull_request)

    @property
    def run(self) -> Run:
        """The run without its tests."""
        key = RunKey(self.repository, LAB, self.target, self.sha, f"{self.suite}-{self.run_id}")
        claims = Claims(self.suite, 1, *self.shard, exit_status=1)
        admission = Admission(self.committed_at, self.pull_request is None, self.pull_request)
        return Run(key, "etag", RunState.STORED, "", self.committed_at + HOUR, 100, claims, admission)

    def cases(self) -> Iterator[Case]:
        """Yield its tests."""
        for name, outcome in self.outcomes.items():
            status = Status.FAILED if self.broken else Status(outcome.status)
            message = TIMEOUT if self.broken else f"assert {name}" if status is Status.FAILED else ""
            yield Case(name, status, nodeid=name, flaky=outcome.flaky and not self.broken, seconds=0.1, message=message)


def sha(commit: int, pull_request: int | None = None) -> str:
    """Return the SHA of a commit of the nightly branch, or of the head of a pull request that is based on it."""
    return f"{commit + 1:02x}{pull_request or 0:02x}" * 10


def committed_at(commit: int, newest_age: float) -> float:
    """Return when a commit was made, in seconds since 1970."""
    return NOW - newest_age - (COMMITS - 1 - commit) * 24 * HOUR


@dataclass
class RandomHistory:
    """What labs sent about a repository, in the order of arrival."""

    repository: str
    runs: list[SentRun] = field(default_factory=list)

    def store(self, store: ResultsStore) -> None:
        """Store all runs, and which commits are ancestors of each other."""
        for sent in self.runs:
            store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.nodeid.partition("::")[0])))
        commits = {(sent.commit, sent.pull_request or 0) for sent in self.runs}
        relations = [
            Relation(sha(later, pull or None), sha(earlier), is_ancestor=True, url=f"https://github.com/{earlier}")
            for later, pull in sorted(commits)
            for earlier in range(later + (pull > 0))
        ]
        store.write(learn, self.repository, relations)

    @cached_property
    def points(self) -> dict[tuple[str, str, str], Point]:
        """The combined runs of each target, suite and commit."""
        groups: dict[tuple[str, str, str], list[SentRun]] = {}
        for sent in self.runs:
            groups.setdefault((sent.target, sent.suite, sent.sha), []).append(sent)
        return {place: Point(sorted(sents, key=lambda sent: sent.run_id)) for place, sents in groups.items()}

    def series(self, target: str, suite: str) -> list[Point]:
        """Return the complete, usable points of the nightly branch, oldest first."""
        points = [
            point for place, point in self.points.items() if place[:2] == (target, suite) and point.counts_as_nightly
        ]
        return sorted(points, key=lambda point: point.commit)

    def before(self, point: Point) -> list[Point]:
        """Return the points of the series that a point is compared with, the oldest first."""
        earlier = self.series(point.target, point.suite)
        return [
            candidate
            for candidate in earlier
            if candidate.commit < point.commit or (point.pull_request and candidate.commit == point.commit)
        ]

    def state(self, point: Point, test: str) -> str:
        """Return the state of a test at a point, by any of its names."""
        outcome, earlier = point.outcome(test), self.before(point)
        if outcome is None:
            return "absent" if point.complete else "incomplete"
        if outcome.status != "failed":
            return "flaky" if outcome.flaky else outcome.status
        if outcome.flaky or test == QUARANTINED:
            return "known-failure"
        if not earlier:
            return "failing-uncompared"
        if self.explained(point, test):
            return "known-failure"
        last = earlier[-1].outcome(test)
        return "still-failing" if last is not None and last.status == "failed" else "new-failure"

    def is_one_sided(self, point: Point, test: str) -> bool:
        """Say whether a failure that nothing explains passes on the other one of the simulator and its device."""
        if test not in point.outcomes or self.state(point, test) not in FAILING:
            return False
        other_target = SIMULATOR if point.target == DEVICE else DEVICE
        other = self.points.get((other_target, point.suite, sha(point.commit, point.pull_request)))
        if other is None or other.broken or not other.complete:
            earlier = self.series(other_target, point.suite)
            other = next((candidate for candidate in reversed(earlier) if candidate.commit <= point.commit), None)
        return other is not None and other.outcomes.get(test) == Outcome("passed")

    def lasts(self, point: Point, test: str) -> bool:
        """Say whether a message is due: the two newest runs failed, and flakiness does not explain that."""
        earlier = self.before(point)
        both = [candidate.outcome(test) for candidate in (*earlier[-1:], point)]
        return both == [Outcome("failed")] * 2 and not self.explained(point, test)

    def kind(self, point: Point, test: str) -> str:
        """Return the words of the run's page for a failure."""
        if point.broken:
            return "unusable run"
        state = self.state(point, test)
        if state != "known-failure":
            return {"new-failure": "new", "still-failing": "still failing"}.get(state, "nothing to compare with")
        return "quarantined" if test == QUARANTINED else "known flaky"

    def explained(self, point: Point, test: str) -> bool:
        """Say whether the test was proved flaky, and has not failed more often in a row than that explains."""
        outcomes = [earlier.outcome(test) for earlier in self.before(point)] + [point.outcome(test)]
        ran = [outcome for outcome in outcomes if outcome is not None and outcome.status != "skipped"]
        row = 0
        while row < len(ran) and ran[-1 - row] == Outcome("failed"):
            row += 1
        return any(outcome.flaky for outcome in ran) and row <= FLAKINESS_EXPLAINS

    def letters(self, target: str, suite: str, test: str) -> str:
        """Return how a test ended at the points of a series that ran it, oldest first: Passed, Failed or Both."""
        outcomes = [point.outcome(test) for point in self.series(target, suite)]
        ran = [outcome for outcome in outcomes if outcome is not None and outcome.status != "skipped"]
        return "".join("B" if outcome.flaky else outcome.status[0].upper() for outcome in ran)

    def newest(self, target: str, suite: str) -> Point | None:
        """Return the newest point of the series."""
        series = self.series(target, suite)
        return series[-1] if series else None

    def tests_now(self, states: Sequence[str]) -> set[tuple[str, str, str]]:
        """Return the target, suite and test of all tests that are in one of some states in the newest nightly run."""
        return {
            (f"{LAB}/{target}", suite, test)
            for target in TARGETS
            for suite in SUITES
            if (point := self.newest(target, suite)) is not None
            for test in point.outcomes
            if self.state(point, test) in states
        }


@dataclass(frozen=True)
class Point:
    """The runs of a suite on a target at a commit, in their order."""

    sents: Sequence[SentRun]

    @property
    def target(self) -> str:
        """The target without its lab."""
        return self.sents[0].target

    @property
    def suite(self) -> str:
        """The suite."""
        return self.sents[0].suite

    @property
    def commit(self) -> int:
        """The number of its commit."""
        return self.sents[0].commit

    @property
    def pull_request(self) -> int | None:
        """The pull request, None for a nightly run."""
        return self.sents[0].pull_request

    @property
    def broken(self) -> bool:
        """Whether it has no usable results."""
        return all(sent.broken for sent in self.sents)

    @property
    def complete(self) -> bool:
        """Whether all shards have arrived."""
        return self.sents[0].shard[1] == 1

    @property
    def counts_as_nightly(self) -> bool:
        """Whether later points are compared with it."""
        return self.pull_request is None and self.complete and not self.broken

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """How its tests ended: the last run decides, and a test with both outcomes is flaky."""
        outcomes: dict[str, Outcome] = {}
        for sent in self.sents:
            for test, outcome in sent.outcomes.items():
                earlier = outcomes.get(test)
                both = earlier is not None and {earlier.status, outcome.status} == {"passed", "failed"}
                was_flaky = earlier is not None and earlier.flaky
                outcomes[test] = Outcome(outcome.status, outcome.flaky or both or was_flaky)
        return outcomes

    def outcome(self, test: str) -> Outcome | None:
        """Return how a test ended, under the name that it had then."""
        names = (OLD_NAME, NEW_NAME) if test in (OLD_NAME, NEW_NAME) else (test,)
        return next((self.outcomes[name] for name in names if name in self.outcomes), None)


def random_history(repository: str, chance: random.Random) -> RandomHistory:
    """Return a history: some runs are incomplete, broken, repeated, missing or of a pull request, and all come late."""
    newest_age = chance.choice((10 * HOUR, 10 * HOUR, 60 * HOUR))
    runs: list[SentRun] = []
    for target in TARGETS:
        end = chance.choice((COMMITS, COMMITS, COMMITS - 2))  # a lab may have stopped
        for suite in SUITES:
            behaviors = {f"tests/test_{letter}.py::test_{letter}": chance.choice(BEHAVIORS) for letter in "abcd"}
            behaviors |= {QUARANTINED: chance.choice(BEHAVIORS), NEW_NAME: chance.choice(BEHAVIORS)}
            first = chance.choice((0, 0, 4))
            for commit in range(first, end):
                sent = SentRun(repository, target, suite, commit, _outcomes(behaviors, commit, chance))
                runs += _sent(replace(sent, newest_age=newest_age), behaviors, chance)
    chance.shuffle(runs)
    return RandomHistory(repository, runs)


def _sent(sent: SentRun, behaviors: Mapping[str, str], chance: random.Random) -> Iterator[SentRun]:
    match chance.choices(("once", "missing", "broken", "part", "again", "pull"), (10, 1, 1, 1, 2, 2))[0]:
        case "missing":
            return
        case "broken":
            yield replace(sent, broken=True)
            return
        case "part":
            outcomes = dict(list(sent.outcomes.items())[: len(sent.outcomes) // 2])
            yield replace(sent, shard=(1, 2), outcomes=outcomes)
            return
        case "again":
            yield replace(sent, run_id="run-2", outcomes=_outcomes(behaviors, sent.commit, chance))
        case "pull":
            outcomes = _outcomes(behaviors, sent.commit, chance)
            yield replace(sent, pull_request=chance.choice((1, 2)), outcomes=outcomes)
    yield sent


BEHAVIORS = ("passes", "fails", "breaks", "flaky", "flaky", "random", "skipped", "sometimes")
_RANDOM = {
    "flaky": (("passed", 5), ("failed", 4), ("flaky", 3), ("flaky-failed", 1)),
    "random": (("passed", 5), ("failed", 5), ("skipped", 1)),
    "sometimes": (("passed", 5), ("failed", 2), ("absent", 4)),
    "passes": (("passed", 1),),
    "fails": (("failed", 1),),
    "skipped": (("skipped", 5), ("passed", 1)),
}


def _outcomes(behaviors: Mapping[str, str], commit: int, chance: random.Random) -> dict[str, Outcome]:
    outcomes = {test: Outcome("passed") for test in FILLERS}
    for test, behavior in behaviors.items():
        if behavior == "breaks":
            behavior = "fails" if commit >= COMMITS - 4 else "passes"
        words, weights = zip(*_RANDOM[behavior], strict=True)
        word = chance.choices(words, weights)[0]
        name = OLD_NAME if test == NEW_NAME and commit < RENAMED_AT else test
        if word != "absent":
            flaky = word.startswith("flaky")
            outcomes[name] = Outcome({"flaky": "passed", "flaky-failed": "failed"}.get(word, word), flaky)
    return dict(sorted(outcomes.items(), key=lambda item: chance.random()))
