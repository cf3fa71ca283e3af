"""The keys that say where CI's test results are."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from bot.config.keys import Keys
from bot.config.repository_keys import ValidatedKeys
from bot.config.types import LACKING, Pattern, StatusContext
from bot.results.settings.results import LabName
from bot.results.settings.targets import TargetName
from handlers.ci_reports.texts import NO_RESULTS_SOURCE, TWO_RESULTS_SOURCES, UNKNOWN_LAB
from handlers.results.config import LAB_RESULTS


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


def check_lab(tests: Tests, others: ValidatedKeys) -> None:
    """Raise an error of type LACKING if there is no such lab; if labs are invalid, that is the only error."""
    if tests.lab is not None and others.has(LAB_RESULTS):
        results = others.of(LAB_RESULTS)
        lab = results.labs.get(tests.lab) if results else None
        if lab is None or tests.target not in lab.targets:
            raise PydanticCustomError(LACKING, UNKNOWN_LAB, {"lab": tests.lab, "target": tests.target})
