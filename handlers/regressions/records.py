"""What the bot remembers of regressions: evaluated runs, news that waits, and groups of targets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from bot.engine.records import Record
from bot.news.effects import IssueState
from bot.news.message import News
from bot.results.store.failures.failures import Failure, FailureEnd
from handlers.regressions.decide import EvaluatedRun, EvaluatedTarget

Ends = Mapping[tuple[str, Failure], FailureEnd]
"""How reported failures on targets (`LAB/TARGET`) ended; those that are not stored are left out."""
TARGET_ISSUE, GROUP_ISSUE = "regressions:", "regression-group:"
"""How the keys of issues begin: about a target, and about several targets."""
LASTS = FailureEnd("", "")
UNKNOWN_END = FailureEnd("unknown", "")
"""The end of a failure that the store lacks, for example after the database was replaced."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Tests of a suite that began to fail together on a target, at the commit `since`.

    They last passed at `good`, which is empty if they never did. The moments of both are in seconds since 1970.
    """

    lab: str
    target: str
    suite: str
    since: str
    since_at: float
    good: str
    good_at: float
    tests: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The target as people write it, LAB/TARGET."""
        return f"{self.lab}/{self.target}"

    @property
    def failures(self) -> list[Failure]:
        """The failures of its tests."""
        return [Failure(self.suite, test, self.since, self.good) for test in self.tests]


@dataclass(frozen=True, slots=True)
class EndedTests:
    """Tests of a member whose failure ended at the nightly commit `sha`, and `how`."""

    member: GroupMember
    how: str
    sha: str


@dataclass(frozen=True, slots=True)
class RegressionGroup:
    """Targets on which the same tests fail; they share one message and one issue.

    `name` is in the key of the issue. `members` have the tests whose failure lasts, `ended` the tests whose failure
    ended. `page` is the page of the repository. `news_at` is the time of the newest message, in seconds since 1970.
    """

    name: str
    members: tuple[GroupMember, ...]
    page: str
    opened_at: float
    news_at: float
    ended: tuple[EndedTests, ...] = ()

    @classmethod
    def of(cls, members: Sequence[GroupMember], page: str, opened_at: float) -> Self:
        """Return a new group of these members."""
        # The name is a digest of the members, so that a plan which is made again opens no second issue.
        names = (name for member in members for name in (member.full_name, member.suite, member.since, *member.tests))
        digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
        return cls(digest, tuple(members), page, opened_at, opened_at)

    @property
    def all_members(self) -> tuple[GroupMember, ...]:
        """The members with the tests whose failure lasts, then the members with tests whose failure ended."""
        return (*self.members, *(ended.member for ended in self.ended))

    def after(self, ends: Ends) -> Self:
        """Return the group after some failures ended: their tests move from `members` to `ended`.

        No test moves back: if it fails again, the message of its target reports that.
        """
        members, ended = list[GroupMember](), list(self.ended)
        for member in self.members:
            tests_by_end: dict[FailureEnd, list[str]] = {}
            for failure in member.failures:
                end = ends.get((member.full_name, failure), UNKNOWN_END)
                tests_by_end.setdefault(end, []).append(failure.test)
            if lasting := tests_by_end.pop(LASTS, None):
                members.append(replace(member, tests=tuple(lasting)))
            for end, tests in tests_by_end.items():
                ended.append(EndedTests(replace(member, tests=tuple(tests)), end.how, end.sha))
        return replace(self, members=tuple(members), ended=tuple(ended))


@dataclass(frozen=True, slots=True)
class WaitingNews:
    """News of a target that waits for news of other targets.

    If the same tests fail on no other target, `news` and `issue` are posted unchanged; `key` identifies them. `began`
    has the new failures. `changes`, compressed by `pack_failures`, has the failures that ended and the current ones.
    `reliability` has the suites that became unreliable, and those that are reliable again. Without `news`, only the
    issues of groups are updated.
    """

    about: EvaluatedTarget
    opened_at: float
    key: str = ""
    began: tuple[GroupMember, ...] = ()
    changes: str = ""
    reliability: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    news: News | None = None
    issue: IssueState | None = None


def target_issue(target: str) -> str:
    """Return the key of the issue about a target (LAB/TARGET)."""
    return f"{TARGET_ISSUE}{target}"


def group_issue(name: str) -> str:
    """Return the key of the issue about a group of targets."""
    return f"{GROUP_ISSUE}{name}"


WAITING_NEWS = Record("regression-news", 1, WaitingNews, "news of a target that waits for other targets", days=30)
REGRESSION_GROUP = Record("regression-group", 1, RegressionGroup, "targets that fail in the same tests", days=365)

REGRESSIONS = Record(
    "regressions", 1, EvaluatedRun, "the last evaluated nightly run of a target, and its message", days=None
)
