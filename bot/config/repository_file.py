"""Read `.github/nightjar.yaml`, or report all of its errors at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from bot.config.faults import ConfigError, ConfigFault
from bot.config.keys import Keys
from bot.config.load import faults_of, read_file
from bot.config.model import RepositoryConfig
from bot.config.shared import PATH, file_model, switches
from bot.config.source import Value, read
from bot.config.texts import LIST_TOO_LONG, NOT_ENABLED

MOST_BYTES = 64 * 1024
"""Bytes, many times what all keys need. The database stores the text of each repository's file."""
MOST_ITEMS = 100
"""Entries of one list: the bot compares each pattern with each context of each commit."""


def parse_repository_file(
    raw: bytes, model: type[RepositoryConfig], file: str = PATH, config: RepositoryConfig | None = None
) -> Keys:
    """Read a repository's own file; `model` has all keys of a repository, `file` is the file's name in errors.

    With `config`, the repository's settings in app.yaml, keys of features that are off there are errors too. Raises
    `ConfigError` with every error.
    """
    own_model = file_model(model)
    root, faults = read(raw, file, MOST_BYTES)
    if root is None:
        return own_model()
    own = own_model()
    try:
        own = own_model.model_validate({} if root.content is None else root.plain())
    except ValidationError as error:
        faults += faults_of(error, root, own_model)
    faults += _too_long_lists(root, file)
    if config is not None:
        faults += _switched_off(root, file, config)
    if faults:
        raise ConfigError(faults)
    return own


def is_repository_file(path: Path) -> bool:
    """Return whether a file is a repository's own, by its name and that of its folder."""
    return path.resolve().parts[-2:] == Path(PATH).parts


def read_repository_file(path: str | Path, model: type[RepositoryConfig]) -> Keys:
    """Read a repository's own file from disk. Raises `ConfigError`, also if the file does not exist."""
    return parse_repository_file(read_file(path, MOST_BYTES), model, str(path))


def _too_long_lists(value: Value, file: str) -> Iterator[ConfigFault]:
    """Yield an error for each list with more than MOST_ITEMS items."""
    match value.content:
        case dict() as entries:
            for entry in entries.values():
                yield from _too_long_lists(entry.value, file)
        case tuple() as items if len(items) > MOST_ITEMS:
            yield ConfigFault(file, value.line, value.column, value.path, LIST_TOO_LONG.format(limit=MOST_ITEMS))


def _switched_off(root: Value, file: str, config: RepositoryConfig) -> list[ConfigFault]:
    """Return an error for each section that is off in app.yaml and that only app.yaml can enable."""
    entries = root.content if isinstance(root.content, dict) else {}
    accepted = file_model(type(config)).model_fields
    return [
        ConfigFault(file, entry.line, entry.column, entry.path, NOT_ENABLED)
        for name, entry in entries.items()
        if name in accepted and name not in switches(type(config)) and getattr(config, name) is None
    ]
