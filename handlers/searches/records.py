"""What the bot remembers of a search for a culprit: its request, its range, its runs and its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from bot.engine.records import Key, Record
from bot.results.measurements.levels import MeasuredLevels

SEARCH_PURPOSE = "search:"
"""How the purposes of a search's jobs begin: `search:ID:NUMBER`."""
DAYS = 365.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Tests of a suite that began to fail together on some targets (LAB/TARGET).

    They passed at the commit `good` and fail at `bad`, a later one of the same branch. With a `measurement`, the level
    of what the only test measures under this name changed instead: at `good`, it was as before.
    """

    suite: str
    tests: tuple[str, ...]
    targets: tuple[str, ...]
    good: str
    bad: str
    measurement: str = ""

    @property
    def id(self) -> str:
        """The ID of the search: the same request is searched once."""
        fields = asdict(self)
        if not self.measurement:
            del fields["measurement"]  # IDs of searches for failures are older than those for measurements
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class SearchedCommit:
    """A commit of the range; `title` is the first line of its message, `author` a login or a name.

    What its files say: it changes `only_docs`, or `only_other_targets`' files; both are false if they were not read.
    """

    sha: str
    title: str
    author: str = ""
    only_docs: bool = False
    only_other_targets: bool = False


class SearchRunState(StrEnum):
    """What became of a run that a search asked for."""

    WAITING = "waiting"
    RESULTS = "results"
    NO_RESULTS = "no results"
    """The lab tried, and the tests gave no results: the commit may not build."""
    LOST = "lost"
    """No lab ran it, or the lab vanished. It says nothing about the commit."""


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run that the search asked for: its number, the position of the commit in the range, and the target.

    `counts` says how often each test failed and passed. In a search for a measurement, the whole run counts once: as
    failed if `value`, the median that it measured, is closer to the new level. Moments are seconds since 1970;
    `seconds` is device time.
    """

    number: int
    commit: int
    target: str
    repeat: int
    asked_at: float
    state: SearchRunState = SearchRunState.WAITING
    ended_at: float = 0.0
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    seconds: float = 0.0
    log_url: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """How a search ended (a `SearchOutcome`), and the commits, by position, that this probability is about.

    `first` and `last` are 0 if no commit is the cause. `pull` is the pull request that was merged as the commit; 0 for
    none.
    """

    outcome: str
    probability: float
    first: int
    last: int
    pull: int = 0


@dataclass(frozen=True, slots=True)
class CulpritSearch:
    """A search: `commits` are those of the range, oldest first; position 1 is the first of them.

    `histories` has the failures and passes of each test on each target before the range, by `series_name`. `step`
    counts the changes. `levels` are those of the measurement on each target, if one is searched; then `histories` count
    nights that were closer to the new level as failures.
    """

    request: SearchRequest
    commits: tuple[SearchedCommit, ...]
    histories: Mapping[str, tuple[int, int]]
    began_at: float
    runs: tuple[AskedRun, ...] = ()
    answer: SearchAnswer | None = None
    ended_at: float = 0.0
    step: int = 1
    issue: str = ""
    """The key of the issue that shows it; empty for none."""
    commented: int = 0
    """The pull request that has a comment about it, 0 for none."""
    levels: Mapping[str, MeasuredLevels] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The ID of the search."""
        return self.request.id

    @property
    def seconds(self) -> float:
        """How long devices worked for it."""
        return sum(run.seconds for run in self.runs)

    def sha_of(self, position: int) -> str:
        """Return the SHA at a position; 0 is the last commit at which the tests passed."""
        return self.commits[position - 1].sha if position else self.request.good

    def purpose(self, number: int) -> str:
        """Return the purpose of the job of a run."""
        return f"{SEARCH_PURPOSE}{self.id}:{number}"


def section_name(search_id: str) -> str:
    """Return the name of a search's section in its issue."""
    return f"{SEARCH_PURPOSE}{search_id}"


def series_name(target: str, test: str) -> str:
    """Return the name of the runs of one test on one target."""
    return f"{target} {test}"


@dataclass(frozen=True, slots=True)
class OpenSearch:
    """A search that has no answer yet."""

    repository: str
    id: str


# Version 1 has no measurement, and would take a search for one for a search for failures.
CULPRIT_SEARCH = Record("culprit-search", 2, CulpritSearch, "a search for the commit that broke tests", days=DAYS)
OPEN_SEARCH = Record("open-search", 1, OpenSearch, "a search for the commit that broke tests has no answer", days=DAYS)


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """A search as lists show it. `test` is the first of its tests, `measurement` what it measures, if that is searched.

    `commits` counts those of the range.

    Without an answer, `outcome` is empty. `sha`, `title` and `pull` are those of the culprit. Moments are seconds since
    1970.
    """

    id: str
    suite: str
    test: str
    tests: int
    targets: tuple[str, ...]
    good: str
    bad: str
    commits: int
    runs: int
    seconds: float
    began_at: float
    ended_at: float = 0.0
    outcome: str = ""
    probability: float = 0.0
    sha: str = ""
    title: str = ""
    pull: int = 0
    measurement: str = ""

    @classmethod
    def of(cls, search: CulpritSearch) -> SearchSummary:
        """Return the summary of a search."""
        request, answer = search.request, search.answer
        culprit = search.commits[answer.first - 1] if answer and answer.first and answer.first == answer.last else None
        return cls(
            search.id,
            request.suite,
            request.tests[0],
            len(request.tests),
            request.targets,
            request.good,
            request.bad,
            len(search.commits),
            len(search.runs),
            search.seconds,
            search.began_at,
            search.ended_at if answer else 0.0,
            answer.outcome if answer else "",
            answer.probability if answer else 0.0,
            culprit.sha if culprit else "",
            culprit.title if culprit else "",
            answer.pull if answer else 0,
            request.measurement,
        )

    @property
    def place(self) -> str:
        """The last part of the record's key: the newest search has the greatest."""
        return f"{self.began_at:012.0f}-{self.id}"


SEARCH_SUMMARY = Record("search-summary", 1, SearchSummary, "a search for a culprit, as lists show it", days=DAYS)


@dataclass(frozen=True, slots=True)
class SearchedTest:
    """The newest search for a test of a suite on a target; `place` is that of its summary."""

    place: str


SEARCHED_TEST = Record("searched-test", 1, SearchedTest, "the newest search for a test on a target", days=DAYS)


def searched_test_key(repository_id: int, target: str, suite: str, test: str) -> Key[SearchedTest]:
    """Return the key of the newest search for a test; `target` is LAB/TARGET."""
    digest = hashlib.sha256(json.dumps([target, suite, test]).encode()).hexdigest()
    return SEARCHED_TEST.of(repository_id, digest[:24])
