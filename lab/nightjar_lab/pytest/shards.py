"""Assign tests to shards by their known durations, the same way on every machine. No I/O.

The duration of a test is also found if the test was moved to another file or folder, has another path because of
another root folder, or has a renamed function in its old place. So neither its shard changes nor that of other tests. A
test without a known duration counts as the median duration. Its shard is a hash of its name without the file, that is,
of `Class::function[parameters]`.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
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
    """The shard of each test, counted from 1, in the order of the tests, and the seconds that each shard takes.

    `known` is the number of tests with a known duration. Equal plans have equal fingerprints.
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


def assign_shards(tests: Sequence[str], seconds: Mapping[str, float], total: int) -> ShardPlan:
    """Assign each test to one of `total` shards. The order of the tests does not matter.

    `seconds` are known durations by test ID. Each test goes to the shard with the least load, the longest test first.
    """
    ordered = sorted(range(len(tests)), key=lambda index: tests[index])
    known_ids = match_known(sorted(set(tests)), seconds)
    weights = {test: round(seconds[known_ids[test]] * UNIT) for test in known_ids}
    median_weight = round(median(weights.values())) if weights else round(UNIT)
    loads = [0] * total
    shards = [0] * len(tests)
    name_counts: Counter[str] = Counter()
    for index in ordered:
        if tests[index] not in weights:
            name = name_without_file(tests[index])
            shard = (_hash(name) + name_counts[name]) % total
            name_counts[name] += 1
            shards[index] = shard + 1
            loads[shard] += median_weight
    heap = [(load, shard) for shard, load in enumerate(loads)]
    heapq.heapify(heap)
    weighted = [index for index in ordered if tests[index] in weights]
    # Ties are broken by the ID under which the duration is known, which for a renamed test is its old ID.
    for index in sorted(weighted, key=lambda index: (-weights[tests[index]], known_ids[tests[index]])):
        load, shard = heapq.heappop(heap)
        shards[index] = shard + 1
        heapq.heappush(heap, (load + weights[tests[index]], shard))
    shard_seconds = [0.0] * total
    for load, shard in heap:
        shard_seconds[shard] = load / UNIT
    fingerprint = _fingerprint(tests, shards, ordered, total)
    return ShardPlan(shards, shard_seconds if weighted else [], len(weighted), fingerprint)


def _fingerprint(tests: Sequence[str], shards: Sequence[int], ordered: Sequence[int], total: int) -> str:
    digest = hashlib.sha256(str(total).encode())
    for index in ordered:
        digest.update(f"{shards[index]} {tests[index]}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:8]


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def name_without_file(test: str) -> str:
    """Return `Class::function[parameters]` of a node ID, which stays the same if the file is moved."""
    path, colons, rest = test.partition("::")
    return rest if colons else path


def match_known(tests: Sequence[str], known: Mapping[str, float]) -> dict[str, str]:
    """Return, for each test with a known duration, the ID under which the duration is known.

    `known` are durations by ID. A test matches its own ID, as pytest or JUnit XML writes it; else an ID with the same
    file name and names in the file; else one with the same names in the file; else the only function that disappeared
    from where the test's function is new. A test that matches several IDs gets none of them, and vice versa.
    """
    known_ids = {test: test for test in tests if test in known}
    unmatched = set(known) - known_ids.keys()
    if unmatched and len(known_ids) < len(tests):
        for length_of in (_length, _length_from_file, _length_from_class):
            _match_ends(tests, unmatched, known_ids, length_of)
        _match_renamed(tests, unmatched, known_ids)
    return known_ids


def _split(test: str) -> tuple[list[str], str]:
    """Return the parts of an ID up to its parameters, which may hold any separator, and the parameters."""
    head, bracket, params = test.partition("[")
    path, colons, rest = head.partition("::")
    if not colons:  # a dotted name of JUnit XML
        return head.split("."), bracket + params
    path = path[:-3] if path.endswith(".py") else path
    return [*path.replace("\\", "/").split("/"), *rest.split("::")], bracket + params


def _length(test: str) -> int:
    return len(_split(test)[0])


def _length_from_file(test: str) -> int:
    return test.partition("[")[0].count("::") + 1


def _length_from_class(test: str) -> int:
    return test.partition("[")[0].count("::")


def _match_ends(
    tests: Sequence[str], unmatched: set[str], known_ids: dict[str, str], length_of: Callable[[str], int]
) -> None:
    """Match tests to unmatched IDs whose last parts and parameters are equal; `length_of` says how many parts."""
    tests_by_end: dict[tuple[str, ...], list[str]] = defaultdict(list)
    lengths = set()
    for test in tests:
        if test not in known_ids:
            parts, params = _split(test)
            length = length_of(test)
            if length:
                lengths.add(length)
                tests_by_end[(*parts[-length:], params)].append(test)
    ids_by_end: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for known_id in unmatched:
        parts, params = _split(known_id)
        for length in lengths:
            if length <= len(parts) and (*parts[-length:], params) in tests_by_end:
                ids_by_end[(*parts[-length:], params)].append(known_id)
    for end, ids in ids_by_end.items():
        if len(ids) == 1 and len(tests_by_end[end]) == 1 and ids[0] in unmatched:
            known_ids[tests_by_end[end][0]] = ids[0]
            unmatched.discard(ids[0])


def _match_renamed(tests: Sequence[str], unmatched: set[str], known_ids: dict[str, str]) -> None:
    """Match the only new function of a file or class to the only one that disappeared from there, by parameters."""
    new_functions = _functions([test for test in tests if test not in known_ids])
    old_functions = _functions(unmatched)
    for parent, functions in new_functions.items():
        removed = old_functions.get(parent, {})
        if len(functions) == 1 and len(removed) == 1:
            (new_tests,), (old_tests,) = functions.values(), removed.values()
            for params in new_tests.keys() & old_tests.keys():
                known_ids[new_tests[params]] = old_tests[params]
                unmatched.discard(old_tests[params])


def _functions(tests: Sequence[str] | set[str]) -> dict[str, dict[str, dict[str, str]]]:
    """Return tests by file and class, function, and parameters."""
    functions: dict[str, dict[str, dict[str, str]]] = {}
    for test in tests:
        head, bracket, params = test.partition("[")
        parent, colons, function = head.rpartition("::")
        if colons:
            functions.setdefault(parent, {}).setdefault(function, {})[bracket + params] = test
    return functions
