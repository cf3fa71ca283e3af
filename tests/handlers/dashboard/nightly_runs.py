"""Two weeks of nightly runs of three targets, with every case that a page must show."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nightjar_formats.columns.collect import collect
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import Case, Claims, RunKey, Status, Trouble
from nightjar_formats.runs.manifest import ArtifactEntry

from bot.results.compare.ancestors import Relation
from bot.results.state import Admission, CommitSummary, Run, RunState
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn

REPOSITORY = "octocat/compiler"
NOW = 1_795_400_000.0
"""2026-11-23 in the morning."""
DAY = 86400.0
NIGHTLY_RUNS = 14
HEXAGON, ADRENO, BOARD = ("example-lab", "hexagon-v73"), ("example-lab", "adreno"), ("hubot-lab", "rpi-5@rack:2")
OPERATORS = ("matmul", "softmax", "conv2d", "layer_norm", "gather", "scatter", "topk", "einsum", "cumsum", "where")
TYPES = ("float32", "float16", "int8", "bfloat16")
SHAPES = ("1x128", "16x64", "scalar")
RUNTIME = ("device_api", "rpc", "graph_executor", "vm", "profiler")

TITLE = "Fuse <softmax>"
"""The title of the newest commit, the only one that is known."""
Target = tuple[str, str]


def log_entry(log: bytes) -> ArtifactEntry:
    """Return the entry of a log in a manifest."""
    return ArtifactEntry("log.txt", len(log), hashlib.sha256(log).hexdigest())


def bucket_of(folder: Path, logs: Mapping[RunKey, bytes]) -> Path:
    """Return a folder in place of a bucket, with the logs of some runs."""
    for key, log in logs.items():
        path = folder / "bucket/results" / key.folder / "log.txt"
        path.parent.mkdir(parents=True)
        path.write_bytes(log)
    return folder / "bucket"


def sha(number: int) -> str:
    """Return the commit of a nightly run, the oldest being 0."""
    return f"{(number + 11) * 0x9E3779B97F4A7C15 % 2**160:040x}"[::-1]


def committed_at(number: int) -> float:
    """Return when a commit was made; the newest is eleven hours old."""
    return NOW - (NIGHTLY_RUNS - 1 - number) * DAY - 11 * 3600


def operators() -> list[str]:
    """Return the names of the operators' tests."""
    return [
        f"tests/python/operators/test_{operator}.py::test_{operator}[{kind}-{shape}]"
        for operator in OPERATORS
        for kind in TYPES
        for shape in SHAPES
    ]


def runtime() -> list[str]:
    """Return the names of the runtime's tests."""
    return [f"tests/python/runtime/test_{part}.py::test_{part}_{n}" for part in RUNTIME for n in range(1, 6)]


