"""The decision about a pull request or a commit, and the one that replaces a missing answer: run everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nightjar_lab.ci import texts
from nightjar_lab.levels import MAIN, PULL_REQUEST


@dataclass(frozen=True)
class CiVerdict:
    """One decision, and why it was made, in a sentence of plain text; names of files in it are text from outside."""

    value: bool
    reason: str


@dataclass(frozen=True)
class CiDecision:
    """All decisions about a pull request or a commit; `sha` is the head or commit, empty if it is unknown.

    `later_level` is the level of tests to run if it comes after `main`, otherwise empty.
    """

    sha: str
    run_slow_tests: CiVerdict
    skip_ci: CiVerdict
    docs_only: CiVerdict
    rebuild_docker: CiVerdict
    later_level: str = ""

    @property
    def level(self) -> str:
        """Return the level of tests to run, one of `LEVELS`."""
        return self.later_level or (MAIN if self.run_slow_tests.value else PULL_REQUEST)

    @property
    def verdicts(self) -> Mapping[str, CiVerdict]:
        """Return each verdict by its name in the API."""
        return {name: getattr(self, name) for name in ("run_slow_tests", "skip_ci", "docs_only", "rebuild_docker")}

    def as_json(self) -> dict[str, object]:
        """Return the decision in the form of the API."""
        verdicts = {name: {"value": verdict.value, "reason": verdict.reason} for name, verdict in self.verdicts.items()}
        return {"sha": self.sha, "level": self.level, **verdicts}


def run_everything(reason: str, sha: str = "", template: str = texts.FALLBACK) -> CiDecision:
    """Return the fallback decision: run everything.

    `reason` is a clause that a comma may follow; `template` is the sentence around it.
    """
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(True, template.format(why=reason, what=texts.SLOW_TESTS_RUN)),
        skip_ci=CiVerdict(False, template.format(why=reason, what=texts.CI_RUNS)),
        docs_only=CiVerdict(False, template.format(why=reason, what=texts.ALL_IS_BUILT)),
        rebuild_docker=CiVerdict(True, template.format(why=reason, what=texts.IMAGES_ARE_BUILT)),
    )
