"""What is told of a repository's own settings, on the commit that changes them: their faults, or what they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.config.faults import Fault
from bot.config.model import RepositoryConfig
from bot.config.shared import PATH, settings
from bot.core.docs import table
from bot.github.check_runs import (
    FAILURE,
    FAULT,
    MOST_ANNOTATIONS,
    SUCCESS,
    TITLE_LIMIT,
    Annotation,
    Block,
    CheckContent,
    joined,
    shortened,
)
from bot.github.markdown import code, escape, plain, truncate

NAME = "nightjar/config"
"""The check run's name."""

ONE_FAULT, FAULTS = "1 fault", "{count} faults"
NO_FAULTS, REMOVED = "No faults", "Removed"
NOTHING_CHANGES, ONE_CHANGES, SOME_CHANGE = "nothing changes", "1 setting changes", "{count} settings change"

HAS_FAULTS = (
    "{path} has {count}, and is not read as long as that is so. Until a file without faults is on {branch}, what is in "
    "force stays in force: {kept}."
)
KEPT_FILE, KEPT_NOTHING = "the file of commit {commit}, over what app.yaml says", "what app.yaml says, and no file"
LINE = "- line {line}, column {column}: {message}"
LINE_OF_KEY = "- line {line}, column {column}: {key}: {message}"
BY_HAND = "On your own machine: `nightjar check-config {path}`"
IS_FINE = "{path} has no faults. What it says holds as soon as it is on {branch}."
IS_REMOVED = "{path} is not there. As soon as that is so on {branch}, what app.yaml says holds alone."
CHANGES = ("key", "in force now", "with this")
NO_VALUE = "(off)"
MORE = "more faults"
MOST_SHOWN = 200
"""Characters of a key or a value."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is told of: how many faults the file has, or else what it would come to.

    `now` is what is in force, by the file of `commit` (empty: by app.yaml alone); `then` is what will be, where there
    are no faults. `removed`: there is no file. `branch` is the default branch.
    """

    faults: Sequence[Fault]
    now: RepositoryConfig
    then: RepositoryConfig
    commit: str
    branch: str
    removed: bool = False


def report(about: Subject) -> CheckContent:
    """Return the check run of a commit on which there is this file.

    It fails where there are faults: these are certain, and to merge them would change nothing but look as if it did.
    """
    return _faulty(about) if about.faults else _fine(about)


def _faulty(about: Subject) -> CheckContent:
    count = _counted(len(about.faults), ONE_FAULT, FAULTS)
    kept = KEPT_FILE.format(commit=code(about.commit[:7])) if about.commit else KEPT_NOTHING
    said = HAS_FAULTS.format(path=code(PATH), count=count, branch=code(about.branch), kept=kept)
    shown = about.faults[:MOST_ANNOTATIONS]
    lines = [Block(MORE, _line(fault)) for fault in shown]
    by_hand = Block("", BY_HAND.format(path=PATH))
    return CheckContent(
        conclusion=FAILURE,
        title=count,
        summary=joined([Block("", said), by_hand, *lines]),
        annotations=tuple(map(_annotation, shown)),
        certain=True,
    )


def _fine(about: Subject) -> CheckContent:
    now, then = settings(about.now), settings(about.then)
    changed = [key for key in dict.fromkeys([*now, *then]) if now.get(key) != then.get(key)]
    rows = [(code(key), _value(now.get(key)), _value(then.get(key))) for key in changed]
    count = _counted(len(changed), ONE_CHANGES, SOME_CHANGE) if changed else NOTHING_CHANGES
    said = (IS_REMOVED if about.removed else IS_FINE).format(path=code(PATH), branch=code(about.branch))
    changes = Block("what changes", table(CHANGES, rows)) if rows else Block("", "")
    return CheckContent(
        conclusion=SUCCESS,
        title=f"{REMOVED if about.removed else NO_FAULTS}; {count}",
        summary=joined([Block("", said), changes]),
    )


def _counted(count: int, one: str, more: str) -> str:
    return one if count == 1 else more.format(count=f"{count:,}")


def _value(value: str | None) -> str:
    return code(truncate(value, MOST_SHOWN)) if value is not None else NO_VALUE


def _line(fault: Fault) -> str:
    words = {"line": fault.line, "column": fault.column, "message": escape(fault.message)}
    if not fault.key:
        return LINE.format(**words)
    return LINE_OF_KEY.format(key=code(truncate(fault.key, MOST_SHOWN)), **words)


def _annotation(fault: Fault) -> Annotation:
    title = shortened(plain(fault.key or PATH), TITLE_LIMIT)
    return Annotation(PATH, fault.line, title, plain(fault.message), column=fault.column, level=FAULT)
