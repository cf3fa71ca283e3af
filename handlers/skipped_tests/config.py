"""The key `skipped_tests`: where CI's test results are, and which tests must not be skipped."""

from __future__ import annotations

from pydantic import Field

from bot.config.repository_keys import ConfigKey
from bot.config.types import RepositoryPath
from handlers.ci_reports.keys import Tests, check_lab


class SkippedTests(Tests):
    """Tests that ran at the merge base and are skipped at a pull request's head, and the other way round."""

    required: RepositoryPath | None = Field(
        default=None,
        description=(
            "A JSON file in the repository, `{suite: [test ID, …]}`, with tests that must not be skipped. "
            "The bot reads it on the base branch, so no pull request can exempt itself."
        ),
        examples=["ci/required_tests.json"],
    )


SKIPPED_TESTS = ConfigKey(
    "skipped_tests",
    SkippedTests,
    description="Lists tests that are skipped now and ran at the merge base, in the sticky comment.",
    example={"workflow": "CI", "artifacts": ["test-results-*"], "required": "ci/required_tests.json"},
    position=120,
    check=check_lab,
)
KEYS = (SKIPPED_TESTS,)
