"""`.github/nightjar.yaml` -> what a repository says of itself, or everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from bot.config.explain import TOO_MANY
from bot.config.faults import ConfigError, Fault
from bot.config.keys import Keys
from bot.config.load import faults_of, read_file
from bot.config.model import RepositoryConfig
from bot.config.shared import PATH, SWITCHES, RepositoryFile
from bot.config.source import Value, read

MOST_BYTES = 64 * 1024
"""Many times what all of its keys need; it bounds what is kept of every repository."""
MOST_ITEMS = 100
"""Items of one list: each pattern is held against each context of each commit that is looked at."""
NOT_ON = "app.yaml does not switch it on, and only app.yaml can; remove it here, or ask who runs the bot"


def parse_repository_file(raw: bytes, file: str = PATH, config: RepositoryConfig | None = None) -> Keys:
    """Read a repository's own file, a `RepositoryFile`; `file` is what faults call it.

    With `config`, what app.yaml says of the repository, it is also a fault to set keys of what is off there. Raises
    `ConfigError` with every fault.
    """
    root, faults = read(raw, file, MOST_BYTES)
    if root is None:
        return RepositoryFile()
    said = RepositoryFile()
    try:
        said = RepositoryFile.model_validate({} if root.content is None else root.plain())
    except ValidationError as error:
        faults += faults_of(error, root, file, RepositoryFile)
    faults += _too_long(root, file)
    if config is not None:
        faults += _switched_off(root, file, config)
    if faults:
        raise ConfigError(faults)
    return said


def is_repository_file(path: Path) -> bool:
    """Say whether a file on a disk is a repository's own, by its name and its folder's."""
    return path.resolve().parts[-2:] == Path(PATH).parts


def load_repository_file(path: str | Path) -> Keys:
    """Read a repository's own file from a disk. Raises `ConfigError`, also when there is no such file."""
    return parse_repository_file(read_file(path, MOST_BYTES), str(path))


def _too_long(value: Value, file: str) -> Iterator[Fault]:
    """Yield a fault for each list that is longer than anybody writes by hand."""
    match value.content:
        case dict() as entries:
            for entry in entries.values():
                yield from _too_long(entry.value, file)
        case tuple() as items if len(items) > MOST_ITEMS:
            yield Fault(file, value.line, value.column, value.path, TOO_MANY.format(limit=MOST_ITEMS))


def _switched_off(root: Value, file: str, config: RepositoryConfig) -> list[Fault]:
    """Return a fault for each section that app.yaml alone can switch on, and does not."""
    entries = root.content if isinstance(root.content, dict) else {}
    return [
        Fault(file, entry.line, entry.column, entry.path, NOT_ON)
        for name, entry in entries.items()
        if name in RepositoryFile.model_fields and name not in SWITCHES and getattr(config, name) is None
    ]
