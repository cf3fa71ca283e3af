"""Define suites and their cases: a model, its inputs and the expected outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, ClassVar

SEEDS = 100_000_000
CASE_SECONDS = 120.0


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the expected one: |output - expected| <= absolute + relative * |expected|.

    The defaults are ExecuTorch's (`backends/test/suite/runner.py` there).
    """

    absolute: float = 1e-1
    relative: float = 4e-2


@dataclass(frozen=True)
class CaseData:
    """The contents of a case. The inputs and outputs are NumPy arrays, or what `numpy.asarray` accepts.

    `expected` may be a function without arguments, for outputs that a reference computes: if it fails, the outcome is
    `reference failed`, and the flow is not run.
    """

    model: Any
    inputs: Sequence[Any]
    expected: Sequence[Any] | Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class SuiteCase:
    """A case. `make` takes the seed and is called in a worker process; if it fails, the case is invalid.

    `params` are shown in the report beside the name, such as `{"dtype": "float16"}`. `tolerance` replaces the flow's.
    """

    name: str
    make: Callable[[int], CaseData]
    params: Mapping[str, str] = field(default_factory=dict)
    tolerance: Tolerance | None = None

    @property
    def seed(self) -> int:
        """The seed of this case: the same in each run, on each machine."""
        return seed_of(self.name)


def seed_of(name: str) -> int:
    """Return the seed of a name: MD5 modulo 10^8, as in ExecuTorch."""
    return int(hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest(), 16) % SEEDS


@dataclass(frozen=True)
class TestSuite:
    """A list of cases, made one at a time.

    `names` lists all cases and must be cheap. `case` makes the case of a name. Both are called in worker processes.
    `version` is a text or a function that returns one, such as the version of the package that the cases come from:
    reports of two versions are not mixed. `timeout` is what one case may take, in seconds. `model_format` is what its
    models are, as for a flow.
    """

    __test__: ClassVar[bool] = False

    name: str
    names: Callable[[], Sequence[str]]
    case: Callable[[str], SuiteCase]
    version: str | Callable[[], str] = ""
    timeout: float = CASE_SECONDS
    description: str = ""
    model_format: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        cases: Sequence[SuiteCase],
        *,
        version: str = "",
        timeout: float = CASE_SECONDS,
        description: str = "",
        model_format: str = "",
    ) -> TestSuite:
        """Return a suite of cases that exist already."""
        by_name = {case.name: case for case in cases}
        return cls(name, lambda: list(by_name), by_name.__getitem__, version, timeout, description, model_format)
