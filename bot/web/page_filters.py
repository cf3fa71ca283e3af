"""How pages write numbers, moments, names and problems: the filters of all templates. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from nightjar_formats.strict_json import read_json

from bot.core.listing import counted
from bot.core.page_paths import commit_path, query, segment
from bot.core.patterns import Pattern
from bot.web.answers import answer_text

if TYPE_CHECKING:
    from bot.results.state import CommitSummary

MINUTE, HOUR, DAY = 60, 3600, 86400
SHORT_SHA = 7
LARGEST_PLAIN = 1e15
"""Whole numbers from here on are written with an exponent."""
LONGEST_TEXT = 20_000
"""Characters of one text from outside on a page."""


def read_problem(body: object) -> dict[str, Any]:
    """Return the members of problem details."""
    loaded: dict[str, Any] = read_json(body if isinstance(body, bytes) else b"{}")
    return loaded


def number(value: float) -> str:
    """Write a whole number with separators: 12,345."""
    return f"{value:,.0f}"


def plain(value: float) -> str:
    """Write a number as it was measured, with separators: 412.7, 1,600,123, 4e-07."""
    return f"{value:,.0f}" if value.is_integer() and abs(value) < LARGEST_PLAIN else f"{value:,.10g}"


def short(sha: str) -> str:
    """Shorten a SHA."""
    return sha[:SHORT_SHA]


def short_html(sha: str) -> str:
    """Shorten a SHA, and escape it."""
    shortened = short(sha)
    # A page has hundreds, and `escape` takes longer than all the rest of a link.
    return shortened if shortened.isalnum() else str(escape(shortened))


@lru_cache(4096)
def moment(seconds: float | datetime) -> Markup:
    """Write a time, in seconds since 1970 or as a datetime, with its machine-readable form."""
    time = seconds if isinstance(seconds, datetime) else datetime.fromtimestamp(seconds, UTC)
    at = time.astimezone(UTC)
    text = f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M}&nbsp;UTC</time>'
    return Markup(text)  # noqa: S704 (only digits were added)


def day(seconds: float | datetime) -> str:
    """Write the day of a time: 11-23."""
    time = seconds if isinstance(seconds, datetime) else datetime.fromtimestamp(seconds, UTC)
    return f"{time.astimezone(UTC):%m-%d}"


def date(seconds: float | datetime) -> str:
    """Write the day of a time with its year: 2026-11-23."""
    time = seconds if isinstance(seconds, datetime) else datetime.fromtimestamp(seconds, UTC)
    return f"{time.astimezone(UTC):%Y-%m-%d}"


def age(seconds: float) -> str:
    """Write how long something lasts, in its largest unit: 40 s, 5 min, 36 h, 12 days."""
    if seconds < MINUTE:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.0f} h"
    return f"{seconds / DAY:,.0f} days"


def duration(seconds: float | None) -> str:
    """Write how long a test took: 12 ms, 1.2 s, 3 min 20 s."""
    if seconds is None:
        return "\N{EN DASH}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds // MINUTE:.0f} min {seconds % MINUTE:.0f} s"


def clipped(text: str, most: int = LONGEST_TEXT) -> str:
    """Shorten a text from outside."""
    return text if len(text) <= most else f"{text[:most]}…"


def breakable(text: str) -> Markup:
    """Allow line breaks after the separators of a long name. Browsers break it nowhere by themselves."""
    escaped = str(escape(text))
    for separator in ("::", "/", "."):
        escaped = escaped.replace(separator, f"{separator}<wbr>")
    return Markup(escaped)  # noqa: S704 (escaped above; only constants were added)


def commit_link(sha: str, repository: str, summaries: Mapping[str, CommitSummary], address: str = "") -> Markup:
    """Link a commit, by default to its page, with its title, author and pull request where `summaries` has them."""
    href, title = escape(address or commit_path(repository, sha)), ""
    if sha in summaries:
        title = f' title="{escape(commit_words(summaries[sha]))}"'
    return Markup(f'<a class="mono" href="{href}"{title}>{short_html(sha)}</a>')  # noqa: S704 (escaped)


def commit_words(summary: CommitSummary) -> str:
    """Write the title, the author and the pull request of a commit, as far as they are known."""
    words = clipped(summary.title, 200)
    if summary.author:
        words += f"{', ' if summary.title else ''}by {clipped(summary.author, 100)}"
    return f"{words} (#{summary.pull_request})" if summary.pull_request else words


def sentence(text: str) -> Markup:
    """Show a sentence of the bot: code between back-ticks, `*Settings*` as emphasis, and long names with breaks.

    Everything else is shown unchanged, because a sentence may quote an error or a lab: no other Markdown has an effect.
    """
    html, position = Markup(""), 0
    for fence in _FENCE.finditer(text):
        end = text.find(fence[0], fence.end())
        if fence.start() < position or end < 0:
            continue
        html += _emphasized(text[position : fence.start()])
        html += Markup("<code>{}</code>").format(breakable(_without_padding(text[fence.end() : end])))
        position = end + len(fence[0])
    return html + _emphasized(text[position:])


_FENCE = Pattern("`+")
_EMPHASIS = Pattern(r"(\*{1,2})([A-Z][A-Za-z]*(?:[ /:]{1,2}[A-Za-z]+)*:?)(\*{1,2})")


def _without_padding(text: str) -> str:
    """Return inline code without the spaces between back-ticks in it and those around it: `` `x` `` is `x`."""
    return text[1:-1] if text.startswith(" ") and text.endswith(" ") and text.strip() else text


def _emphasized(text: str) -> Markup:
    html, position = Markup(""), 0
    for match in _EMPHASIS.finditer(text):
        neighbors = text[max(0, match.start() - 1) : match.start()] + text[match.end() : match.end() + 1]
        if match[1] == match[3] and not any(character.isalnum() or character in "*/" for character in neighbors):
            element = Markup("<strong>{}</strong>") if len(match[1]) > 1 else Markup("<em>{}</em>")
            html += breakable(text[position : match.start()]) + element.format(match[2])
            position = match.end()
    return html + breakable(text[position:])


FILTERS: dict[str, Callable[..., object]] = {
    "number": number,
    "plain": plain,
    "counted": counted,
    "short": short,
    "moment": moment,
    "date": date,
    "day": day,
    "age": age,
    "duration": duration,
    "segment": segment,
    "query": query,
    "clipped": clipped,
    "breakable": breakable,
    "commit_link": commit_link,
    "commit_words": commit_words,
    "sentence": sentence,
    "answer_text": answer_text,
}
