"""`cc @octocat, @hubot and @example-lab/reviewers`: the people and teams whose review a text requests. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from bot.core.patterns import SPACE, Pattern, PatternMatch
from bot.github.text.markdown import outside_code, visible_lines

_CC = Pattern(r"(?:^|[ (\[,;.:\x{2013}\x{2014}*-])/?cc(?: ?: ?| )@", ignore_case=True)
_LOGIN = "[A-Za-z0-9][A-Za-z0-9-]{0,38}"
"""A login may end with a hyphen: GitHub no longer allows it, but many accounts have such a login."""
_NAME = Pattern(
    rf"@(?P<name>{_LOGIN}(?:_[A-Za-z0-9]{{3,8}})?)"  # _shortcode: accounts that an enterprise manages
    r"(?:/(?P<team>[A-Za-z0-9][\w-]*))?"
)
_RUN = Pattern(r"@[\w/-]*")
"""All characters that may be part of a name: a name is read in full or not at all."""
_GOES_ON = Pattern(r"@|\.\w|\[bot\]")
"""If one of these follows, the name is part of something else, such as an e-mail address or a bot's name."""
_LISTED = Pattern(rf"(?P<name>@[^{SPACE},;&+]*)(?P<separator> ?[,;&+] ?(?:and )?| and | )?", ignore_case=True)
_LONGEST_LOGIN = 39
"""Characters that GitHub allows in a login."""


@dataclass(frozen=True, slots=True)
class Ccs:
    """Logins, and teams as `org/team`, each once: in the letter case and order of their first mention."""

    users: tuple[str, ...]
    teams: tuple[str, ...]


def parse_ccs(body: str | None) -> Ccs:
    """Return the people whose names follow `cc` in a text.

    `cc` is a word of its own in any case, with or without a colon, anywhere in a line (`Fixes a crash, cc @octocat`) or
    as `/cc`; the names follow it on the same line, separated by spaces, commas or "and". Only what a person says
    counts: no code, quotes, HTML comments, links or struck-out text (`visible_lines`). Text in `<details>` counts,
    because GitHub notifies people who are mentioned there. A name that cannot be an account is skipped, not shortened
    to one that can; so are bots, which don't review.

    Rules for logins: https://docs.github.com/en/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication
    """
    users: list[str] = []
    teams: list[str] = []
    for line in visible_lines(body or "", folded_away=True):
        text = " ".join(line.text.split())
        starts = [cc.end() - 1 for cc in _CC.finditer(text)]
        # A list ends at the next `cc` at the latest, so nothing is read twice.
        for start, end in pairwise([*starts, len(text)]):
            _read_names(text[start:end], users, teams)
    return Ccs(_each_once(users), _each_once(teams))


def mentioned(text: str, owner: str) -> tuple[str, ...]:
    """Return the people, and teams of the repository's `owner`, that GitHub notifies about a text.

    Each name comes once, in the letter case of its first mention. GitHub ignores names in code, HTML comments, links
    and e-mail addresses, and names such as `@T.prim_func`. It notifies people who are named in quotes or after a
    backslash, because it searches the rendered page.
    """
    visible_text = outside_code(text)
    runs = (
        run
        for run in _RUN.finditer(visible_text)
        if not _is_inside_word(visible_text[max(0, run.start() - 1) : run.start()])
    )
    matches = filter(None, (_name_of(run[0], visible_text[run.end() : run.end() + len("[bot]")]) for run in runs))
    return _each_once(match[0][1:] for match in matches if not match["team"] or match["name"].lower() == owner.lower())


def login_or_team(written: str) -> str | None:
    """Return the login, or `org/team`, in a text such as `@octocat`; None if it cannot be the name of an account."""
    match = _name_of(written, "")
    return match[0][1:] if match else None


def _read_names(listed: str, users: list[str], teams: list[str]) -> None:
    """Read a list that begins with a name."""
    position = 0
    for listed_name in _LISTED.finditer(listed):
        run = _RUN.match(listed_name["name"])
        if listed_name.start() != position or run is None:
            return
        match = _name_of(run[0], listed_name["name"][run.end() :])
        if match:
            (teams if match["team"] else users).append(match[0][1:])
        if listed_name["separator"] is None or (match and match[0] != listed_name["name"]):
            return
        position = listed_name.end()


def _name_of(run: str, following: str) -> PatternMatch | None:
    """Match an account or team that a run of characters names in full; `following` is the text behind it."""
    match = _NAME.fullmatch(run)
    is_name = match is not None and len(match["name"]) <= _LONGEST_LOGIN and not _GOES_ON.match(following)
    return match if is_name else None


def _is_inside_word(preceding: str) -> bool:
    """Return whether an `@` after this character is inside a word, an address or a path."""
    return preceding != "" and (preceding in "@/.+-_" or (preceding.isascii() and preceding.isalnum()))


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.lower(), name)
    return tuple(first.values())
