"""The keys `results`, `renames`, `quarantine`, `owners`: where labs upload, and what the bot knows of their tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from bot.config.model import RepositoryConfig
from bot.config.repository_keys import ConfigKey, RepositoryKey, ValidatedKeys
from bot.config.texts import NEEDS_RESULTS, UNKNOWN_TARGET
from bot.config.types import LACKING
from bot.results.settings.owners import EXAMPLE_OWNERS, EXAMPLE_TEST, OwnedTestList, OwnedTests
from bot.results.settings.quarantine import EXAMPLE, QuarantinedTest, QuarantinedTests
from bot.results.settings.renames import Renames, TestRenames
from bot.results.settings.results import Lab, Results
from handlers.results.texts import NO_AUDIENCE

TESTED_BRANCH = "nightly"
"""The branch whose commits labs test if app.yaml names none."""


def _check_audience(results: Results, app: Mapping[str, Any]) -> None:
    """Raise an error of type LACKING if labs show tokens that are for `public_url`, and there is none."""
    without_url = "public_url" in app and app["public_url"] is None
    if without_url and any(lab.identity is not None for lab in results.labs.values()):
        raise PydanticCustomError(LACKING, NO_AUDIENCE)


LAB_RESULTS = ConfigKey(
    "results",
    Results,
    description="Publishes results of hardware labs as advisory check runs, which never block a merge.",
    example={"bucket": "device-results", "labs": {"example-lab": {"targets": ["hexagon-v73"]}}},
    position=50,
    allow="approve_tests",
    check_app=_check_audience,
)

RENAMES: RepositoryKey[Renames] = RepositoryKey(
    "renames",
    TestRenames,
    default=Renames(),
    description=(
        "Renamed tests, in all suites of all labs, that the bot did not recognize by itself. History and "
        "comparisons continue under the new name. Stored results do not change, so removing an item undoes it."
    ),
    example=[{"from": "kernel.poll.*", "to": "poll.*"}, {"from": "net.tcp.test_open", "to": "net.tcp.open"}],
    position=210,
)


def _check_quarantine(quarantine: tuple[QuarantinedTest, ...], keys: ValidatedKeys) -> None:
    """Raise an error of type LACKING for a test on a target that no lab has; if labs are invalid, that is enough."""
    if quarantine and keys.has(LAB_RESULTS) and keys.of(LAB_RESULTS) is None:
        raise PydanticCustomError(LACKING, NEEDS_RESULTS)
    check_targets((target for test in quarantine for target in test.targets), keys)


def check_targets(targets: Iterable[str], keys: ValidatedKeys) -> None:
    """Raise an error of type LACKING for a target (LAB/TARGET) that no lab has, unless the labs are invalid."""
    if not keys.has(LAB_RESULTS):
        return
    results = keys.of(LAB_RESULTS)
    labs = results.labs if results else {}
    configured = {f"{name}/{target}" for name, lab in labs.items() for target in lab.targets}
    for target in targets:
        if target not in configured:
            raise PydanticCustomError(LACKING, UNKNOWN_TARGET, {"target": target})


QUARANTINE: RepositoryKey[tuple[QuarantinedTest, ...]] = RepositoryKey(
    "quarantine",
    QuarantinedTests,
    default=(),
    description=(
        "Tests of hardware labs whose failures are known: they count neither as new failures nor as regressions, "
        "and every report lists them with owner, reason and last day. A new failure still makes the check run neutral. "
        "The items of `.github/nightjar.yaml` are added to those of app.yaml, which take precedence."
    ),
    example=[EXAMPLE],
    position=220,
    joined=True,
    check=_check_quarantine,
)

OWNERS: RepositoryKey[tuple[OwnedTests, ...]] = RepositoryKey(
    "owners",
    OwnedTestList,
    default=(),
    description=(
        "Who looks after which tests of hardware labs. Pages and issues show the owners of a failing test. If several "
        "items match a test, the last one counts. The items of `.github/nightjar.yaml` follow those of app.yaml."
    ),
    example=[{"test": EXAMPLE_TEST, "owners": EXAMPLE_OWNERS}],
    position=225,
    joined=True,
)
KEYS = (LAB_RESULTS, RENAMES, QUARANTINE, OWNERS)


def labs_of(config: RepositoryConfig) -> Mapping[str, Lab]:
    """Return the labs of a repository by their names; none if it has no results."""
    results = config.of(LAB_RESULTS)
    return results.labs if results is not None else {}


def configured_targets(config: RepositoryConfig) -> list[str]:
    """Return all targets of a repository, as LAB/TARGET, in the order of app.yaml."""
    return [f"{name}/{target}" for name, lab in labs_of(config).items() for target in lab.targets]
