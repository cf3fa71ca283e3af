"""The parts that all pages share: frame, avatars, times, badges."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.model.reactions import REACTIONS, Reaction
from sandbox.users import User
from sandbox.views.users import page_name

if TYPE_CHECKING:
    from sandbox.model.home import Home
    from sandbox.model.issues import Issue

NOTICE = "This is not GitHub: it is a sandbox in the memory of one process, and forgets everything when that ends."
STATE_ICONS = {
    "success": ("✓", "good"),
    "failure": ("✗", "bad"),
    "error": ("✗", "bad"),
    "timed_out": ("✗", "bad"),
    "startup_failure": ("✗", "bad"),
    "action_required": ("!", "bad"),
    "cancelled": ("⊘", "calm"),
    "skipped": ("⊘", "calm"),
    "neutral": ("■", "calm"),
    "pending": ("●", "busy"),
    "queued": ("●", "busy"),
    "in_progress": ("●", "busy"),
}


@cache
def _style() -> str:
    return Path(__file__).with_name("style.css").read_text()


def frame(title: str, crumbs: Iterable[tuple[str, str]], content: str) -> str:
    """Return a whole page; `crumbs` are (name, address) from the outermost inwards."""
    trail = " <i>/</i> ".join(f'<a href="{escape(link)}">{escape(name)}</a>' for name, link in crumbs)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_style()}</style></head><body>"
        f'<header><nav><a class="home" href="/">◐ sandbox</a> <i>/</i> {trail}</nav></header>'
        f"<main>{content}</main><footer>{escape(NOTICE)}</footer></body></html>"
    )


def person(account: User, *, avatar: bool = False) -> str:
    """Return a person's name as a link, after their picture with `avatar`."""
    label = '<span class="bot">bot</span>' if account.type == "Bot" else ""
    name = escape(account.login.removesuffix("[bot]"))
    picture = f'<img class="avatar" alt="" src="/avatars/{account.id}">' if avatar else ""
    return f'{picture}<a class="person" href="/{escape(page_name(account))}">{name}</a>{label}'


def choose_person(repository: Home) -> str:
    """Return a list for a form in which somebody is chosen who acts: nobody is logged in here.

    The owner comes first, then people with a role, then strangers.
    """
    users = [user for user in repository.github.users.values() if user.type == "User" and user.login != "github"]
    people = dict.fromkeys([repository.owner, *repository.roles, *users])
    options = "".join(
        f'<option value="{escape(user.login)}">{escape(user.login)} ({repository.role(user)})</option>'
        for user in people
    )
    return f'<label>as <select name="by">{options}</select></label>'


def moment(time: datetime) -> str:
    """Return a time of day, with the full date as its title."""
    return f'<time datetime="{time.isoformat()}" title="{time:%Y-%m-%d %H:%M:%S} UTC">{time:%H:%M:%S}</time>'


def reactions(given_reactions: list[Reaction]) -> str:
    """Return reactions as emoji with counts, and with names on hovering."""
    names: dict[str, list[str]] = {}
    for reaction in given_reactions:
        names.setdefault(reaction.content, []).append(reaction.user.login)
    badges = [
        f'<span class="reaction" title="{escape(", ".join(logins))}">{REACTIONS[content]} {len(logins)}</span>'
        for content, logins in names.items()
    ]
    return f'<div class="reactions">{"".join(badges)}</div>' if badges else ""


def icon(state: str) -> str:
    """Return the mark of a status or conclusion."""
    sign, kind = STATE_ICONS.get(state, ("●", "busy"))
    return f'<span class="icon {kind}" title="{escape(state)}">{sign}</span>'


def state_badge(issue: Issue) -> str:
    """Return the colored word for the state of an issue or pull request."""
    merged = getattr(issue, "merged_at", None) is not None
    draft = issue.state == "open" and getattr(issue, "draft", False)
    word = "Merged" if merged else "Draft" if draft else issue.state.capitalize()
    return f'<span class="state {word.lower()}">{word}</span>'


def picture(account: User) -> str:
    """Return an SVG avatar: the initial on a color of its own."""
    red, green, blue = colorsys.hls_to_rgb((account.id * 0.381966) % 1, 0.45, 0.45)
    color = f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"
    shape = '<rect width="40" height="40" rx="9"' if account.type == "Bot" else '<circle cx="20" cy="20" r="20"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40">{shape} fill="{color}"/>'
        f'<text x="20" y="27" font-family="sans-serif" font-size="20" fill="#fff" text-anchor="middle">'
        f"{escape(account.login[0].upper())}</text></svg>"
    )
