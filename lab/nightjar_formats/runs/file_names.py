"""Decide under which names the files of a run are uploaded, for `check` and `upload` alike."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nightjar_formats.limits import MAX_FILES
from nightjar_formats.model import FILE_NAME, MANIFEST
from nightjar_formats.patterns import Pattern
from nightjar_formats.runs import texts

_FILE_NAME = Pattern(FILE_NAME)
_UNSAFE = Pattern(r"[^A-Za-z0-9._+-]+")
DIGEST_DIGITS = 12
"""Hexadecimal digits of the SHA-256 of a path that make a name unique: 48 bits."""
MOST_OF_NAME = 80
"""The most characters that a name made safe has before its digest, and after it."""


def is_file_name(name: str) -> bool:
    """Say whether a result file may be uploaded under this name."""
    return _FILE_NAME.fullmatch(name) is not None and name != MANIFEST


def upload_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of each path in the run: its own, or a safe one if that is not allowed or another file has it.

    The names depend on the paths only, so that a second upload of the same files recognizes them.
    """
    own_names = {path.name for path in paths if is_file_name(path.name)}
    names: list[str] = []
    used: set[str] = set()
    for path in paths:
        name, salt = path.name, ""
        while name in used or not is_file_name(name) or (salt and name in own_names):
            salt += "\0"
            name = _safe_name(path, salt)
        used.add(name)
        names.append(name)
    return names


def _safe_name(path: Path, salt: str) -> str:
    r"""Return the name of a path in letters that are allowed, with a digest of the path: `a b.xml` -> `a_b-1f….xml`."""
    digest = hashlib.sha256(os.fsencode(f"{path}{salt}")).hexdigest()[:DIGEST_DIGITS]
    head, dot, suffix = _UNSAFE.sub("_", path.name).partition(".")
    return f"{head.lstrip('+-')[:MOST_OF_NAME] or '_'}-{digest}{dot}{suffix[-MOST_OF_NAME:]}"


def path_faults(paths: Iterable[Path]) -> Iterator[str]:
    """Yield for each path why it cannot be uploaded as a file of one run; empty if it can."""
    seen: set[Path] = set()
    for path in paths:
        if path.is_dir():
            yield texts.IS_FOLDER.format(path=path)
        elif path.name == MANIFEST:
            yield texts.NAMED_MANIFEST.format(path=path)
        elif path in seen:
            yield texts.GIVEN_TWICE.format(path=path)
        elif len(seen) >= MAX_FILES:
            yield texts.TOO_MANY_FILES
        else:
            yield ""
        seen.add(path)
