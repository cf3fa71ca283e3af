"""Answers to commands: pure functions that build Markdown from the sentences in `bot.commands.texts`.

They quote text from outside with `code` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from bot.commands import texts
from bot.commands.grammar import MOST_SHOWN, BadCommand, Command, CommandRegistry, CommandSpec
from bot.config.shared import files_for
from bot.github.text.markdown import code, truncate

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.types import Role


def command_as_code(command: Command | BadCommand) -> str:
    """Show a command in an answer, as code, so that it mentions nobody; truncate a long one."""
    return code(truncate(f"{command.mention} {command.text}", MOST_SHOWN))


def bad_command(bad: BadCommand, help_url: str | None = None) -> str:
    """Say why a line is not a command, which command may be meant, and where all commands are listed."""
    listed = code(f"{bad.mention} help")
    if help_url:
        listed = f"[{listed}]({help_url})"
    meant = [texts.DID_YOU_MEAN.format(command=code(f"{bad.mention} {bad.nearest}"))] if bad.nearest else []
    return " ".join([bad.reason, *meant, texts.LISTED.format(command=listed)])


def not_allowed(command: Command, override: Sequence[Role] | None = None) -> str:
    """Say who can use a command, to somebody who can't."""
    allowed = command.spec.who(override)
    access = _access(allowed)
    if "author" in allowed:
        return texts.ONLY_THESE.format(who=who_may(allowed), command=command_as_code(command))
    return texts.NEED_ACCESS.format(access=access, command=command_as_code(command)) if access else texts.NOBODY_MAY


def not_own_words(command: Command, author: str) -> str:
    """Say that a command does not run if somebody edits it into another person's comment."""
    return texts.NOT_OWN_WORDS.format(author=code(author), command=command_as_code(command))


def switched_off(spec: CommandSpec, repository: str, config: RepositoryConfig) -> str:
    """Say that a command is off in this repository, and in which files a maintainer can turn it on."""
    files = files_for(config, spec.feature)
    return texts.SWITCHED_OFF.format(repository=code(repository), key=code(spec.feature), files=files)


def who_may(allowed: Sequence[Role]) -> str:
    """Return the roles in words: `the pull request's author and people with triage access`.

    The lowest role with access stands for those above it.
    """
    people = ["the pull request's author"] if "author" in allowed else []
    if access := _access(allowed):
        people.append(f"people with {access}")
    return " and ".join(people) or "nobody"


def _access(allowed: Sequence[Role]) -> str:
    ranks = [role for role in ("triage", "write", "maintain", "admin") if role in allowed]
    return f"{ranks[0]} access" if ranks else ""


def help_text(
    registry: CommandRegistry, mentions: Sequence[str], config: RepositoryConfig, details: Mapping[str, str]
) -> str:
    """Answer `@ci help`: the commands that work in a repository, and who can use each.

    `details` has the result of `CommandSpec.details` by the command's name.
    """
    specs = offered_commands(registry, config)
    names = ", ".join(map(code, mentions))
    introduction = [texts.HELP_INTRODUCTION, *([texts.ALL_MENTIONS.format(names=names)] if len(mentions) > 1 else [])]
    return f"{' '.join(introduction)}\n\n{_table(specs, mentions[0], config, details)}"


def offered_commands(registry: CommandRegistry, config: RepositoryConfig) -> list[CommandSpec]:
    """Return the commands that help shows for a repository; `config` holds its settings in force."""
    return [spec for spec in registry.enabled(config.features) if spec.offered is None or spec.offered(config)]


def commands_table(registry: CommandRegistry, mention: str = "@ci") -> str:
    """Write the table of all commands for docs/contributors.md."""
    return _table(registry, mention)


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command in a list: `example` is empty if it would only repeat the name."""

    usage: str
    summary: str
    example: str
    who: str
    synonyms: tuple[str, ...]


def command_rows(
    specs: Iterable[CommandSpec], mention: str, config: RepositoryConfig | None = None
) -> list[CommandRow]:
    """Return a row for each command; with the `config` of a repository, the rows name who can use them there."""
    return [
        CommandRow(
            f"{mention} {spec.usage}",
            spec.summary,
            "" if spec.example == spec.name else f"{mention} {spec.example}",
            who_may(spec.who(config.allowed(spec.feature) if config else None)),
            (*spec.synonyms, *spec.phrases),
        )
        for spec in specs
    ]


def _table(
    specs: Iterable[CommandSpec],
    mention: str,
    config: RepositoryConfig | None = None,
    details: Mapping[str, str] = MappingProxyType({}),
) -> str:
    specs = list(specs)
    rows = [f"| {' | '.join(texts.HELP_HEADER)} |", "|---|---|---|---|"]
    for spec, row in zip(specs, command_rows(specs, mention, config), strict=True):
        example = texts.EXAMPLE.format(example=code(row.example)) if row.example else ""
        summary = " ".join(part for part in (row.summary, example, details.get(spec.name)) if part)
        synonyms = ", ".join(map(code, row.synonyms))
        # This is our own text, so we escape a bar in code ourselves: people copy the usage, and `code` would break its
        # mention.
        usage = f"`{row.usage}`".replace("|", "\\|")
        rows.append(f"| {usage} | {summary} | {row.who} | {synonyms} |")
    return "\n".join(rows)
