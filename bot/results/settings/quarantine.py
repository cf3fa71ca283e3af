"""The items of `quarantine`: tests whose failures maintainers know of, until a day that they name."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from bot.config.keys import Keys
from bot.config.types import Says, WebAddress
from bot.results.settings.renames import TestPattern
from bot.results.settings.texts import NOT_A_DAY

MAX_QUARANTINED = 1_000
"""Entries that the list may have."""
EXAMPLE = {
    "test": "tests/python/contrib/test_hexagon.py::test_matmul",
    "owner": "octocat",
    "reason": "Times out on boards with old firmware",
    "issue": "https://github.com/octocat/compiler/issues/12",
    "until": "2027-01-31",
}


def _checked_day(written: str) -> str:
    """Return a day; raise ValueError for one that no calendar has."""
    try:
        date.fromisoformat(written)
    except ValueError:
        raise ValueError(NOT_A_DAY) from None
    return written


Day = Annotated[
    str,
    StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$"),
    AfterValidator(_checked_day),
    WithJsonSchema({"type": "string", "format": "date"}),
    Says("a day, as in 2027-01-31"),
]
TargetOfLab = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}$"),
    Says("a lab and its target, as in example-lab/hexagon-v73"),
]
Owner = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,98}[A-Za-z0-9])?(?:/[A-Za-z0-9._-]{1,100})?$"),
    Says("a person or a team on GitHub, without an @, as in octocat or octo-org/compiler-team"),
]
Sentence = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,298}[^\s\x00-\x1f\x7f])?$"),
    Says("a text of up to 300 characters in one line"),
]


class QuarantinedTest(Keys):
    """One test, or all whose IDs begin alike, whose failures are known, with the owner, the reason and the last day."""

    test: TestPattern = Field(
        description="The ID of the test, or the beginning of IDs followed by a star.",
        examples=[EXAMPLE["test"]],
    )
    targets: tuple[TargetOfLab, ...] = Field(
        default=(),
        description="The targets on which it is quarantined. Default: all of them.",
        examples=[["example-lab/hexagon-v73"]],
    )
    owner: Owner = Field(
        description="Who is responsible for fixing it. Check runs show the name without mentioning it.",
        examples=[EXAMPLE["owner"]],
    )
    reason: Sentence = Field(
        description="Why it is quarantined, for everybody who sees the failure.",
        examples=[EXAMPLE["reason"]],
    )
    issue: WebAddress = Field(description="Where the failure is tracked.", examples=[EXAMPLE["issue"]])
    until: Day = Field(
        description="The last day of the quarantine (UTC). From the next day on, its failures count again.",
        examples=[EXAMPLE["until"]],
    )


QuarantinedTests = Annotated[tuple[QuarantinedTest, ...], Field(max_length=MAX_QUARANTINED)]
