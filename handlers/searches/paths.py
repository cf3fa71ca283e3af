"""Which commits of a range are unlikely to have broken a test, because of the files that they change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.config.types import matches
from bot.core.events import Payload
from handlers.changed_files.changes import ChangedFiles, changed_names
from handlers.device_tests.targets import RequestTarget, request_targets
from handlers.results.config import LAB_RESULTS
from handlers.searches.records import SearchedCommit
from handlers.skip_ci.config import SKIP_CI, SkipCi
from handlers.skip_ci.decide import skip_ci

if TYPE_CHECKING:
    from bot.plan.handler import Context

ONE_COMMIT = "/repos/{+repo}/commits/{sha}"
MOST_READ = 100
"""The most commits of a range whose files are read, each with a request; those of a longer range are not read."""
MOST_FILES = 300
"""GitHub lists more files on further pages: https://docs.github.com/rest/commits/commits#get-a-commit."""


async def with_paths(
    context: Context, commits: Sequence[SearchedCommit], targets: Iterable[str]
) -> tuple[SearchedCommit, ...]:
    """Return commits with what their files say about a search on `targets` (LAB/TARGET). Raises GitHub's errors."""
    if len(commits) > MOST_READ:
        return tuple(commits)
    rules, known_targets = context.config.of(SKIP_CI) or SkipCi(), request_targets(context.config.of(LAB_RESULTS))
    result = []
    for commit in commits:
        url_vars = {"repo": context.repository.full_name, "sha": commit.sha}
        answer = Payload(await context.github.getitem(ONE_COMMIT, url_vars=url_vars), "commit")
        files = list(answer.items("files"))
        names = tuple(name for file in files for name in changed_names(file))
        result.append(
            replace(
                commit,
                only_docs=len(files) < MOST_FILES and skip_ci(rules, None, ChangedFiles(names, len(files))).value,
                only_other_targets=len(files) < MOST_FILES
                and touches_only_other_targets(names, known_targets, set(targets)),
            )
        )
    return tuple(result)


def touches_only_other_targets(file_names: Sequence[str], targets: Sequence[RequestTarget], searched: set[str]) -> bool:
    """Return whether each file matches `paths` of another target, and none those of a searched one (LAB/TARGET).

    False if there are no files, if a searched target is unknown, or if one has no `paths`: any file may matter to it.
    """
    searched_paths = [target.settings.paths for target in targets if target.full_name in searched]
    if not file_names or len(searched_paths) < len(searched) or not all(searched_paths):
        return False
    searched_patterns = [pattern for paths in searched_paths for pattern in paths]
    other_patterns = [
        pattern for target in targets if target.full_name not in searched for pattern in target.settings.paths
    ]
    return all(matches(other_patterns, name) and not matches(searched_patterns, name) for name in file_names)
