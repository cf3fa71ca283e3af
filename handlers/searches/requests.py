"""Which tests, targets and commits are searched, from failures that began together. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from handlers.regressions.groups import newest_good, oldest_since, shared_tests
from handlers.regressions.records import GroupMember
from handlers.searches.records import SearchRequest

MOST_TESTS = 10


def request_of(members: Sequence[GroupMember], measurement: str = "") -> SearchRequest | None:
    """Return the request for failures that one commit may have caused; None if the tests never passed.

    With the name of a measurement, it is for what the only test of all members measures.
    """
    good, bad = newest_good(members)[1], oldest_since(members)[1]
    if not good:
        return None
    targets = tuple(sorted({member.full_name for member in members}))
    return SearchRequest(members[0].suite, shared_tests(members)[:MOST_TESTS], targets, good, bad, measurement)


def chosen_members(members: Sequence[GroupMember], target: str, test: str) -> list[list[GroupMember]]:
    """Return the failures on a target (LAB/TARGET) that somebody means, each with those that began together with it.

    `test` is empty for all tests.
    """
    matching = [
        member
        for member in members
        if member.full_name.casefold() == target.casefold() and member.good and (not test or test in member.tests)
    ]
    return [
        [member, *(other for other in members if other.full_name != member.full_name and other.suite == member.suite)]
        for member in matching
    ]
