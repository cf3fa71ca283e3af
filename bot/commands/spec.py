"""The declaration of a command, which the parser, `@ci help`, the docs and the permission check use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.commands import texts
from bot.core.errors import DeclarationError
from bot.core.nearest import likeness
from bot.core.patterns import normalized

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.types import Role
    from bot.plan.handler import Context

AUTHOR_OR_TRIAGE: tuple[Role, ...] = ("author", "triage")
_RANKS = ("triage", "write", "maintain", "admin")
"""The roles from least to most access; each includes those before it."""

_LIKE_ENOUGH = 0.7
_COMPARED = 60
"""Characters of a text to compare; the cost is quadratic."""
_START_ONLY = 0.9
"""Factor for the similarity to the first words of a text alone; similarity to the whole text counts in full."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a command: none, one of `choices`, or names; `names` is the word for them in help: `NAME…`.

    With `sentence`, the names are the words of a sentence: the same word may come twice, and there may be more of them.
    """

    choices: tuple[str, ...] = ()
    names: str = ""
    sentence: bool = False

    @property
    def usage(self) -> str:
        """Write the arguments as help shows them, as in `[failed | all | NAME…]`."""
        return f"[{' | '.join([*self.choices, *([self.names] if self.names else [])])}]"


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """The declaration of a command.

    `synonyms` are other names of the command, with the same arguments; `phrases` are whole lines that mean the
    command without arguments. `feature` is the key of app.yaml that enables the command. `allowed` says who may run it
    unless app.yaml overrides that; with `fixed`, app.yaml cannot. `summary` is one sentence; `example` is the text
    after the mention.
    """

    name: str
    summary: str
    example: str
    feature: str
    allowed: tuple[Role, ...] = AUTHOR_OR_TRIAGE
    synonyms: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    arguments: Arguments | None = None
    fixed: bool = False
    own_words: bool = True
    """Whether the command counts only in the person's own comment.

    An edit of somebody else's comment may only uncover what its author wrote. False for commands that change nothing
    for others.
    """
    offered: Callable[[RepositoryConfig], bool] | None = None
    """Whether help shows the command in a repository where its feature is on; None: always."""
    allows_person: Callable[[RepositoryConfig, int], bool] | None = None
    """Says whether a person without these roles may run it in a repository, by the ID of the person; None: nobody."""
    details: Callable[[Context], Awaitable[str]] | None = None
    """Returns Markdown for `@ci help` about the current state, which follows the summary."""

    def who(self, override: Sequence[Role] | None = None) -> Sequence[Role]:
        """Return the roles that may run this; `override` is what app.yaml allows for its feature."""
        return self.allowed if override is None or self.fixed else override

    @property
    def usage(self) -> str:
        """Write the command with its arguments, as in `rerun [failed | all]`."""
        return f"{self.name} {self.arguments.usage}" if self.arguments else self.name

    def allows(self, *, role: str, is_author: bool, override: Sequence[Role] | None = None) -> bool:
        """Return whether a person may run this; `role` is theirs in the repository, `override` what app.yaml allows."""
        allowed = self.who(override)
        if is_author and "author" in allowed:
            return True
        least = min((_RANKS.index(name) for name in allowed if name in _RANKS), default=len(_RANKS))
        return role in _RANKS and _RANKS.index(role) >= least


@dataclass(frozen=True, slots=True)
class Match:
    """A command at the start of some words, and the number of its words."""

    spec: CommandSpec
    words: int


class CommandRegistry:
    """All commands. Raises DeclarationError if two commands share a name or a phrase."""

    def __init__(self, specs: Iterable[CommandSpec]) -> None:
        self._specs: dict[str, CommandSpec] = {}
        self._commands: dict[tuple[str, ...], CommandSpec] = {}
        self._phrases: dict[tuple[str, ...], CommandSpec] = {}
        for spec in specs:
            self._specs[spec.name] = spec
            for name in (spec.name, *spec.synonyms):
                self._add(self._commands, name, spec)
            for phrase in spec.phrases:
                self._add(self._phrases, phrase, spec)
        self._longest = max((len(key) for key in self._commands), default=0)

    def _add(self, table: dict[tuple[str, ...], CommandSpec], phrasing: str, spec: CommandSpec) -> None:
        key = tuple(folded(phrasing).split())
        taken = self._commands.get(key) or self._phrases.get(key)
        if taken or not key:
            text = texts.COMMAND_TWICE if taken else texts.COMMAND_EMPTY
            raise DeclarationError(text.format(phrasing=phrasing, name=spec.name, taken=taken.name if taken else ""))
        table[key] = spec

    def __iter__(self) -> Iterator[CommandSpec]:
        return iter(self._specs.values())

    def __getitem__(self, name: str) -> CommandSpec:
        return self._specs[name]

    def enabled(self, features: Collection[str]) -> list[CommandSpec]:
        """Return the commands whose feature is switched on."""
        return [spec for spec in self if spec.feature in features]

    def match(self, words: Sequence[str]) -> Match | None:
        """Find the command at the start of folded words: a phrase that equals all of them, else the longest name."""
        if phrase := self._phrases.get(tuple(words)):
            return Match(phrase, len(words))
        for length in range(min(len(words), self._longest), 0, -1):
            if spec := self._commands.get(tuple(words[:length])):
                return Match(spec, length)
        return None

    def nearest(self, text: str) -> str | None:
        """Return the command most similar to the text, as people should write it; None if none is similar."""
        words = folded(text[:_COMPARED]).split()
        scored = [(likeness_of_words(" ".join(words), phrasing), meant) for phrasing, meant in self._phrasings()]
        for key, spec in self._commands.items():
            start = likeness_of_words(" ".join(words[: len(key)]), " ".join(key))
            scored.append((_START_ONLY * start, spec.name))
        score, meant = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
        return meant if score >= _LIKE_ENOUGH else None

    def _phrasings(self) -> Iterator[tuple[str, str]]:
        """Yield every text that can be a whole line, with the command that it means as people should write it."""
        for key, spec in (self._commands | self._phrases).items():
            yield " ".join(key), spec.name
            for choice in spec.arguments.choices if spec.arguments and key in self._commands else ():
                yield f"{' '.join(key)} {choice}", f"{spec.name} {choice}"


def folded(text: str) -> str:
    """Return text as commands compare it: upper and lower case, wide and narrow letters are the same."""
    return normalized("NFKC", text).casefold()


def likeness_of_words(first: str, second: str) -> float:
    """Return the similarity of two texts, from 0 to 1; spaces and hyphens do not count."""
    return likeness(_squeezed(first), _squeezed(second))


def _squeezed(text: str) -> str:
    return text.replace(" ", "").replace("-", "").replace("_", "")
