"""Decide what CI should do for a pull request, commit or checkout, and why, from plain data, for API and CLI.

Everything fails open: if a fact is missing, CI runs, and the reason says that this is a fallback. A predecessor was not
executable for days; its CI read that as "run the slow tests", and nobody noticed (TVM #10457).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_lab.ci.decision import CiDecision, CiVerdict
from nightjar_lab.levels import LEVELS

from bot.config.types import matches
from handlers.ci_decisions import texts
from handlers.rebuild_docker.config import REBUILD_DOCKER
from handlers.rebuild_docker.decide import rebuild_docker
from handlers.skip_ci.config import SKIP_CI
from handlers.skip_ci.decide import docs_only, skip_ci, skip_needs_files
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.texts import ON_BRANCH

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from handlers.changed_files.changes import Changes
    from handlers.slow_tests.config import SlowTests


def needs_files(config: RepositoryConfig, title: str | None) -> bool:
    """Say whether a decision depends on which files are changed. A commit has no title: None."""
    return config.of(REBUILD_DOCKER) is not None or skip_needs_files(config.of(SKIP_CI), title)


def commit_needs_files(config: RepositoryConfig) -> bool:
    """Say whether a decision about a commit of a branch depends on which files it changes."""
    return needs_files(config, None)


def decide_for_commit(config: RepositoryConfig, sha: str, changes: Changes, branch: str = "") -> CiDecision:
    """Return what CI does for a commit of a branch, which has no title and no choice of slow tests.

    `branch` is empty if it is unknown.
    """
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(
            True, texts.SLOW_TESTS_NOT_ON if config.of(SLOW_TESTS) is None else texts.SLOW_TESTS_ON_COMMIT
        ),
        # A tag in a commit message skips nothing: everyone sees a title, but few read a message (TVM #10537).
        skip_ci=skip_ci(config.of(SKIP_CI), None, changes),
        docs_only=docs_only(config.of(SKIP_CI), None, changes),
        rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), changes),
        later_level=_level_of_branch(config.of(SLOW_TESTS), branch),
    )


def _level_of_branch(slow_tests: SlowTests | None, branch: str) -> str:
    """Return the last level that a branch has by `levels`; empty for none."""
    levels = slow_tests.levels.items() if slow_tests and branch else ()
    fitting = {level for level, patterns in levels if matches(patterns, branch)}
    return max(fitting, key=LEVELS.index, default="")


def decide_for_checkout(
    config: RepositoryConfig, sha: str, branch: str, changes: Changes, *, requests_slow_tests: bool
) -> CiDecision:
    """Return what CI would do for a pull request with the changes of a checkout, which has no title yet.

    `branch` is empty if none is checked out.
    """
    return CiDecision(
        sha=sha,
        run_slow_tests=_slow_tests_of_checkout(config.of(SLOW_TESTS), branch, is_requested=requests_slow_tests),
        skip_ci=skip_ci(config.of(SKIP_CI), None, changes),
        docs_only=docs_only(config.of(SKIP_CI), None, changes),
        rebuild_docker=rebuild_docker(config.of(REBUILD_DOCKER), changes),
    )


def _slow_tests_of_checkout(slow_tests: SlowTests | None, branch: str, *, is_requested: bool) -> CiVerdict:
    if slow_tests is None:
        return CiVerdict(True, texts.SLOW_TESTS_NOT_ON)
    if branch and matches(slow_tests.branches, branch):
        return CiVerdict(True, ON_BRANCH.format(branch=branch))
    return CiVerdict(is_requested, texts.SLOW_TESTS_REQUESTED if is_requested else texts.SLOW_TESTS_NOT_REQUESTED)
