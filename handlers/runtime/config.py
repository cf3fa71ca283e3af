"""The key `runtime`: where CI's test results are, and which durations the bot reports."""

from __future__ import annotations

from pydantic import Field

from bot.config.repository_keys import ConfigKey
from bot.config.types import Duration, WholeNumber
from handlers.ci_reports.keys import Tests, check_lab


class Runtime(Tests):
    """Runtime of the tests of a pull request's head, compared with the base."""

    change: WholeNumber = Field(
        default=30,
        description="From how many percent of difference to the base the bot reports a suite's total time.",
        examples=[30],
    )
    slow: Duration = Field(
        default="10s", description="From which duration the bot reports a new test as slow.", examples=["10s"]
    )


RUNTIME = ConfigKey(
    "runtime",
    Runtime,
    description="Lists suites that became much slower than at the base, and slow new tests, in the sticky comment.",
    example={"workflow": "CI", "artifacts": ["test-results-*"]},
    position=130,
    check=check_lab,
)
KEYS = (RUNTIME,)
