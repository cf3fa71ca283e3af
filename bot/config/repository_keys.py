"""The keys of a repository in app.yaml, as features declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from bot.config.jenkins import JenkinsServer
from bot.config.keys import Keys
from bot.config.places import Place
from bot.config.types import JOINED, SHARED, Section

K = TypeVar("K", bound=Keys)
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)

AFTER_ALL = 1000
"""The position of a key that names none: below those of the program."""
NO_SCHEDULE = "{model} has no property `schedule` for the timer of the key {name}"
NO_SUCH_KEY = "{model} has no key {key}, which the key {name} is declared with"


class ValidatedKeys:
    """The keys of one repository that are valid, while a later one is checked; keys are checked by position."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def has(self, key: RepositoryKey[Any]) -> bool:
        """Return whether a key is valid, so that `of` returns its value: False after an error, which is reported."""
        return key.name in self._values

    def of(self, key: RepositoryKey[V]) -> V:
        """Return the value of a key. Raises LookupError if it is invalid or not checked yet."""
        value: V = self._values[key.name]
        return value


class RepositoryKey(Generic[V_co]):
    """A key of a repository in app.yaml: `RepositoryConfig.of` returns its value.

    `annotation` is the type of its values for pydantic, `default` the value if the key is missing. `description` and
    `example` are for the schema and the docs; `position` says where they list the key. With `shared`, a repository's
    own file may set the key too (`bot.config.types.Shared`); with `joined`, its list is added to that of app.yaml.

    `check` gets the value and the keys with a lower position. It raises ValueError for a contradiction, or an error of
    type `LACKING` if a key is missing beside it. `check_app` does the same with the valid keys beside `repositories`.
    """

    def __init__(
        self,
        name: str,
        annotation: Any,
        *,
        default: V_co,
        description: str,
        example: object,
        position: int = AFTER_ALL,
        shared: bool = False,
        joined: bool = False,
        check: Callable[[V_co, ValidatedKeys], None] | None = None,
        check_app: Callable[[V_co, Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.name = name
        if joined:
            annotation = Annotated[annotation, JOINED]
        self.annotation = Annotated[annotation, SHARED] if shared or joined else annotation
        self.field = Field(default=default, description=description, examples=[example])
        self.position = position
        self.example = example
        self.check = check
        self.check_app = check_app

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class ConfigKey(RepositoryKey[K | None], Generic[K]):
    """A key of a repository that switches a feature on and off. Its value is None while the feature is off.

    `model` is the mapping below it. The feature is off in a repository unless app.yaml names the key, or it is
    `on_by_default`. With `shared`, a repository's own file may switch the feature on and off. The other parameters tell
    the program what it must know of the feature:

    - `allow`: the key below this one with the roles that may use the feature's commands.
    - `timer`: the name of the feature's timer in a repository; the property `schedule` of the model says when it runs,
      None for never.
    - `contexts`: the contexts of the statuses that the feature sets. They never count as CI.
    - `branches`: the branches that the feature pushes to. No two features may push to one, and runs of CI on them never
      count.
    - `tested_branches`: the branches whose commits labs test, unless the settings of the labs name others.
    - `requires`: the key below this one with patterns of the contexts that the feature waits for.
    - `places`: the channels that its messages go to.
    - `jenkins`: the Jenkins servers whose jobs the bot may start.
    - `warn`: what is valid below the key and probably a mistake, as texts for `nightjar check-config`, each with
      `{place}` for the place of the key.
    """

    def __init__(
        self,
        name: str,
        model: type[K],
        *,
        description: str,
        example: object = True,
        position: int = AFTER_ALL,
        shared: bool = False,
        on_by_default: bool = False,
        allow: str = "",
        timer: str = "",
        contexts: Callable[[K], Iterable[str]] | None = None,
        branches: Callable[[K], Iterable[str]] | None = None,
        tested_branches: Callable[[K], Iterable[str]] | None = None,
        requires: str = "",
        places: Callable[[K], Iterable[Place]] | None = None,
        jenkins: Callable[[K], Iterable[JenkinsServer]] | None = None,
        warn: Callable[[K], Iterable[str]] | None = None,
        check: Callable[[K, ValidatedKeys], None] | None = None,
        check_app: Callable[[K, Mapping[str, Any]], None] | None = None,
    ) -> None:
        super().__init__(
            name,
            Annotated[model | None, Section(switch=True)],
            default=model() if on_by_default else None,
            description=description,
            example=example,
            position=position,
            shared=shared,
            check=_if_on(check),
            check_app=_if_on(check_app),
        )
        self.model = model
        self.on_by_default = on_by_default
        # A mapping with `allow` restricts its feature, whether the declaration says so or not.
        self.allow = allow or ("allow" if "allow" in model.model_fields else "")
        self.timer = timer
        self.contexts = contexts
        self.branches = branches
        self.tested_branches = tested_branches
        self.requires = requires
        self.places = places
        self.jenkins = jenkins
        self.warn = warn
        if timer and not hasattr(model, "schedule"):
            raise TypeError(NO_SCHEDULE.format(model=model.__name__, name=name))
        for key in filter(None, (self.allow, requires)):
            if key not in model.model_fields:
                raise TypeError(NO_SUCH_KEY.format(model=model.__name__, key=key, name=name))


C = TypeVar("C")


def _if_on(check: Callable[[K, C], None] | None) -> Callable[[K | None, C], None] | None:
    """Return the check of a feature, which is not called while the feature is off."""
    if check is None:
        return None

    def check_if_on(value: K | None, keys: C) -> None:
        if value is not None:
            check(value, keys)

    return check_if_on
