"""The keys of app.yaml that belong to the program, and typed access to those of features.

The JSON schema, the docs and the error texts are generated from these descriptions. `bot.config.assemble` makes the
model that has the keys of all features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import Field, ValidationInfo, field_validator

from bot.config.commands import Commands
from bot.config.jenkins import JenkinsServer
from bot.config.keys import Keys
from bot.config.places import Place
from bot.config.repositories import ConfiguredRepositories
from bot.config.repository_keys import ConfigKey, RepositoryKey
from bot.config.types import Mention, Operator, RepositoryEntry, Role, Says, Section, WebAddress
from bot.core.schedule import Schedule


class Http(Keys):
    """Limits on connections, bodies and anonymous requests, which apply before the bot knows who a client is."""

    megabytes_in_flight: Annotated[
        int, Field(ge=32, le=4096), Says("a whole number from 32 (the largest body is 25 MiB) to 4096")
    ] = Field(
        default=64,
        description=(
            "Memory for bodies of webhooks that are not stored yet, in MiB. At the limit the oldest unfinished "
            "body gets 503, and the bot asks GitHub for it later."
        ),
        examples=[64],
    )
    connections: Annotated[int, Field(ge=16, le=65_536), Says("a whole number from 16 to 65536")] = Field(
        default=1024,
        description=(
            "Open connections, at most half of the process's file descriptors. At the limit a new "
            "connection replaces an idle one."
        ),
        examples=[1024],
    )
    anonymous_percent: Annotated[int, Field(ge=1, le=50), Says("a whole number from 1 to 50")] = Field(
        default=5,
        description=(
            "Percent of an installation's hourly GitHub quota for requests to `/api/v1` without a token. "
            "Above it, the API answers from memory."
        ),
        examples=[5],
    )
    pages_per_minute: Annotated[int, Field(ge=10, le=100_000), Says("a whole number from 10 to 100000")] = Field(
        default=300,
        description="Dashboard pages that one address may request per minute. Above that, it gets 429.",
        examples=[300],
    )
    proxies: Annotated[int, Field(ge=0, le=5), Says("a whole number from 0 to 5")] = Field(
        default=0,
        description=(
            "Reverse proxies in front of the bot that append the client's address to `X-Forwarded-For`. The limit "
            "on pages applies to that address; with 0, to the address that connects."
        ),
        examples=[1],
    )


class Log(Keys):
    """What the log says."""

    deliveries: Literal["wanted", "all"] = Field(
        default="wanted",
        description=(
            "Which deliveries get a line in the log: those that a feature uses (`wanted`), or `all`. The others "
            "are counted in `nightjar_deliveries_total` either way, and `nightjar deliveries --all` lists them."
        ),
        examples=["all"],
    )


LOG: Any = Field(default=Log(), description="What the log says.", examples=[{"deliveries": "all"}])
"""The field of app.yaml."""


V = TypeVar("V")


class RepositoryConfig(Keys):
    """What the bot does in one repository."""

    KEYS: ClassVar[tuple[RepositoryKey[Any], ...]] = ()
    """All keys, by position; none in this class itself."""

    def of(self, key: RepositoryKey[V]) -> V:
        """Return the value of a key; for a feature that is off, None.

        Raises AttributeError for a key that this model was not assembled with.
        """
        return cast("V", getattr(self, key.name))

    @cached_property
    def _enabled(self) -> tuple[tuple[ConfigKey[Any], Any], ...]:
        """The keys of features that are on, each with the mapping below it."""
        keys = (key for key in self.KEYS if isinstance(key, ConfigKey))
        return tuple((key, section) for key in keys if (section := self.of(key)) is not None)

    @cached_property
    def features(self) -> frozenset[str]:
        """Return the keys of the features that are on."""
        return frozenset(key.name for key, _ in self._enabled)

    @property
    def timers(self) -> dict[str, Schedule]:
        """Return the schedules of the repository's timers by their names."""
        return {
            key.timer: schedule
            for key, section in self._enabled
            if key.timer and (schedule := section.schedule) is not None
        }

    @cached_property
    def own_contexts(self) -> frozenset[str]:
        """Return the contexts of the statuses that the bot sets in the repository."""
        return frozenset(context for _, context in self._declared(lambda key: key.contexts))

    @cached_property
    def own_branches(self) -> frozenset[str]:
        """Return the branches that the bot pushes to."""
        return frozenset(branch for _, branch in self._declared(lambda key: key.branches))

    @cached_property
    def tested_branches(self) -> tuple[str, ...]:
        """Return the branches whose commits labs test, unless the settings of the labs name others."""
        return tuple(branch for _, branch in self._declared(lambda key: key.tested_branches))

    @cached_property
    def jenkins(self) -> tuple[JenkinsServer, ...]:
        """Return the Jenkins servers whose jobs the bot may start."""
        return tuple(server for _, server in self._declared(lambda key: key.jenkins))

    def places(self) -> Iterator[tuple[str, Place]]:
        """Yield the channels that messages go to, each with the name of the feature's key."""
        return self._declared(lambda key: key.places)

    def warnings(self) -> Iterator[tuple[str, str]]:
        """Yield valid settings that are probably a mistake: the feature's key, and a text with `{place}` in it."""
        return self._declared(lambda key: key.warn)

    def _declared(
        self, declaration: Callable[[ConfigKey[Any]], Callable[[Any], Iterable[V]] | None]
    ) -> Iterator[tuple[str, V]]:
        """Yield what the features that are on declare of one kind, each with the name of the feature's key."""
        for key, section in self._enabled:
            declared = declaration(key)
            if declared is not None:
                yield from ((key.name, item) for item in declared(section))

    def required(self) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
        """Yield the patterns of contexts that features wait for, with the feature's key and the one below it."""
        for key, section in self._enabled:
            if key.requires:
                yield (key.name, key.requires), getattr(section, key.requires)

    def allowed(self, feature: str) -> tuple[Role, ...] | None:
        """Return who may use a feature; None if its key restricts nobody, or if it is off."""
        found = (getattr(section, key.allow) for key, section in self._enabled if key.name == feature and key.allow)
        return next(found, None)


