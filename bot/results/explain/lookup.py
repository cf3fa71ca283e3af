"""Find the target, the commit or the test that a person names, or say which ones exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.core.errors import UserError
from bot.core.nearest import most_similar
from bot.results.explain import texts
from bot.results.store.history.timelines import all_targets, commits_starting_with

CHECK_RUNS = "hardware/"
"""The prefix of a target in the name of its check run."""
MOST_NAMED = 10
NEWEST, SHORT = 5, 10
"""Commits that an error about an unknown commit names, and the digits of each."""
MOST_SIMILAR = 3
SIMILAR = 50
"""The least similarity, in percent, of a name that is proposed for an unknown one."""
MOST_SEARCHED = 300_000
"""Names among which similar ones are searched."""
MOST_COMPARED = 300
"""Characters of a name that are compared."""


def find_target(connection: sa.Connection, repository: str | None, name: str) -> TargetKey:
    """Return the target `LAB/TARGET`, which may be the name of its check run.

    Without a repository, return that of the only one that has it. Raises `UserError`.
    """
    name = name.strip().removeprefix(CHECK_RUNS)
    lab, _, target = name.partition("/")
    if not lab or not target or "/" in target:
        raise UserError(texts.NOT_A_TARGET.format(value=name))
    targets = all_targets(connection)
    if not targets:
        raise UserError(texts.NO_RESULTS)
    if repository is not None:
        of_repository = [target_key for target_key in targets if target_key.repository.lower() == repository.lower()]
        if not of_repository:
            names = _listed(dict.fromkeys(target_key.repository for target_key in targets))
            raise UserError(texts.UNKNOWN_REPOSITORY.format(repository=repository, known=names))
        targets = of_repository
    matches = [target_key for target_key in targets if (target_key.lab, target_key.target) == (lab, target)]
    if not matches:
        names = _listed(dict.fromkeys(f"{target_key.lab}/{target_key.target}" for target_key in targets))
        raise UserError(texts.UNKNOWN_TARGET.format(target=name, known=names))
    if len(matches) > 1:
        raise UserError(
            texts.SEVERAL_REPOSITORIES.format(
                target=name, known=_listed(target_key.repository for target_key in matches)
            )
        )
    return matches[0]


def find_commit(connection: sa.Connection, target_key: TargetKey, sha: str) -> str:
    """Return the commit of a target whose SHA begins like this. Raises `UserError` unless there is exactly one."""
    full_name = target_key.full_name
    shas = commits_starting_with(connection, target_key, sha, MOST_NAMED)
    if not shas:
        newest = [newest_sha[:SHORT] for newest_sha in commits_starting_with(connection, target_key, "", NEWEST)]
        if not newest:
            raise UserError(texts.NO_COMMITS.format(target=full_name))
        raise UserError(texts.UNKNOWN_SHA.format(target=full_name, sha=sha, known=_listed(newest)))
    if len(shas) > 1:
        raise UserError(texts.SEVERAL_SHAS.format(target=full_name, sha=sha, known=_listed(shas)))
    return shas[0]


def unknown_test(target_key: TargetKey, test: str, names: Iterable[str]) -> UserError:
    """Return the error for an unknown test, with the names that are most like it."""
    full_name = target_key.full_name
    similar = _similar(test, list(islice(names, MOST_SEARCHED)))
    if not similar:
        return UserError(texts.UNKNOWN_TEST_AT_ALL.format(target=full_name, test=test))
    return UserError(texts.UNKNOWN_TEST.format(target=full_name, test=test, known="; ".join(similar)))


def _similar(test: str, names: Sequence[str]) -> list[str]:
    cut = [name[:MOST_COMPARED] for name in names]
    similar = most_similar(test[:MOST_COMPARED], cut, least=SIMILAR, most=MOST_SIMILAR, in_parts=True)
    return [names[index] for index in similar]


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    return ", ".join(all_names[:MOST_NAMED]) + (", …" if len(all_names) > MOST_NAMED else "")
