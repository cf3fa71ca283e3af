"""Write the check run about a repository's own settings, for the commit that changes them: errors, or the effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.config.faults import ConfigFault
from bot.config.model import RepositoryConfig
from bot.config.shared import PATH, settings
from bot.core.docs import table
from bot.core.listing import counted
from bot.github.check_runs import (
    FAILURE,
    FAULT,
    MOST_ANNOTATIONS,
    SUCCESS,
    TITLE_LIMIT,
    Annotation,
    Block,
    CheckContent,
    joined_blocks,
    shortened,
)
from bot.github.text.markdown import code, escape, plain, truncate
from handlers.repository_file.texts import (
    APP_YAML_IN_FORCE,
    CHANGES,
    CHANGES_COUNT,
    CHECK_LOCALLY,
    FILE_IN_FORCE,
    INVALID,
    LEFT_OUT_CHANGES,
    LINE,
    LINE_WITH_KEY,
    MORE_ERRORS,
    NO_CHANGES,
    REMOVED,
    TITLE_REMOVED,
    TITLE_VALID,
    VALID,
)

NAME = "nightjar/config"
"""The check run's name."""

NO_VALUE = "(off)"
MOST_SHOWN = 200
"""The most characters of a key or a value that the check run shows."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The file of a commit: its errors, or if it is valid, the settings before and after it.

    `current` are the settings in force, by the file of `commit` (empty: by app.yaml alone); `proposed` are those with
    this file.
    `removed`: there is no file. `branch` is the default branch.
    """

    faults: Sequence[ConfigFault]
    current: RepositoryConfig
    proposed: RepositoryConfig
    commit: str
    branch: str
    removed: bool = False


def config_report(checked: CheckedFile) -> CheckContent:
    """Return the check run of a commit with this file.

    It fails if the file has errors: a merge would have no effect, but look as if it had.
    """
    return _report_faults(checked) if checked.faults else _report_changes(checked)


def _report_faults(checked: CheckedFile) -> CheckContent:
    count = counted(len(checked.faults), "error")
    in_force = FILE_IN_FORCE.format(commit=code(checked.commit[:7])) if checked.commit else APP_YAML_IN_FORCE
    intro = INVALID.format(path=code(PATH), count=count, branch=code(checked.branch), in_force=in_force)
    listed_faults = checked.faults[:MOST_ANNOTATIONS]
    lines = [Block(MORE_ERRORS, _line(fault)) for fault in listed_faults]
    locally = Block("", CHECK_LOCALLY.format(path=PATH))
    return CheckContent(
        conclusion=FAILURE,
        title=count,
        summary=joined_blocks([Block("", intro), locally, *lines]),
        annotations=tuple(map(_annotation, listed_faults)),
        certain=True,
    )


def _report_changes(checked: CheckedFile) -> CheckContent:
    current, proposed = settings(checked.current), settings(checked.proposed)
    changed = [key for key in dict.fromkeys([*current, *proposed]) if current.get(key) != proposed.get(key)]
    rows = [(code(key), _value(current.get(key)), _value(proposed.get(key))) for key in changed]
    count = counted(len(changed), *CHANGES_COUNT) if changed else NO_CHANGES
    intro = (REMOVED if checked.removed else VALID).format(path=code(PATH), branch=code(checked.branch))
    changes = Block(LEFT_OUT_CHANGES, table(CHANGES, rows)) if rows else Block("", "")
    return CheckContent(
        conclusion=SUCCESS,
        title=f"{TITLE_REMOVED if checked.removed else TITLE_VALID}; {count}",
        summary=joined_blocks([Block("", intro), changes]),
    )


def _value(value: str | None) -> str:
    return code(truncate(value, MOST_SHOWN)) if value is not None else NO_VALUE


def _line(fault: ConfigFault) -> str:
    words = {"line": fault.line, "column": fault.column, "message": escape(fault.message)}
    if not fault.key:
        return LINE.format(**words)
    return LINE_WITH_KEY.format(key=code(truncate(fault.key, MOST_SHOWN)), **words)


def _annotation(fault: ConfigFault) -> Annotation:
    title = shortened(plain(fault.key or PATH), TITLE_LIMIT)
    return Annotation(PATH, fault.line, title, plain(fault.message), column=fault.column, level=FAULT)
