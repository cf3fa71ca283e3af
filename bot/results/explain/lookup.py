"""Find the target, the commit and the tests that somebody names, or say which ones there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from nightjar_formats.model import TargetKey
from rapidfuzz import fuzz, process

from bot.core.errors import UserError
from bot.results.explain import texts
from bot.results.store.history.timelines import Timelines

CHECK_RUNS = "hardware/"
"""With this before it, a target is the name of its check run."""
MOST_NAMED = 10
NEWEST, SHORT = 5, 10
"""Commits that are named for an unknown one, and digits of each."""
MOST_SIMILAR = 3
SIMILAR = 50
"""Percent of similarity from which a known name is proposed for an unknown one."""
MOST_SEARCHED = 300_000
"""Names among which similar ones are searched."""
MOST_COMPARED = 300
"""Characters of a name that are compared."""


def find_target(timelines: Timelines, repository: str | None, name: str) -> TargetKey:
    """Return the target `LAB/TARGET`, which may be the name of its check run.

    Without a repository, return that of the only one that has it. Raises `UserError`.
    """
    name = name.strip().removeprefix(CHECK_RUNS)
    lab, _, target = name.partition("/")
    if not lab or not target or "/" in target:
        raise UserError(texts.NOT_A_TARGET.format(value=name))
    every = timelines.targets()
    if not every:
        raise UserError(texts.NO_RESULTS)
    if repository is not None:
        of_repository = [one for one in every if one.repository.lower() == repository.lower()]
        if not of_repository:
            known = _listed(dict.fromkeys(one.repository for one in every))
            raise UserError(texts.UNKNOWN_REPOSITORY.format(repository=repository, known=known))
        every = of_repository
    found = [one for one in every if (one.lab, one.target) == (lab, target)]
    if not found:
        known = _listed(dict.fromkeys(f"{one.lab}/{one.target}" for one in every))
        raise UserError(texts.UNKNOWN_TARGET.format(target=name, known=known))
    if len(found) > 1:
        raise UserError(texts.SEVERAL_REPOSITORIES.format(target=name, known=_listed(one.repository for one in found)))
    return found[0]


def find_commit(timelines: Timelines, about: TargetKey, sha: str) -> str:
    """Return the commit of a target whose SHA begins like this. Raises `UserError` unless there is exactly one."""
    target = about.full_name
    found = timelines.commits(about, sha, MOST_NAMED)
    if not found:
        known = [one[:SHORT] for one in timelines.commits(about, "", NEWEST)]
        if not known:
            raise UserError(texts.NO_COMMITS.format(target=target))
        raise UserError(texts.UNKNOWN_SHA.format(target=target, sha=sha, known=_listed(known)))
    if len(found) > 1:
        raise UserError(texts.SEVERAL_SHAS.format(target=target, sha=sha, known=_listed(found)))
    return found[0]


def unknown_test(about: TargetKey, test: str, names: Iterable[str]) -> UserError:
    """Return the error for an unknown test, with the names that are most like it."""
    target = about.full_name
    similar = _similar(test, list(islice(names, MOST_SEARCHED)))
    if not similar:
        return UserError(texts.UNKNOWN_TEST_AT_ALL.format(target=target, test=test))
    return UserError(texts.UNKNOWN_TEST.format(target=target, test=test, known="; ".join(similar)))


def _similar(test: str, names: Sequence[str]) -> list[str]:
    cut = [name[:MOST_COMPARED] for name in names]
    found = process.extract(test[:MOST_COMPARED], cut, scorer=fuzz.WRatio, limit=MOST_SIMILAR, score_cutoff=SIMILAR)
    return [names[place] for _, _, place in found]


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:MOST_NAMED]) + (", …" if len(every) > MOST_NAMED else "")
