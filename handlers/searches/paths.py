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
    """Return commits with what their files say; `targets` (LAB/TARGET) are searched. Raises GitHub's errors."""
    if len(commits) > MOST_READ:
        return tuple(commits)
    rules, known = context.config.of(SKIP_CI) or SkipCi(), request_targets(context.config.of(LAB_RESULTS))
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
                only_other_targets=len(files) < MOST_FILES and is_of_others(names, known, set(targets)),
            )
        )
    return tuple(result)


def is_of_others(names: Sequence[str], known: Sequence[RequestTarget], searched: set[str]) -> bool:
    """Say whether all files are `paths` of other targets, and none is one of a searched target (LAB/TARGET).

    If a searched target has no `paths`, any file may matter to it.
    """
    own = [target.settings.paths for target in known if target.full_name in searched]
    if not names or len(own) < len(searched) or not all(own):
        return False
    others = [pattern for target in known if target.full_name not in searched for pattern in target.settings.paths]
    own_patterns = [pattern for paths in own for pattern in paths]
    return all(matches(others, name) and not matches(own_patterns, name) for name in names)
