"""The work of each reader of text from outside is linear: twice the text takes twice the work, whatever the text is.

The texts are those that made a reader slow, here or elsewhere, and those that nearly match what a reader searches for.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nightjar_formats.readers import values
from nightjar_formats.readers.pytest import phases as pytest_phases

from bot.ci.addresses import parse_build
from bot.commands import grammar as commands
from bot.commands.spec import CommandRegistry
from bot.config.types import matches
from bot.core import terminal, titles, urls
from bot.core.errors import UserError
from bot.core.events import Person
from bot.core.patterns import normalized
from bot.core.redaction import Redactor
from bot.github.text import commit_message as merge_message
from bot.github.text import markdown, mentions, sticky
from bot.github.text.earlier_mail import earlier_mail
from bot.github.text.skip_directives import without_directives
from bot.news.message import News, NewsItem
from bot.news.render import as_discord, as_slack
from bot.results.report.findings import _last_frame
from handlers.docker_update import images as docker_images
from handlers.rerun import commands as rerun
from handlers.skip_ci import decide as skips
from handlers.teams import topics as teams
from tests.steps import assert_linear

REGISTRY = CommandRegistry([rerun.RERUN])
AUTHOR = Person(5, "octocat", False)
SECRETS = Redactor(["hunter22"])
JENKINS = "https://ci.example.org"
SIZE = 150
"""Characters of the shorter text; a few hundred are enough to show quadratic work."""

Reader = Callable[[str], object]


def parsed(text: str) -> object:
    return commands.parse(text, registry=REGISTRY, mentions=["@ci"])


def edited(text: str) -> object:
    return commands.new_commands(f"@ci rerun\n{text}", text, registry=REGISTRY, mentions=["@ci"])


def merged(text: str) -> object:
    commits = [merge_message.AuthoredCommit(1, text[:100], "octocat@example.com", text)]
    return merge_message.message(text, ["- [ ] a\n\n# b\n"], commits, AUTHOR)


def images(text: str) -> object:
    with_section = f"[jenkins]\n{text[: docker_images.LONGEST_LINE]}\n"
    try:
        return docker_images.read_images(with_section), docker_images._replace_values(with_section, {"a": "b"})
    except UserError as error:
        return error


def channel_messages(text: str) -> object:
    news = News(title=text, items=tuple(NewsItem(text[start : start + 50], text, "") for start in range(0, 200, 50)))
    return as_discord(news), as_slack(news)


MARKUP = ("`", "`` `a", "\\`", "<!--", "![", "*a ", "|a\n|-\n", "<a ")
BLOCKS = (">", "> a\n", "- ", "- a\n", "1. ", "> - ", "a\n", "a\n=\n", "\t", "```\n", "<details>\n\n")
SPANS = ("[", "[a](", "[a][", "[a]: b\n", "<!-- -", "<a b='", "` x", "**x", "~~a", "&", "\\")
NESTED = ("> ", "- ", "> - ", "1. > ", "- <details>\n", "> ```\n- `", "- > <!-- `", "> - @ci rerun\n  > ")
NAMES = ("@", "@a ", "@a/", "@a-", "cc @a, ", "cc ", "cc: @", "cc @a and ", "@a, ", "cc @a_", ",", "[a]: @b\n- ")
SPACES = (" ", "\r\n", " x")
MARKS = ("\u0301\u0323", "\ud800", "\x00", "\u200b")
READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "visible lines": (markdown.visible_lines, (*MARKUP, *SPACES, *BLOCKS, *SPANS)),
    "outside of code": (markdown.outside_code, MARKUP),
    "escape": (markdown.escape, (*MARKUP, *SPACES, *MARKS, ":a", ":", "www.", "gh-1", "#1")),
    "code": (markdown.code, ("`", "|", *SPACES)),
    "fenced": (markdown.fenced, ("`", *SPACES, *MARKS)),
    "copied in": (mentions.parse_ccs, NAMES),
    "mentioned": (lambda text: mentions.mentioned(text, "example-lab"), NAMES),
    "commands": (
        parsed,
        ("@ci ", "@ci rerun\n", '@ci rerun "', "@ci rerun “", "@ci rerun a ", *MARKS, *MARKUP, *NESTED),
    ),
    "commands of an edit": (edited, ("@ci ", "@ci rerun\n", "@ci rerun a\n", *NESTED)),
    "teams": (teams.listed_topics, ("- a: @b\n", "- a, ", "- a: @b, ", "- @")),
    "tags": (titles.tags_of, ("[", "[a", "[a]", "[a,")),
    "a tag": (lambda text: skips.has_tag(text, "skip ci"), ("[", "[a", "[skip ci", "[skip ci]")),
    "message of a merge": (
        merged,
        (*MARKUP, *SPACES, "@a", "http://a@", "a: b\n", "Co-authored-by: a <a@b>\n", "Co-authored-by:", "- [ ] a\n"),
    ),
    "co-author": (lambda text: merged(f"Co-authored-by:{text}x"), SPACES),
    "title of a merge": (lambda text: merge_message.title(text, 7), (*MARKUP, "@a")),
    "sections": (
        sticky.sections_of,
        (
            "<!-- nightjar:section:a -->\n",
            "\n<!-- nightjar:end:a -->",
            "<!-- nightjar:section:a -->\n\n<!-- nightjar:end:a -->",
        ),
    ),
    "a section": (lambda text: sticky.with_section({}, "a", text), ("<!--", "<!-- ", "\r", "<!-- nightjar:")),
    "images": (images, ("a", "a ", " ", "=", "a = b\n", "a = %(b)s", "a=%", "[a]\n", "\n ")),
    "secrets": (
        SECRETS.text,
        (
            "sig=",
            "&sig=a",
            "%26sig%3D",
            "%3A%2F%2Fa%3A",
            "%3A%2F%2Fa%3Ab%40",
            "%25",
            "://a:",
            "://a:b@",
            "token ",
            "eyJaaaaaa.",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----",
            "hunter",
        ),
    ),
    "a cell of a table": (
        lambda text: terminal.table(("A", "B"), [("a", text)], width=80),
        (*MARKS, "a", "日", "\x1b"),
    ),
    "links": (urls.linkable, ("http://a.", "a.", "%", "é")),
    "channels": (channel_messages, (*MARKUP, *MARKS, "discord", "<@1>", "1.")),
    "a failure's text": (values.text, ("\r", "\x1b[", "\x1b[1", "\x1b[1m", *MARKS)),
    "a message": (values.message, (*SPACES, *MARKS)),
    "a skip's reason": (pytest_phases.reason_of_skip, ("(", "(', 1, '", "', 1, '", "', 1, 'a') ")),
    "a traceback's place": (
        lambda text: _last_frame(text, "t/p.py"),
        ("(t/p.py:1", "t/p.py:1 ", "(t/", "t/p.py", "a/"),
    ),
    "a link to a build": (
        lambda text: parse_build(f"{JENKINS}{text}", (JENKINS,)),
        ("/job/a", "/view/a", "/view/a/job/a", "/7", "/", "/job/%2e", "/job/%252e%252e", "%25", "?", ":", "@"),
    ),
    "directives to skip CI": (
        without_directives,
        ("[skip ci]", "[skip ", "[", "[ci ", "***no_ci", "skip-checks:", "\nskip-checks: true", *SPACES),
    ),
    "nested directives to skip CI": (lambda text: without_directives(f"{text}{'ci]' * text.count('[')}"), ("[skip ",)),
    "the head of an earlier mail": (
        earlier_mail,
        (
            "on ",
            "on 1 wrote ",
            "on 1 wrote\n",
            "-",
            "***@",
            "a\n",
            "\r",
            "a:\n",
            "1:\n",
            "from: ",
            "from: a\n",
            "- original ",
        ),
    ),
    "patterns of names": (lambda text: matches([f"{text[:200]}*b"], text), ("*a", "a*", "?", "[a]", "a")),
    "names in one form": (lambda text: normalized("NFC", text), ("\u0301\u0323", "a\u0301", "é")),
}


@pytest.mark.parametrize(
    ("reader", "piece"), [(name, piece) for name, (_, pieces) in READERS.items() for piece in pieces]
)
def test_each_reader_of_text_is_linear(reader: str, piece: str) -> None:
    read_text = READERS[reader][0]

    def make(size: int) -> Callable[[], object]:
        text = piece * (size // len(piece) + 1)
        return lambda: read_text(text)

    assert_linear(make, SIZE)


@pytest.mark.parametrize("piece", ["a\n", "a a\n", "- a\n\n", "- [ ] a\n\n", "```\na\n```\n"])
def test_removing_a_template_from_an_almost_identical_text_is_linear(piece: str) -> None:
    def make(count: int) -> Callable[[], object]:
        lines = merge_message._lines(piece * count)
        units = list(merge_message._units(merge_message._lines(piece * count + "z")))
        units += [(["a", "a", str(number)], False) for number in range(count)]
        return lambda: merge_message._without_units(lines, units)

    assert_linear(make, 60)