def measured(place: int, number: int) -> tuple[Measurement, ...]:
    """Return what a test measures at a nightly commit."""
    latency = Measurement("latency", 10 + place + number % 3 / 10, "ms", Better.LOWER)
    return latency, Measurement("delegated_nodes", float(place % 5 + number // 10), "nodes", Better.HIGHER)


@dataclass(frozen=True)
class Sent:
    """A run of a lab: its tests that did not pass, and what its manifest says."""

    number: int
    target: Target
    suite: str
    tests: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    run_id: str = "run-1"
    shard: tuple[int, int] = (1, 1)
    state: RunState = RunState.STORED
    reason: str = ""
    log_url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    slow: float = 1.0
    why_skipped: str = "needs 8 GB of memory"
    run_name: str = ""

    @property
    def run(self) -> Run:
        """Return the run without its tests."""
        arrived = committed_at(self.number) + 5 * 3600
        key = RunKey(REPOSITORY, *self.target, sha(self.number), self.run_name or f"{self.suite}-{self.run_id}")
        claims = Claims(
            self.suite,
            1,
            *self.shard,
            environment=self.environment,
            log_url=self.log_url,
            started_at="2026-11-22T23:10:00Z",
            finished_at="2026-11-22T23:41:00Z",
            exit_status=1 if self.failed else 0,
        )
        summary = CommitSummary(TITLE, "Mona Lisa", 41) if self.number == NIGHTLY_RUNS - 1 else None
        admission = Admission(committed_at(self.number), True, None, summary)
        return Run(key, "etag", self.state, self.reason, arrived, 81_870, claims, admission)

    def cases(self) -> Iterator[Case]:
        """Yield the run's test cases."""
        for place, test in enumerate(self.tests):
            status, message = Status.PASSED, ""
            if test in self.failed:
                status, message = Status.FAILED, self.failed[test]
            elif test in self.skipped:
                status, message = Status.SKIPPED, self.why_skipped
            path = test.partition("::")[0]
            text = (
                f"{path}:{place + 12}: in {test}\n>   assert_allclose(actual, expected)\nE   {message}"
                if message
                else ""
            )
            yield Case(
                test.rpartition("::")[2],
                status,
                nodeid=test,
                path=path,
                line=place + 12,
                seconds=0.02 * (place % 17 + 1) * self.slow,
                flaky=test in self.flaky,
                message=message,
                text=text,
                trouble=Trouble.NONE,
                measurements=measured(place, self.number) if "softmax" in test else (),
            )


TOLERANCE = "AssertionError: Not equal to tolerance rtol=1e-05, atol=1e-05. Mismatched elements: 31 / 128 (24.2%)"
TIMEOUT = "RuntimeError: RPC timeout: the device did not answer within 60 s"
SOFTMAX = "tests/python/operators/test_softmax.py::test_softmax[float16-16x64]"
FLAKY = "tests/python/runtime/test_rpc.py::test_rpc_3"


def nightly_runs() -> Iterator[Sent]:
    """Yield every run, oldest first."""
    operator_tests, runtime_tests = tuple(operators()), tuple(runtime())
    skipped = frozenset(test for test in operator_tests if "bfloat16" in test)
    broken = {test: TOLERANCE for test in operator_tests if "test_softmax[float16" in test}
    gathered = {
        test: "IndexError: index 16 is out of bounds for axis 0 with size 16"
        for test in operator_tests
        if "gather[int8" in test
    }
    environment = {"device": "Hexagon v73 simulator", "driver": "SDK 6.2", "host": "lab-host-3"}
    for number in range(NIGHTLY_RUNS):
        failed = {**(broken if number >= 10 else {}), **(gathered if number >= 12 else {})}
        yield Sent(
            number, HEXAGON, "operators", operator_tests, failed, skipped=skipped, environment=environment,
            log_url="https://lab.example.org/logs/4711", slow=1 + number / 20,
        )  # fmt: skip
        flaky = frozenset({FLAKY}) if number in (3, 8, 11) else frozenset()
        yield Sent(number, HEXAGON, "runtime", runtime_tests, {FLAKY: TIMEOUT} if number in (5, 9) else {}, flaky=flaky)
        if number not in (4, 9):
            yield Sent(
                number,
                ADRENO,
                "operators",
                operator_tests,
                failed={SOFTMAX: TOLERANCE} if number == 13 else {},
                skipped=skipped,
            )
        if number == 7:
            # The lab's own problem: nothing could be read.
            yield Sent(number, ADRENO, "runtime", runtime_tests, failed=dict.fromkeys(runtime_tests, TIMEOUT))
        elif number == 12:
            yield Sent(number, ADRENO, "runtime", runtime_tests[:12], shard=(1, 2))
        else:
            yield Sent(number, ADRENO, "runtime", runtime_tests)
        if 2 <= number <= 10:
            yield Sent(number, BOARD, "runtime", runtime_tests, skipped=frozenset(runtime_tests[:5]))
    yield Sent(
        13, BOARD, "runtime", (), run_id="run-2", state=RunState.REFUSED,
        reason="te.xml is not what the manifest says: its SHA-256 is another one",
    )  # fmt: skip


def fill(store: ResultsStore) -> None:
    """Store all of it."""
    for sent in nightly_runs():
        if sent.state is RunState.STORED:
            artifacts = [log_entry(LOG)] if sent.run.key == LOGGED else []
            store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.path)), artifacts=artifacts)
        else:
            store.put_state(sent.run)
    store.write(
        learn,
        REPOSITORY,
        [
            Relation(
                sha(number), sha(earlier), is_ancestor=True, url=f"https://github.com/{REPOSITORY}/commit/{earlier}"
            )
            for number in range(NIGHTLY_RUNS)
            for earlier in range(number)
        ],
    )


LOGGED = RunKey(REPOSITORY, *HEXAGON, sha(NIGHTLY_RUNS - 1), "operators-run-1")
"""The run that has a log."""
LOG = "\n".join(
    [f"tests/python/operators/test_softmax.py {'.' * 70} [{number:3}%]" for number in range(1, 100)]
    + [
        f"FAILED {test} - {why}"
        for sent in nightly_runs()
        if sent.run.key == LOGGED
        for test, why in sent.failed.items()
    ]
).encode()
"""That of pytest, which names the tests that failed."""
