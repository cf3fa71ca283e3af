"""Decide which file names a run may have, for `check` and `upload` alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from nightjar_formats.model import FILE_NAME, MANIFEST
from nightjar_formats.patterns import Pattern
from nightjar_formats.runs import texts

_FILE_NAME = Pattern(FILE_NAME)


def is_file_name(name: str) -> bool:
    """Say whether a result file may be uploaded under this name."""
    return _FILE_NAME.fullmatch(name) is not None and name != MANIFEST


def path_faults(paths: Iterable[Path]) -> Iterator[str]:
    """Yield for each path why it cannot be uploaded as a file of one run; empty if it can."""
    seen: set[str] = set()
    for path in paths:
        if path.is_dir():
            yield texts.IS_FOLDER.format(path=path)
        elif not is_file_name(path.name):
            yield texts.BAD_NAME.format(name=path.name)
        elif path.name in seen:
            yield texts.TWO_OF_A_NAME.format(name=path.name)
        else:
            yield ""
        seen.add(path.name)
