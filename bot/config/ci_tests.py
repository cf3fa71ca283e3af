"""The keys of `skipped_tests` and `runtime`: where CI's test results are, and what the bot reports."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from bot.config.keys import Keys
from bot.config.results import LabName
from bot.config.targets import TargetName
from bot.config.texts import BAD_PATH, NO_RESULTS_SOURCE, TWO_RESULTS_SOURCES
from bot.config.types import LACKING, Duration, Pattern, Says, StatusContext, WholeNumber


def _plain_path(path: str) -> str:
    """Return a path; raise ValueError if a part of it is empty, . or .. ."""
    if {"", ".", ".."} & set(path.split("/")):
        raise ValueError(BAD_PATH)
    return path


RepositoryPath = Annotated[
    str,
    StringConstraints(max_length=255, pattern=r"^[A-Za-z0-9_.+@/-]+$"),
    AfterValidator(_plain_path),
    Says("the path of a file in the repository, as in ci/required_tests.json"),
]


class Tests(Keys):
    """Where CI's test results are: in the bucket, like those of a lab, or in artifacts of a workflow."""

    lab: LabName | None = Field(
        default=None,
        description="The lab of `results` under which CI uploads results of pull requests and of the base branch.",
        examples=["ci"],
    )
    target: TargetName | None = Field(default=None, description="The target of that lab.", examples=["linux"])
    workflow: StatusContext | None = Field(
        default=None,
        description="The GitHub Actions workflow that runs the tests.",
        examples=["CI"],
    )
    artifacts: tuple[Pattern, ...] = Field(
        default=(),
        description="The workflow's artifacts with JUnit files (`*.xml`). Each artifact is a suite.",
        examples=[["test-results-*"]],
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        """Raise ValueError for two sources, and an error of type LACKING for none or an incomplete one."""
        uploads, runs = (self.lab, self.target), (self.workflow, self.artifacts or None)
        if any(uploads) and any(runs):
            raise ValueError(TWO_RESULTS_SOURCES)
        if not (all(uploads) or all(runs)):
            raise PydanticCustomError(LACKING, NO_RESULTS_SOURCE)
        return self


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