class Config(Keys):
    """What app.yaml says; `defaults` is already merged into each of `repositories`.

    Iterate `repositories` for the repositories that the bot works in, those included that are known to match a pattern.
    Read `configured.entries` for the settings that app.yaml contains, whatever repositories have them.
    """

    mentions: tuple[Mention, ...] = Field(
        default=("@ci", "/ci"),
        min_length=1,
        description=(
            "Names that address the bot, as in `@ci help` or `/ci help`. Case doesn't matter. Answers use the name "
            "that the person used; statuses use the first one. GitHub notifies the owner of a mentioned login, and "
            "`@ci` is somebody's login: put `/ci` first, or the login of your own machine account."
        ),
        examples=[["/ci", "@hubot"]],
    )
    public_url: WebAddress | None = Field(
        default=None,
        description="Public address of this server, for links in comments and statuses.",
        examples=["https://ci.example.org"],
    )
    operators: tuple[Operator, ...] = Field(
        default=(),
        max_length=100,
        description=(
            "Who can see `/operate` after signing in, and replay deliveries: IDs of people, logins, and teams of "
            "an organization with a repository below `repositories`. Prefer IDs and teams: a login may change "
            "hands."
        ),
        examples=[["583231", "@octo-org/compiler"]],
    )
    commands: Annotated[Commands, Section(switch=False)] = Field(
        default=Commands(),
        description="Limits on commands per hour.",
        examples=[{"per_person": 30, "per_pull_request": 60}],
    )
    http: Annotated[Http, Section(switch=False)] = Field(
        default=Http(), description="Limits for anonymous HTTP clients.", examples=[{"megabytes_in_flight": 64}]
    )
    log: Annotated[Log, Section(switch=False)] = LOG
    defaults: Annotated[RepositoryConfig, Section(switch=False)] = Field(
        default=RepositoryConfig(),
        description="Keys for all repositories. A repository's own keys override them one by one.",
    )
    repositories: Mapping[RepositoryEntry, Annotated[RepositoryConfig, Section(switch=False)]] = Field(
        min_length=1,
        description=(
            "The repositories in which the bot works. It ignores all others. `OWNER/*` and `OWNER/PREFIX*` stand for "
            "the owner's repositories on which the App is installed."
        ),
        examples=[{"octocat/compiler": {}}],
    )

    @field_validator("repositories")
    @classmethod
    def _agree_with_the_program(
        cls, repositories: Mapping[str, RepositoryConfig], info: ValidationInfo
    ) -> ConfiguredRepositories[RepositoryConfig]:
        """Raise what the first key of a repository raises that contradicts a key of the program."""
        for repository in repositories.values():
            for key in repository.KEYS:
                if key.check_app is not None:
                    key.check_app(repository.of(key), info.data)
        return ConfiguredRepositories(repositories)

    @cached_property
    def configured(self) -> ConfiguredRepositories[RepositoryConfig]:
        """Return `repositories` with the methods that its type has beyond those of a mapping."""
        return cast("ConfiguredRepositories[RepositoryConfig]", self.repositories)

    def repository(self, full_name: str) -> RepositoryConfig | None:
        """Return the settings of `owner/name`, in any case of letters.

        None if app.yaml does not name it and it is not known to match a pattern.
        """
        return self.configured.settings_of(full_name)
