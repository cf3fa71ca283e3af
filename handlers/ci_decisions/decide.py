"""Decide what CI should do for a pull request or a commit, and why, from plain data. The API and the CLI use this.

Everything fails open: if a fact is missing, CI runs, and the reason says that this is a fallback. A predecessor was not
executable for days; its CI read that as "run the slow tests", and nobody noticed (TVM #10457).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handlers.changed_files.texts import FALLBACK
from handlers.changed_files.verdicts import CiVerdict
from handlers.ci_decisions import texts
from handlers.rebuild_docker.config import REBUILD_DOCKER
from handlers.rebuild_docker.decide import rebuild_docker
from handlers.rebuild_docker.texts import IMAGES_ARE_BUILT
from handlers.skip_ci.config import SKIP_CI
from handlers.skip_ci.decide import docs_only, skip_ci, skip_needs_files
from handlers.skip_ci.texts import ALL_IS_BUILT, CI_RUNS
from handlers.slow_tests.config import SLOW_TESTS

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from handlers.changed_files.changes import Changes


@dataclass(frozen=True, slots=True)
class CiDecision:
    """All decisions about a pull request or a commit; `sha` is the head or commit, empty if it is unknown."""

    sha: str
    run_slow_tests: CiVerdict
    skip_ci: CiVerdict
    docs_only: CiVerdict
    rebuild_docker: CiVerdict

    @property
    def verdicts(self) -> Mapping[str, CiVerdict]:
        """Return each verdict by its name in the API."""
        return {name: getattr(self, name) for name in ("run_slow_tests", "skip_ci", "docs_only", "rebuild_docker")}

    def as_json(self) -> dict[str, object]:
        """Return the decision in the form of the API."""
        verdicts = {name: {"value": verdict.value, "reason": verdict.reason} for name, verdict in self.verdicts.items()}
        return {"sha": self.sha, **verdicts}


def needs_files(config: RepositoryConfig, title: str | None) -> bool:
    """Say whether a decision depends on which files are changed. A commit has no title: None."""
    return config.of(REBUILD_DOCKER) is not None or skip_needs_files(config.of(SKIP_CI), title)


def commit_needs_files(config: RepositoryConfig) -> bool:
    """Say whether a decision about a commit of a branch depends on which files it changes."""
    return needs_files(config, None)


def decide_for_commit(config: RepositoryConfig, sha: str, changes: Changes) -> CiDecision:
    """Return what CI does for a commit of a branch, which has no title and no choice of slow tests."""
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(
            True, texts.SLOW_TESTS_NOT_ON if config.of(SLOW_TESTS) is None else texts.SLOW_TESTS_ON_COMMIT
        ),
        # A tag in a commit message skips nothing: everyone sees a title, but few read a message (TVM #10537).
        skip_ci=skip_ci(config.of(SKIP_CI), None, changes),
        docs_only=docs_only(config.of(SKIP_CI), None, changes),
        rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), changes),
    )


def run_everything(reason: str, sha: str = "", template: str = FALLBACK) -> CiDecision:
    """Return the fallback decision: run everything.

    `reason` is a clause that a comma may follow; `template` is the sentence around it.
    """
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(True, template.format(why=reason, what=texts.SLOW_TESTS_RUN)),
        skip_ci=CiVerdict(False, template.format(why=reason, what=CI_RUNS)),
        docs_only=CiVerdict(False, template.format(why=reason, what=ALL_IS_BUILT)),
        rebuild_docker=CiVerdict(True, template.format(why=reason, what=IMAGES_ARE_BUILT)),
    )
