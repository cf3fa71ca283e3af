"""What newcomers read."""

from __future__ import annotations

from handlers.welcome.feature import greeting
from tests.gfm import rendered


def test_the_greeting_says_where_the_commands_are() -> None:
    text = greeting("Welcome.", "@ci", None, with_help=True)
    assert text == "\N{WAVING HAND SIGN} Welcome. Comment `@ci help` to see what I can do for you."
    linked = rendered(greeting("Welcome!", "@ci", "https://ci.example.org/help", with_help=True))
    assert '<a href="https://ci.example.org/help"><code>@ci help</code></a>' in linked


def test_without_help_it_only_greets() -> None:
    assert greeting("Welcome", "@ci", None, with_help=False) == "\N{WAVING HAND SIGN} Welcome"


def test_configured_text_is_shown_as_plain_text() -> None:
    page = rendered(greeting("Hello <b>@octocat</b>, see #1 [x](https://example.org)", "@ci", None, with_help=False))
    assert "<b>" not in page
    assert "<a" not in page
