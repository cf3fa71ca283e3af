"""The model of app.yaml with the keys of all features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, create_model, field_validator

from bot.config.api import API
from bot.config.keys import key_types, model_of
from bot.config.model import Config, RepositoryConfig
from bot.config.own_file import REPOSITORY_FILE
from bot.config.repository_keys import ConfigKey, RepositoryKey, ValidatedKeys
from bot.config.texts import BRANCH_IN_USE
from bot.config.types import RepositoryEntry, Section
from bot.core.errors import DeclarationError

OWN_KEYS: tuple[RepositoryKey[Any], ...] = (API, REPOSITORY_FILE)
"""The keys of a repository that belong to the program."""

DECLARED_TWICE = "two features declare the key {name} of app.yaml"
RESERVED = "RepositoryConfig has an attribute {name}, so no key can be named so"
TIMER_TWICE = "two features declare the timer {name}"


def repository_model(model: type[Config]) -> type[RepositoryConfig]:
    """Return the model of a repository's keys in one of app.yaml."""
    repository = model_of(key_types(model)["repositories"])
    assert repository is not None
    assert issubclass(repository, RepositoryConfig)
    return repository


def config_with(keys: Iterable[RepositoryKey[Any]]) -> type[Config]:
    """Return the model of app.yaml with these keys, and those of the program, for each repository.

    Raises ValueError for the name of a key or a timer that is taken.
    """
    ordered = tuple(sorted((*keys, *OWN_KEYS), key=lambda key: key.position))
    _check_names(ordered)
    repository = create_model(
        RepositoryConfig.__name__,
        __base__=RepositoryConfig,
        __doc__=RepositoryConfig.__doc__,
        __validators__={f"_check_{key.name}": _validator(key, ordered) for key in ordered},
        **{key.name: (key.annotation, key.field) for key in ordered},  # type: ignore[call-overload]
    )
    repository.KEYS = ordered
    old = Config.model_fields
    section = Annotated[repository, Section(switch=False)]
    changed: dict[str, Any] = {
        "defaults": (
            section,
            Field(
                default=repository(), description=old["defaults"].description, examples=_examples_of_defaults(ordered)
            ),
        ),
        "repositories": (
            Mapping[RepositoryEntry, section],
            Field(min_length=1, description=old["repositories"].description, examples=old["repositories"].examples),
        ),
    }
    return create_model(Config.__name__, __base__=Config, __doc__=Config.__doc__, **changed)


def _examples_of_defaults(keys: Sequence[RepositoryKey[Any]]) -> list[Any]:
    """Return an example of `defaults`: the first feature whose own example is that it is off."""
    return [{key.name: False} for key in keys if key.example is False][:1]


def _check_names(keys: Sequence[RepositoryKey[Any]]) -> None:
    names, timers = set[str](), set[str]()
    for key in keys:
        if key.name in names:
            raise DeclarationError(DECLARED_TWICE.format(name=key.name))
        if hasattr(RepositoryConfig, key.name):
            raise DeclarationError(RESERVED.format(name=key.name))
        names.add(key.name)
        if isinstance(key, ConfigKey) and key.timer:
            if key.timer in timers:
                raise DeclarationError(TIMER_TWICE.format(name=key.timer))
            timers.add(key.timer)


def _validator(key: RepositoryKey[Any], keys: Sequence[RepositoryKey[Any]]) -> Callable[..., Any]:
    """Return pydantic's validator of a key: its own check, after that of the branches that features push to."""
    pushing_keys = [
        candidate for candidate in keys if isinstance(candidate, ConfigKey) and candidate.branches is not None
    ]

    def check(value: Any, info: ValidationInfo) -> Any:
        valid = ValidatedKeys(info.data)
        if isinstance(key, ConfigKey) and key.branches is not None and value is not None:
            _check_branches(set(key.branches(value)), pushing_keys, valid)
        if key.check is not None:
            key.check(value, valid)
        return value

    return field_validator(key.name)(check)


def _check_branches(branches: set[str], pushing_keys: Iterable[ConfigKey[Any]], valid: ValidatedKeys) -> None:
    """Raise ValueError if another feature pushes to one of the branches."""
    for key in pushing_keys:
        section = valid.of(key) if valid.has(key) else None
        if section is not None and key.branches is not None and branches.intersection(key.branches(section)):
            raise ValueError(BRANCH_IN_USE.format(other=key))
