"""The types for results that labs and the server share: statuses, cases, keys of runs, and claims of manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from nightjar_formats.measurements import Measurement
from nightjar_formats.text_enum import TextEnum


class Status(TextEnum):
    """The outcome of a test. A run without usable results is called `infra`, which is no status of a test."""

    # An enumeration's own hash is a function in Python, and a status is looked up for each of 300,000 tests.
    __hash__ = str.__hash__

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


BAD = frozenset({Status.FAILED, Status.ERRORED})
GOOD = frozenset({Status.PASSED, Status.XFAILED, Status.XPASSED})


class Trouble(TextEnum):
    """The point at which a test that did not pass went wrong, if its format says so."""

    NONE = ""
    COLLECTION = "collection"
    """The file could not be imported: none of its tests ran, and the case stands for the file."""
    CRASH = "crash"
    """The process died while this test ran."""
    INTERNAL = "internal"
    """The test runner itself failed."""
    SETUP = "setup"
    TEARDOWN = "teardown"
    TIMEOUT = "timeout"
    QUANTIZE = "quantize"
    LOWER = "lower"
    LOAD = "load"
    RUN = "run"
    OUTPUT = "output"
    """ExecuTorch's stages: quantizing, lowering, loading and running the program, comparing what comes out."""


class Case(NamedTuple):
    """One attempt at one test as a file reports it, with the file's names.

    Each format sets the fields that it has: `nodeid` (pytest), or `classname` and `name` (JUnit); `path` is relative to
    the lab's own root folder. `line` counts from 1. `seconds` is None if the file has no valid duration. `flaky`: the
    file itself says that the test failed before it passed. `attempt`: the number, from 1, of a group in which several
    cases with this name are attempts at one test, as in a suite of pytest's JUnit. Cases with this name in different
    groups are the test in different configurations; without a group (0), they may be different tests. `failure_path`:
    the file to which `line` belongs, if the failure is in another file than the test. `measures` is stored as text,
    `measurements` as numbers. A tuple, because there may be a million cases.
    """

    name: str
    status: Status
    classname: str = ""
    path: str = ""
    nodeid: str = ""
    line: int | None = None
    seconds: float | None = None
    flaky: bool = False
    trouble: Trouble = Trouble.NONE
    message: str = ""
    text: str = ""
    measures: Mapping[str, Any] | None = None
    attempt: int = 0
    failure_path: str = ""
    measurements: tuple[Measurement, ...] = ()

    @property
    def own_name(self) -> str:
        """What the file calls the test: its node ID, or else its class and name."""
        return self.nodeid or "::".join(filter(None, (self.classname, self.name)))


class SeenTest(NamedTuple):
    """The outcome of one test in one run, with all its attempts combined."""

    status: Status
    flaky: bool = False
    trouble: Trouble = Trouble.NONE
    message: str = ""


class Detail(NamedTuple):
    """The stored details of a test besides its status: its place, why it did not pass, and its measurements."""

    trouble: Trouble = Trouble.NONE
    message: str = ""
    text: str = ""
    path: str = ""
    line: int | None = None
    measures: Mapping[str, Any] | None = None


# Patterns of the values in keys and manifests. All are bounded character classes, so that no engine backtracks.
REPOSITORY_NAME = r"[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}"
LAB_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
FULL_SHA = r"[0-9a-f]{40}"
RUN_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
SUITE_NAME = r"[A-Za-z0-9][A-Za-z0-9._+ /-]{0,99}"
FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}"
MANIFEST = "manifest.json"
TARGET_NAME = r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}"
"""The pattern of a target's name; in keys and addresses, the name is escaped (`escaped_target`)."""
TARGET_WORDS = "a name of letters, digits, . _ - @ and :, as in hexagon-v73 or rpi-4@lab:1"


def escaped_target(target: str) -> str:
    """Escape a target's name for keys and addresses: `rpi-4@lab:1` becomes `rpi-4%40lab%3A1`."""
    return quote(target, safe="")


@dataclass(frozen=True, order=True)
class TargetKey:
    """A target of a lab, for a repository (`owner/name`). Each target has its own check run on a commit."""

    repository: str
    lab: str
    target: str

    @property
    def check_name(self) -> str:
        """Return the name of the target's check runs."""
        return f"hardware/{self.full_name}"

    @property
    def full_name(self) -> str:
        """Return the target as app.yaml, pages and messages name it: LAB/TARGET."""
        return f"{self.lab}/{self.target}"


@dataclass(frozen=True, order=True)
class RunKey:
    """The key of a run, which is a folder of the bucket: its repository, lab, target, commit and run ID."""

    repository: str
    lab: str
    target: str
    sha: str
    run_id: str

    @property
    def about(self) -> TargetKey:
        """Return the target that the run tested."""
        return TargetKey(self.repository, self.lab, self.target)

    @property
    def folder(self) -> str:
        """Return the run's folder below the bucket's prefix, with a slash at its end."""
        return f"{self.repository}/{self.lab}/{escaped_target(self.target)}/{self.sha}/{self.run_id}/"


@dataclass(frozen=True)
class Claims:
    """The claims of a run's manifest; none of them is verified.

    Times are ISO 8601, or empty if the manifest has none.
    """

    suite: str
    attempt: int = 1
    shard_index: int = 1
    shard_total: int = 1
    started_at: str = ""
    finished_at: str = ""
    exit_status: int | None = None
    pull_request: int | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    log_url: str = ""
    job: str = ""


@dataclass(frozen=True)
class Counts:
    """The number of tests by outcome; `flaky` tests also count in one of the others."""

    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    flaky: int = 0
