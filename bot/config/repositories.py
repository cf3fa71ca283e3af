"""The repositories of app.yaml: those that it names, and those that match one of its patterns.

A pattern such as `octo-org/*` names repositories that nobody can list when app.yaml is read. So the bot adds each
repository when it becomes known: when GitHub says that the App is installed on it (`bot.github.repositories.known`).
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey, RepositoryKey

V = TypeVar("V")
K = TypeVar("K", bound=Keys)


class HasKeys(Protocol):
    """The settings of a repository."""

    def of(self, key: RepositoryKey[V]) -> V:
        """Return the value of a key."""


S = TypeVar("S", bound=HasKeys)

STAR = "*"
"""The last character of a pattern; it stands for any characters, or none."""


def is_pattern(entry: str) -> bool:
    """Return whether an entry of `repositories` is a pattern, as opposed to the name of a repository."""
    return entry.endswith(STAR)


def matches_entry(entry: str, name: str) -> bool:
    """Return whether an entry of `repositories` applies to a name or to another pattern, in any case of letters.

    A pattern names its owner in full, so it never applies to a repository of another owner.
    """
    lower_entry, lower_name = entry.lower(), name.lower()
    return lower_name.startswith(lower_entry[:-1]) if is_pattern(entry) else lower_name == lower_entry


def owner_of(entry: str) -> str:
    """Return the owner of a repository or of a pattern, in lower case."""
    return entry.partition("/")[0].lower()


@dataclass(frozen=True, slots=True)
class _Member:
    """A repository: its name, the entry whose settings it has, and its ID if the entry is a pattern."""

    name: str
    entry: str
    id: int = 0
    listed: bool = True


class ConfiguredRepositories(Mapping[str, S], Generic[S]):
    """The settings of the repositories in which the bot works, by their names.

    Iteration works on a copy: repositories may become known meanwhile. `entries` has the keys below `repositories` as
    app.yaml has them, patterns too, each with the settings that a repository gets from it.
    """

    def __init__(self, entries: Mapping[str, S]) -> None:
        self.entries = dict(entries)
        self._members = {entry.lower(): _Member(entry, entry) for entry in entries if not is_pattern(entry)}
        # The order in which a name looks for its pattern: the longest one applies.
        longest_first = sorted(filter(is_pattern, entries), key=len, reverse=True)
        self._patterns: dict[str, list[tuple[str, str]]] = {}
        """By owner, each with the beginning of the names that it matches in lower case: 100,000 may be looked up."""
        for pattern in longest_first:
            beginning = pattern.lower().removesuffix(STAR)
            self._patterns.setdefault(owner_of(pattern), []).append((beginning, pattern))
        self._names_of: dict[str, dict[str, None]] = {pattern: {} for pattern in filter(is_pattern, entries)}
        self._lower_names: dict[int, str] = {}
        self.generation = 0
        """A number that changes whenever repositories become known, are renamed or are forgotten."""

    @property
    def named(self) -> list[str]:
        """Return the repositories that app.yaml names itself."""
        return [entry for entry in self.entries if not is_pattern(entry)]

    @property
    def owners(self) -> frozenset[str]:
        """Return the owners of all patterns, in lower case."""
        return frozenset(self._patterns)

    def __getitem__(self, name: str) -> S:
        """Return the settings of a repository by its name, in this case of letters. Raises KeyError."""
        member = self._members.get(name.lower())
        if member is None or member.name != name or not member.listed:
            raise KeyError(name)
        return self.entries[member.entry]

    def __iter__(self) -> Iterator[str]:
        """Return the names: those of app.yaml in its order, then the known ones of each pattern."""
        return iter(self._settings_by_name())

    def __len__(self) -> int:
        """Return the number of repositories."""
        return len(self.named) + sum(map(len, self._names_of.values()))

    def items(self) -> ItemsView[str, S]:
        """Return the names with their settings."""
        return self._settings_by_name().items()

    def values(self) -> ValuesView[S]:
        """Return the settings of each repository. For what is the same in all of a pattern, read `entries`."""
        return self._settings_by_name().values()

    def _settings_by_name(self) -> dict[str, S]:
        settings = {entry: self.entries[entry] for entry in self.named}
        for pattern, names in self._names_of.items():
            settings |= dict.fromkeys(names, self.entries[pattern])
        return settings

    def with_feature(self, key: ConfigKey[K]) -> Iterator[tuple[str, K]]:
        """Yield the repositories in which a feature is on, each with the value of the feature's key."""
        for entry, settings in self.entries.items():
            value = settings.of(key)
            if value is not None:
                for name in list(self._names_of[entry]) if is_pattern(entry) else [entry]:
                    yield name, value

    def name_of(self, full_name: str) -> str | None:
        """Return a repository's name as `repositories` has it, for `owner/name` in any case; None if it has none."""
        member = self._members.get(full_name.lower())
        return member.name if member is not None else None

    def canonical_name(self, full_name: str) -> str:
        """Return a repository's name as `repositories` has it, because bucket keys and stored results use that name.

        GitHub returns canonical names, and accepts any letter case. A name that app.yaml does not have stays as it is.
        """
        return self.name_of(full_name) or full_name

    def name_and_settings(self, full_name: str) -> tuple[str, S] | None:
        """Return a repository's name as `repositories` has it, and its settings, for `owner/name` in any case.

        None if it has none.
        """
        member = self._members.get(full_name.lower())
        return (member.name, self.entries[member.entry]) if member is not None else None

    def settings_of(self, full_name: str) -> S | None:
        """Return the settings of a repository that app.yaml names or that is known, in any case of letters."""
        member = self._members.get(full_name.lower())
        return self.entries[member.entry] if member is not None else None

    def names(self, full_name: str) -> bool:
        """Return whether app.yaml names a repository itself, in any case of letters."""
        member = self._members.get(full_name.lower())
        return member is not None and not is_pattern(member.entry)

    def entry_for(self, full_name: str) -> str | None:
        """Return the entry that applies to a repository of this name if the App is installed on it.

        Its own name wins, then the longest pattern. None if app.yaml has no entry for it.
        """
        lower_name = full_name.lower()
        member = self._members.get(lower_name)
        if member is not None and not is_pattern(member.entry):
            return member.entry
        for beginning, pattern in self._patterns.get(owner_of(lower_name), ()):
            if lower_name.startswith(beginning):
                return pattern
        return None

    def settings_if_installed(self, full_name: str) -> S | None:
        """Return the settings that a repository has if the App is installed on it: for commands without a database."""
        entry = self.entry_for(full_name)
        return self.entries[entry] if entry is not None else None

    def know(self, repository_id: int, name: str, *, listed: bool = True) -> bool:
        """Add a repository on which the App is installed, or change its name; return whether an entry applies to it.

        Only one that matches a pattern is added. One that is not `listed` keeps its settings for jobs that wait, but
        iteration leaves it out.
        """
        entry = self.entry_for(name)
        if entry is None or not is_pattern(entry):
            self.forget(repository_id)
            return entry is not None
        member, other = _Member(name, entry, repository_id, listed), self._members.get(name.lower())
        if member == other:
            return True
        self.forget(repository_id)
        self.generation += 1
        if other is not None:
            self.forget(other.id)
        self._members[name.lower()] = member
        self._lower_names[repository_id] = name.lower()
        if listed:
            self._names_of[entry][name] = None
        return True

    def forget(self, repository_id: int) -> None:
        """Remove a repository that matched a pattern, if it is known."""
        lower_name = self._lower_names.pop(repository_id, None)
        if lower_name is not None:
            self.generation += 1
            member = self._members.pop(lower_name)
            self._names_of[member.entry].pop(member.name, None)

    def forget_all(self) -> None:
        """Remove all repositories that match patterns."""
        for repository_id in list(self._lower_names):
            self.forget(repository_id)
