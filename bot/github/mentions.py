"""`cc @octocat, @hubot and @example-lab/reviewers`: the people and teams that a text asks to look. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.github.markdown import outside_code, visible_lines

_CC = re.compile(r"(?:^|(?<=[ (\[,;.:\u2013\u2014*-]))/?cc(?: ?: ?| )(?=@)", re.IGNORECASE)
_SEPARATOR = re.compile(r"(?: ?[,;&+] ?(?:and )?| and | )(?=@)", re.IGNORECASE)
_LOGIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?"
_NAME = re.compile(
    rf"""@(?P<name>{_LOGIN}(?:_[A-Za-z0-9]{{3,8}})?)  # _shortcode: accounts that an enterprise manages
         (?:/(?P<team>[A-Za-z0-9][\w-]*))?
         (?![\w@/-] | \.\w | \[bot\])""",
    re.VERBOSE | re.ASCII,
)
_ANY_NAME = re.compile(r"@[^\s,;&+]*")
_MENTION = re.compile(rf"(?<![\w@/.+-]){_NAME.pattern}", re.VERBOSE | re.ASCII)
_LONGEST_LOGIN = 39


@dataclass(frozen=True, slots=True)
class Ccs:
    """Logins, and teams as `org/team`, each once, as first spelled and in the order of the text."""

    users: tuple[str, ...]
    teams: tuple[str, ...]


def parse_ccs(body: str | None) -> Ccs:
    """Return whom a text copies in.

    `cc` is a word of its own in any case, with or without a colon, anywhere in a line (`Fixes a crash, cc @octocat`)
    and also as `/cc`; the names follow it in the same line, parted by spaces, commas or "and". Only what a person says
    counts: no code, quotes, HTML comments, links or struck-out text (`visible_lines`). A name that cannot be an
    account is passed over whole, not cut down to one that can; so are bots, which review nothing.

    Rules for logins: https://docs.github.com/en/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication
    """
    users: list[str] = []
    teams: list[str] = []
    for line in visible_lines(body or ""):
        text = " ".join(line.text.split())
        for cc in _CC.finditer(text):
            _read_names(text, cc.end(), users, teams)
    return Ccs(_each_once(users), _each_once(teams))


def mentioned(text: str, owner: str) -> tuple[str, ...]:
    """Return whom GitHub tells of a text, each once, as first spelled: people, and teams of the repository's `owner`.

    Those in code, in HTML comments and in links are not, nor are e-mail addresses and names such as `@T.prim_func`.
    Those in quotes are, and so are those after a backslash: GitHub looks for names in the finished page.
    """
    found = (match for match in _MENTION.finditer(outside_code(text)) if len(match["name"]) <= _LONGEST_LOGIN)
    return _each_once(m[0][1:] for m in found if not m["team"] or m["name"].lower() == owner.lower())


def login_or_team(written: str) -> str | None:
    """Return the login, or `org/team`, that `@octocat` names, None for what can name nobody."""
    match = _NAME.fullmatch(written)
    return match[0][1:] if match and len(match["name"]) <= _LONGEST_LOGIN else None


def _read_names(text: str, start: int, users: list[str], teams: list[str]) -> None:
    position: int | None = start
    while position is not None:
        match = _NAME.match(text, position)
        if match and len(match["name"]) <= _LONGEST_LOGIN:
            (teams if match["team"] else users).append(match[0][1:])
        passed = match or _ANY_NAME.match(text, position)
        separator = _SEPARATOR.match(text, passed.end()) if passed else None
        position = separator.end() if separator else None


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.lower(), name)
    return tuple(first.values())
