"""The targets of a lab: what it tests on, and who may ask for a test there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from nightjar_formats.model import TARGET_NAME, TARGET_WORDS
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from bot.config.keys import Keys
from bot.config.types import Duration, LabelName, Pattern, Says, seconds
from bot.results.settings.texts import LONG_TEST, NAMES_ONLY

TargetName = Annotated[str, StringConstraints(pattern=f"^{TARGET_NAME}$"), Says(TARGET_WORDS)]

EVERY_PUSH, ON_REQUEST, NIGHTLY_ONLY = 1, 2, 3
NIGHTLY = "nightly"
"""The short form of a target that accepts no requests."""
LABEL = "test: {target}"
"""The label that asks for a test, unless app.yaml names another one."""

Tier = Annotated[
    int, Field(ge=EVERY_PUSH, le=NIGHTLY_ONLY), Says("1 (every pull request), 2 (on request) or 3 (nightly only)")
]
Budget = Annotated[
    str,
    StringConstraints(pattern=r"^[1-9][0-9]{0,4}/day$"),
    Says("a number of tests per day, as in 40/day"),
]
SuiteName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ /-]{0,99}$"),
    Says("the name of a suite, as in operators"),
]
Slots = Annotated[int, Field(ge=1, le=100), Says("a whole number from 1 to 100")]
LONGEST_TEST = 3 * 86_400.0
"""Seconds. A test waits a day at most, three times with its two repetitions: together less than the two weeks after
which GitHub marks a check run as stale (https://docs.github.com/rest/guides/using-the-rest-api-to-interact-with-checks).
"""


def _not_too_long(duration: str) -> str:
    """Return a `Duration` that a test may take; raise ValueError for a longer one."""
    if seconds(duration) > LONGEST_TEST:
        raise ValueError(LONG_TEST)
    return duration


TestLength = Annotated[Duration, AfterValidator(_not_too_long)]


class SearchSettings(Keys):
    """Tests that the bot runs itself, at commits of the branch that the lab tests, to find what broke a test."""

    budget: Budget = Field(
        default="20/day", description="How many runs of a few tests the bot may use per day (UTC).", examples=["20/day"]
    )


class TargetSettings(Keys):
    """A target of a lab: when it tests pull requests, and how much of that."""

    tier: Tier = Field(
        default=NIGHTLY_ONLY,
        description=(
            "When pull requests are tested: `1` at every push that changes its `paths`, `2` when somebody requests "
            "it with a command or a label, `3` never: only nightly runs, and tests that the lab starts itself."
        ),
        examples=[ON_REQUEST],
    )
    label: LabelName | None = Field(
        default=None,
        description="The label on a pull request that requests a test. Default: `test: TARGET`. Case doesn't matter.",
        examples=["test: hexagon"],
    )
    paths: tuple[Pattern, ...] = Field(
        default=(),
        description=(
            "Tier 1 tests only pull requests that change one of these files; `*` also matches `/`. Default: all."
        ),
        examples=[["src/target/hexagon/**"]],
    )
    slots: Slots = Field(
        default=1,
        description="How many tests the lab runs on this target at once: its number of devices.",
        examples=[2],
    )
    timeout: TestLength = Field(
        default="2h",
        description="How long one test may take, at most `3d`. After that its check run ends as neutral.",
        examples=["2h"],
    )
    suites: tuple[SuiteName, ...] = Field(
        default=(),
        description="The suites that the lab is to run for a request. Default: the lab decides.",
        examples=[["operators"]],
    )
    budget: Budget | None = Field(
        default=None,
        description="How many tests pull requests may use per day (UTC). Default: no limit.",
        examples=["40/day"],
    )
    budget_per_person: Budget | None = Field(
        default=None,
        description="How many of them one person may use per day (UTC). Default: no limit.",
        examples=["10/day"],
    )
    sticky: bool = Field(
        default=False,
        description="Whether a request also covers later pushes to the pull request. For tier 2.",
        examples=[True],
    )

    searches: SearchSettings = Field(
        default=SearchSettings(),
        description="How many tests the bot may run there itself, when no person waits for the target.",
        examples=[{"budget": "20/day"}],
    )
    repair_within: Duration = Field(
        default="1d",
        description=(
            "How long nightly runs may be missing or without usable results. After that the target is degraded by "
            "one tier, until two nightly runs in a row are good. For tiers 1 and 2."
        ),
        examples=["2d"],
    )

    @property
    def takes_requests(self) -> bool:
        """Whether people can ask for tests on it."""
        return self.tier < NIGHTLY_ONLY

    @property
    def timeout_seconds(self) -> float:
        """Return how long one test may take."""
        return seconds(self.timeout)

    @property
    def repair_seconds(self) -> float:
        """Return how long nightly runs may be bad before the target is degraded."""
        return seconds(self.repair_within)

    def label_of(self, name: str) -> str:
        """Return the label that asks for a test on the target of this name."""
        return self.label or LABEL.format(target=name)


def per_day(budget: str | None) -> int | None:
    """Return the number of a `Budget`, None for no limit."""
    return None if budget is None else int(budget.partition("/")[0])


@dataclass(frozen=True, slots=True)
class _ShortForm(Says):
    """Reads `nightly`, and an empty value, as a mapping of keys."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._mapping, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"const": NIGHTLY}, {"type": "null"}]}

    def _mapping(self, written: object) -> object:
        return {} if written is None or written == NIGHTLY else written


@dataclass(frozen=True, slots=True)
class _NamesOrMapping(Says):
    """Reads a list of names as a mapping of these names to targets that test nightly commits only."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._mapping, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        names = {"type": "array", "items": {"type": "string", "pattern": f"^{TARGET_NAME}$"}, "minItems": 1}
        return {"anyOf": [handler(schema), names]}

    def _mapping(self, written: object) -> object:
        if not isinstance(written, list | tuple):
            return written
        if not all(isinstance(name, str) for name in written):
            raise ValueError(NAMES_ONLY)
        return {name: {} for name in written}


Target = Annotated[TargetSettings, _ShortForm(f"{NIGHTLY}, or a mapping of keys")]
Targets = Annotated[
    Mapping[TargetName, Target],
    Field(min_length=1),
    _NamesOrMapping(f"a list or a mapping of names, each {TARGET_WORDS}"),
]
