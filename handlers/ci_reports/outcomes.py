"""The results of CI at a commit and at the commit that it is compared with, whatever their source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nightjar_formats.model import SeenTest, Status


@dataclass(frozen=True, slots=True)
class SuiteOutcomes:
    """One suite's tests by their IDs: how each ended, and the seconds of those that were timed.

    `complete`: no more results are expected. In an incomplete suite, a missing test may still arrive.
    """

    seen: Mapping[str, SeenTest]
    seconds: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True

    def ran(self, test: str) -> bool:
        """Return whether a test ran: a missing test did not, and neither did a skipped one."""
        return test in self.seen and self.seen[test].status is not Status.SKIPPED

    def skipped(self, test: str) -> bool:
        """Return whether a test was skipped, by itself or with the whole of its file."""
        if test in self.seen:
            return self.seen[test].status is Status.SKIPPED
        return any(file in self.seen and self.seen[file].status is Status.SKIPPED for file in file_ids(test))


@dataclass(frozen=True, slots=True)
class BaseSuite:
    """A suite at an earlier commit; `url` is that commit's page, or that of the run which tested it.

    `totals` are the seconds of the last runs of its branch, this one included, and `longest` has the longest time of
    each test in them. Both are empty if these runs are not known.
    """

    sha: str
    url: str
    suite: SuiteOutcomes
    totals: tuple[float, ...] = ()
    longest: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeadAndBase:
    """The suites of a pull request's head, each with its base where there is one.

    `tested_at` is when CI had tested it, in seconds since 1970. `has_all_suites`: no further suite is expected, so
    `vanished` has the suites that the base has and the head lacks. `troubles` say in Markdown what the bot could
    not read or find. `runs_per_day` is how many commits CI tests on an average day, 0 if that is not known.
    """

    sha: str
    tested_at: float
    suites: Mapping[str, SuiteOutcomes]
    bases: Mapping[str, BaseSuite] = field(default_factory=dict)
    vanished: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    has_all_suites: bool = True
    runs_per_day: float = 0.0


def file_ids(test: str) -> Iterator[str]:
    """Yield the IDs under which the file of a test may have been reported: a file that is skipped has one of its own.

    The file is what a test's ID begins with. If that is dotted, as in `pkg.test_ops.TestAdd::test_one`, it may end with
    classes, so its parents follow.
    """
    file, separator, _ = test.partition("::")
    if not separator:
        return
    yield file
    while "/" not in file and "." in file:
        file = file.rpartition(".")[0]
        yield file
