"""Deal tests to shards by their known durations, the same way on every machine. No I/O.

A test that was moved to another file or folder, that another root folder gives another path, or whose function was
renamed where it stands, is found again among the known ones, so its shard is the same, and so is that of all others.
A test of unknown duration counts as long as the median. Its shard is a hash of its name without the file: of
`Class::function[parameters]`.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

MOST_SHARDS = 10_000
UNIT = 1e6
"""Durations are added up as whole microseconds: a sum of fractions depends on their order."""


class ShardSpec(NamedTuple):
    """A shard, counted from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


class ShardPlan(NamedTuple):
    """The shard of each test, counted from 1, in the order of the tests; what each takes, in seconds.

    `known` is how many durations were known, `fingerprint` the same for machines that deal alike.
    """

    shards: list[int]
    seconds: list[float]
    known: int
    fingerprint: str


def parse_shard(value: str) -> ShardSpec | None:
    """Return the shard that `2/4` names; None for anything else."""
    number, slash, total = value.partition("/")
    if not slash or not all(part.isascii() and part.isdecimal() and len(part) < 9 for part in (number, total)):
        return None
    return ShardSpec(int(number), int(total)) if 1 <= int(number) <= int(total) else None


def deal(tests: Sequence[str], seconds: Mapping[str, float], total: int) -> ShardPlan:
    """Deal each of the tests to one of `total` shards; their order does not matter."""
    ordered = sorted(range(len(tests)), key=lambda place: tests[place])
    found = match_known(sorted(set(tests)), seconds)
    weights = {test: round(seconds[found[test]] * UNIT) for test in found}
    typical = round(median(weights.values())) if weights else round(UNIT)
    loads = [0] * total
    shards = [0] * len(tests)
    same: Counter[str] = Counter()
    for place in ordered:
        if tests[place] not in weights:
            name = name_without_file(tests[place])
            shard = (_hash(name) + same[name]) % total
            same[name] += 1
            shards[place] = shard + 1
            loads[shard] += typical
    heap = [(load, shard) for shard, load in enumerate(loads)]
    heapq.heapify(heap)
    known = [place for place in ordered if tests[place] in weights]
    # By the ID under which the duration is known: that of a renamed test is its old one.
    for place in sorted(known, key=lambda place: (-weights[tests[place]], found[tests[place]])):
        load, shard = heapq.heappop(heap)
        shards[place] = shard + 1
        heapq.heappush(heap, (load + weights[tests[place]], shard))
    sums = [0.0] * total
    for load, shard in heap:
        sums[shard] = load / UNIT
    return ShardPlan(shards, sums if known else [], len(known), _fingerprint(tests, shards, ordered, total))


def _fingerprint(tests: Sequence[str], shards: Sequence[int], ordered: Sequence[int], total: int) -> str:
    digest = hashlib.sha256(str(total).encode())
    for place in ordered:
        digest.update(f"{shards[place]} {tests[place]}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:8]


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def name_without_file(test: str) -> str:
    """Return `Class::function[parameters]` of a node ID: what is the same after its file was moved."""
    path, colons, rest = test.partition("::")
    return rest if colons else path


def match_known(tests: Sequence[str], known: Mapping[str, float]) -> dict[str, str]:
    """Return the ID under which each test's duration is known: its own, or one that it had before.

    First its own ID, as pytest or as JUnit XML writes it; then the file's name and what is in the file; then the name
    without the file; then a function that was renamed where it stands. What fits two is not matched.
    """
    found = {test: test for test in tests if test in known}
    rest = set(known) - found.keys()
    if rest and len(found) < len(tests):
        for key_of in (_dotted, _from_file, _from_class):
            _match(tests, rest, found, key_of)
        _match_renamed(tests, rest, found)
    return found


def _split(test: str) -> tuple[list[str], str]:
    """Return the parts of an ID up to its parameters, which may hold any separator, and the parameters."""
    head, bracket, params = test.partition("[")
    path, colons, rest = head.partition("::")
    if not colons:  # of JUnit XML, or no node ID
        return head.split("."), bracket + params
    path = path[:-3] if path.endswith(".py") else path
    return [*path.replace("\\", "/").split("/"), *rest.split("::")], bracket + params


def _dotted(test: str) -> int:
    return len(_split(test)[0])


def _from_file(test: str) -> int:
    return test.partition("[")[0].count("::") + 1


def _from_class(test: str) -> int:
    return test.partition("[")[0].count("::")


def _match(tests: Sequence[str], rest: set[str], found: dict[str, str], length_of: object) -> None:
    """Match tests to known IDs by the last parts of both, as many as a test's own ID asks for."""
    assert callable(length_of)
    wanted: dict[tuple[str, ...], list[str]] = defaultdict(list)
    lengths = set()
    for test in tests:
        if test not in found:
            parts, params = _split(test)
            length = length_of(test)
            if length:
                lengths.add(length)
                wanted[(*parts[-length:], params)].append(test)
    had: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for test in rest:
        parts, params = _split(test)
        for length in lengths:
            if length <= len(parts) and (*parts[-length:], params) in wanted:
                had[(*parts[-length:], params)].append(test)
    for key, old in had.items():
        if len(old) == 1 and len(wanted[key]) == 1 and old[0] in rest:
            found[wanted[key][0]] = old[0]
            rest.discard(old[0])


def _match_renamed(tests: Sequence[str], rest: set[str], found: dict[str, str]) -> None:
    """Match a function to the one that disappeared from its place, where one did, with the same parameters."""
    new = _functions([test for test in tests if test not in found])
    old = _functions(rest)
    for place, functions in new.items():
        was = old.get(place, {})
        if len(functions) == 1 and len(was) == 1:
            (now,), (then,) = functions.values(), was.values()
            for params in now.keys() & then.keys():
                found[now[params]] = then[params]
                rest.discard(then[params])


def _functions(tests: Sequence[str] | set[str]) -> dict[str, dict[str, dict[str, str]]]:
    """Return tests by file and class, function, and parameters."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for test in tests:
        head, bracket, params = test.partition("[")
        place, colons, function = head.rpartition("::")
        if colons:
            found.setdefault(place, {}).setdefault(function, {})[bracket + params] = test
    return found
