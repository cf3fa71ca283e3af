"""What the bot says about commands: pure functions that return Markdown.

Text from outside goes in through `code` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from bot.commands.grammar import MOST_SHOWN, BadCommand, Command, CommandSpec, Registry
from bot.github.markdown import code, truncate

if TYPE_CHECKING:
    from bot.config.types import Role

Allowed = Callable[[str], "Sequence[Role] | None"]
"""What app.yaml says of a feature: who may; None: what the command itself declares."""

HELP_INTRODUCTION = "Write a command on a line of its own, in a comment, a review or the description of a pull request."
NOTHING_DONE = "Nothing was done for this line."


def shown(command: Command | BadCommand) -> str:
    """Show a command as it is in an answer: what was asked, in code, so that it calls nobody; a long one shortened."""
    return code(truncate(f"{command.mention} {command.text}", MOST_SHOWN))


def bad_command(bad: BadCommand, help_url: str | None = None) -> str:
    """Say why a line is no command, what was perhaps meant, and where the commands are listed."""
    listed = code(f"{bad.mention} help")
    if help_url:
        listed = f"[{listed}]({help_url})"
    meant = f" Did you mean {code(f'{bad.mention} {bad.nearest}')}?" if bad.nearest else ""
    return f"{bad.reason}{meant} {NOTHING_DONE} {listed} lists the commands."


def not_allowed(spec: CommandSpec, override: Sequence[Role] | None = None) -> str:
    """Say who may run a command, to somebody who may not."""
    return f"Only {who_may(spec.who(override))} may ask for this; one of them can do it here."


def not_own_words(command: Command, author: str) -> str:
    """Say that a command does not count where somebody edits it into a comment that another person wrote."""
    return (
        f"This stands in a comment of {code(author)} that you edited, so nothing was done. "
        f"To ask for it, write {shown(command)} in a comment of your own."
    )


def switched_off(spec: CommandSpec, repository: str) -> str:
    """Say that a command is off in this repository, and who can switch it on."""
    return (
        f"This command is switched off for {code(repository)}. "
        f"A maintainer can switch it on: {code(spec.feature)} in `.github/nightjar.yaml` or `app.yaml`."
    )


def who_may(allowed: Sequence[Role]) -> str:
    """Write roles as people say them; the least one in the repository stands for those above it."""
    people = ["the pull request's author"] if "author" in allowed else []
    ranks = [role for role in ("triage", "write", "maintain", "admin") if role in allowed]
    if ranks:
        higher = "" if ranks[0] == "admin" else " or a higher one"
        people.append(f"people with the {ranks[0]} role{higher}")
    return " and ".join(people) or "nobody"


def help_text(
    registry: Registry,
    features: Collection[str],
    mentions: Sequence[str],
    allowed: Allowed = lambda feature: None,
) -> str:
    """Answer `@ci help`: the commands that are on in this repository, and who may run each here."""
    specs = registry.enabled(features)
    names = f" Each name of mine does: {', '.join(map(code, mentions))}." if len(mentions) > 1 else ""
    return f"{HELP_INTRODUCTION}{names}\n\n{_table(specs, mentions[0], allowed)}"


def commands_table(registry: Registry, mention: str = "@ci") -> str:
    """Write the table of all commands for the README and the docs."""
    return _table(registry, mention, lambda feature: None)


def _table(specs: Iterable[CommandSpec], mention: str, allowed: Allowed) -> str:
    rows = ["| command | what it does | who may | also understood |", "|---|---|---|---|"]
    for spec in specs:
        roles = allowed(spec.feature)
        example = f" Example: {code(f'{mention} {spec.example}')}." if spec.example != spec.name else ""
        also = ", ".join(map(code, (*spec.synonyms, *spec.phrases)))
        who = who_may(spec.who(roles))
        # Our own text, so a bar may be escaped in code: `code` would break the mention, and this is to be copied.
        usage = f"`{mention} {spec.usage}`".replace("|", "\\|")
        rows.append(f"| {usage} | {spec.summary}{example} | {who} | {also} |")
    return "\n".join(rows)
