"""app.yaml with the keys that features declare themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, create_model

from bot.config.keys import ConfigKey, key_types, model_of
from bot.config.model import Config, RepositoryConfig
from bot.config.types import RepositoryName, Section

DECLARED_TWICE = "two features declare the key {name} of app.yaml"


def repository_model(model: type[Config]) -> type[RepositoryConfig]:
    """Return the model of a repository's keys in one of app.yaml."""
    found = model_of(key_types(model)["repositories"])
    assert found is not None
    assert issubclass(found, RepositoryConfig)
    return found


def config_with(keys: Iterable[ConfigKey[Any]]) -> type[Config]:
    """Return the model of app.yaml with these keys for each repository. Raises ValueError for a name that is taken."""
    fields: dict[str, Any] = {}
    for key in keys:
        if key.name in fields or key.name in RepositoryConfig.model_fields:
            raise ValueError(DECLARED_TWICE.format(name=key.name))
        described = Field(default=None, description=key.description, examples=[key.example])
        fields[key.name] = (Annotated[key.model | None, Section(switch=True)], described)
    if not fields:
        return Config
    repository = create_model(
        RepositoryConfig.__name__, __base__=RepositoryConfig, __doc__=RepositoryConfig.__doc__, **fields
    )
    old = Config.model_fields
    section = Annotated[repository, Section(switch=False)]
    changed: dict[str, Any] = {
        "defaults": (
            section,
            Field(default=repository(), description=old["defaults"].description, examples=old["defaults"].examples),
        ),
        "repositories": (
            Mapping[RepositoryName, section],
            Field(min_length=1, description=old["repositories"].description, examples=old["repositories"].examples),
        ),
    }
    return create_model(Config.__name__, __base__=Config, __doc__=Config.__doc__, **changed)
