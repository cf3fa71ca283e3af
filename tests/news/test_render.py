"""News in three places: people read the message, and nothing in it notifies, links or exceeds a limit by itself."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.text.markdown import TEXT_LIMIT
from bot.news.message import News, NewsItem
from bot.news.render import GREEN, MOST_ITEMS, RED, as_discord, as_markdown, as_slack
from sandbox.channel_rules import discord_faults, discord_text, slack_faults, slack_text
from tests.gfm import Page, rendered

URL = "https://ci.example.org/job/gpu/7?a=1&copy=2"
NEWS = News(
    "main: 2 checks fail at 0a1b2c3",
    (NewsItem("gpu/branch", "failure after 3 minutes", URL), NewsItem("__init__[*]")),
    more=3,
    url="https://github.example/octocat/compiler/commit/0a1b2c3",
    notes=("The lab's contacts: @example-lab-ci",),
)
SAID = """\
❌ main: 2 checks fail at 0a1b2c3 (details)
- gpu/branch: failure after 3 minutes (details)
- __init__[*]
- and 3 more
The lab's contacts: @example-lab-ci"""


def test_discord_and_slack_show_the_same() -> None:
    assert discord_text(as_discord(NEWS)) == SAID
    assert slack_text(as_slack(NEWS)) == SAID


def test_on_github_names_are_code_and_links_lead_to_their_targets() -> None:
    assert as_markdown(NEWS) == (
        "❌ **main: 2 checks fail at 0a1b2c3** "
        "([details](<https://github.example/octocat/compiler/commit/0a1b2c3>))\n\n"
        "- `gpu/branch`: failure after 3 minutes "
        "([details](<https://ci.example.org/job/gpu/7?a=1&amp;copy=2>))\n"
        "- `__init__[*]`\n"
        "- and 3 more\n\n"
        "The lab's contacts: @&#8203;example-lab-ci"
    )
    page = Page(rendered(as_markdown(NEWS)))
    assert page.links == {NEWS.url, URL}


def test_good_news_looks_good() -> None:
    news = News("main has recovered", good=True)
    assert as_markdown(news) == "✅ **main has recovered**"
    assert as_discord(news)["content"] == "✅ **main has recovered**"
    assert as_slack(news)["text"] == "✅ main has recovered"
    with_item = News("well", (NewsItem("gpu"),), good=True)
    assert as_discord(with_item)["embeds"][0]["color"] == GREEN
    assert as_discord(NEWS)["embeds"][0]["color"] == RED


@pytest.mark.parametrize(
    ("text", "discord", "slack", "markdown"),
    [
        ("@everyone", "@\u200beveryone", "@\u200beveryone", "@&#8203;everyone"),
        ("<@81384788765712384>", "\\<@\u200b81384788765712384\\>", None, "&lt;@&#8203;81384788765712384&gt;"),
        ("<!channel>", "\\<!channel\\>", "<\u200b!channel>", "&lt;!channel&gt;"),
        ("<https://x.example|a & b>", None, "<\u200bhttps:\u200b//x.example|a & b>", None),
        ("[a](https://x.example)", "\\[a\\](https:\u200b//x.example)", None, None),
        ("discord.gg/abc", "discord\u200b.gg/abc", None, None),
        ("# a", "\\# a", "# a", "\\# a"),
        ("1. a", "1\u200b. a", "1. a", "1\\. a"),
        ("||a|| ~~b~~", "\\|\\|a\\|\\| \\~\\~b\\~\\~", "||a|| ~~b~~", None),
        ("a\n> b", "a \\> b", "a > b", "a &gt; b"),
    ],
)
def test_text_from_outside_is_shown_and_has_no_effect(
    text: str, discord: str | None, slack: str | None, markdown: str | None
) -> None:
    news = News("title", notes=(text,))
    if discord is not None:
        assert as_discord(news)["embeds"][0]["description"] == discord
    if slack is not None:
        assert slack_texts(as_slack(news))[-1] == slack
    if markdown is not None:
        assert as_markdown(news).rpartition("\n\n")[2] == markdown


def test_the_line_for_slacks_notifications_is_escaped_by_its_own_rule() -> None:
    assert as_slack(News("a & b <!channel>"))["text"] == "❌ a &amp; b &lt;\u200b!channel&gt;"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://ci.example.org/x",
        "//ci.example.org",
        "https://octocat:sesame@ci.example.org",
        "https://github.com@ci.example.org",
        "https://",
        "not an address",
        f"https://ci.example.org/{'x' * 800}",
    ],
)
def test_an_invalid_web_address_is_not_linked(url: str) -> None:
    news = News("title", (NewsItem("gpu", "fails", url),), url=url)
    assert "](" not in as_markdown(news)
    assert "](" not in json.dumps(as_discord(news))
    assert '"link"' not in json.dumps(as_slack(news))


def test_an_address_cannot_break_the_markup_around_it() -> None:
    news = News("title", url="https://ci.example.org/a b)>|<x>(\n\"'[y]")
    safe = "https://ci.example.org/a%20b%29%3E%7C%3Cx%3E%28%0A%22'%5By%5D"
    assert as_markdown(news) == f"❌ **title** ([details](<{safe}>))"
    assert as_discord(news)["content"] == f"❌ **title** ([details](<{safe}>))"
    assert slack_links(as_slack(news)) == [safe]


def test_many_items_are_truncated_and_counted() -> None:
    news = News("title", tuple(NewsItem(f"check {number}") for number in range(100)), more=7)
    for text in (discord_text(as_discord(news)), slack_text(as_slack(news)), as_markdown(news)):
        assert text.splitlines()[-1] == "- and 87 more"
        assert text.count("check") == MOST_ITEMS


def test_long_items_that_do_not_fit_are_truncated_and_counted() -> None:
    news = News(
        "t" * 900, tuple(NewsItem("n" * 900, "*" * 900, URL) for _ in range(MOST_ITEMS)), notes=("_" * 900,) * 9
    )
    shown_counts = {}
    for place, text in (("discord", discord_text(as_discord(news))), ("slack", slack_text(as_slack(news)))):
        left_out = re.search(r"^- and (\d+) more$", text, re.MULTILINE)
        assert left_out is not None
        shown_counts[place] = text.count("nnn…")
        assert shown_counts[place] + int(left_out[1]) == MOST_ITEMS
        assert text.count("___…") >= 1
    assert min(shown_counts.values()) >= 1
    assert as_markdown(news).count("nnn…") == MOST_ITEMS


def test_empty_lines_are_left_out() -> None:
    news = News("title", (NewsItem("", ""), NewsItem("\x00", "\u202e"), NewsItem("", "fails")), notes=("", "\n"))
    assert discord_text(as_discord(news)) == slack_text(as_slack(news)) == "❌ title\n- fails"


PIECES = [
    "@everyone",
    "@here",
    "@octocat",
    "<@81384788765712384>",
    "<@&5>",
    "<#7>",
    "<@U024BE7LH>",
    "<!channel>",
    "<!here|here>",
    "<!subteam^S1>",
    "<#C024BE7LR>",
    "</x:1>",
    "<t:1>",
    "<a:b:1>",
    "https://x.example",
    "<https://x.example>",
    "<https://x.example|y>",
    "[y](https://x.example)",
    "](https://x.example)",
    "steam://x",
    "www.x.example",
    "discord.gg/x",
    "hubot@x.example",
    "octocat/compiler#1",
    "#1",
    "```",
    "`",
    "**",
    "__",
    "||",
    "~~",
    "*",
    "_",
    "[",
    "](",
    ")",
    "<",
    ">",
    "\\",
    "&lt;",
    "&",
    "\n",
    "\n> ",
    "\n# ",
    "- ",
    "<!--",
    "-->",
    ":tada:",
    "\x00",
    "\u202e",
    "\ud800",
    "😀",
    " ",
    "a",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(max_size=20) | st.just("😀*@" * 400)
URLS = st.one_of(st.just(""), st.just(URL), TEXTS, TEXTS.map("https://ci.example.org/".__add__))
ITEMS = st.lists(st.builds(NewsItem, TEXTS, TEXTS, URLS), max_size=30).map(tuple)
NOTES = st.lists(TEXTS, max_size=6).map(tuple)
ALL_NEWS = st.builds(News, TEXTS, ITEMS, st.integers(0, 10**6), URLS, NOTES, st.booleans())


def slack_elements(value: Any) -> list[dict[str, Any]]:
    """Return the innermost elements of a message's blocks."""
    if "elements" not in value and "blocks" not in value:
        return [value]
    return [inner for element in value.get("elements", value.get("blocks")) for inner in slack_elements(element)]


def slack_texts(body: dict[str, Any]) -> list[str]:
    return [element["text"] for element in slack_elements(body) if element["type"] == "text"]


def slack_links(body: dict[str, Any]) -> list[str]:
    return [element["url"] for element in slack_elements(body) if element["type"] == "link"]


DISCORD_MARKUP = re.compile(
    r"""\\[^0-9A-Za-z\s]                                   # an escape: it does nothing
    | \[(?P<label>[^\[\]]*)\]\(<(?P<link>[^<>\s]*)>\)      # a link
    | (?P<mention>@everyone|@here|<[@#:/atid][^>\s]*>)     # a mention, a command, an emoji, a time
    | (?P<bare>(?:https?|steam)://\S | discord(?:app)?\.(?:gg|com)/\S)
    | (?P<code>`) | (?P<spoiler>\|\|) | (?P<strike>~~)""",
    re.VERBOSE,
)
OUR_LINK = re.compile(r"https?://[-\w.:]+(?:[/?#][-\w.~%/:?#@!$&'*+,;=]*)?")


def discord_acts(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the links of a message, and everything else in it with an effect."""
    links, acts = [], []
    for text in [body["content"], *(embed["description"] for embed in body["embeds"])]:
        for match in DISCORD_MARKUP.finditer(text):
            if match["link"] is not None:
                links.append(match["link"])
                acts += [match["label"]] if match["label"] != "details" else []
            else:
                acts += [name for name, value in match.groupdict().items() if value is not None]
    return links, acts


@settings(max_examples=150, deadline=None)
@given(ALL_NEWS)
def test_text_from_outside_has_no_effect_in_discord(news: News) -> None:
    body = as_discord(news)
    assert discord_faults(json.loads(json.dumps(body, ensure_ascii=False).encode())) == []
    links, acts = discord_acts(body)
    assert acts == []
    assert all(OUR_LINK.fullmatch(link) for link in links), links
    assert len(links) <= sum(bool(url) for url in (news.url, *(item.url for item in news.items)))


@settings(max_examples=150, deadline=None)
@given(ALL_NEWS)
def test_text_from_outside_has_no_effect_in_slack(news: News) -> None:
    body = as_slack(news)
    assert slack_faults(json.loads(json.dumps(body, ensure_ascii=False).encode())) == []
    assert all(OUR_LINK.fullmatch(link) for link in slack_links(body))
    for text in [body["text"], *slack_texts(body)]:
        # Slack does not parse these in rich text.
        assert re.search(r"<[@!#a-zA-Z]|@\w|://|\bwww\.", text) is None


@settings(max_examples=150, deadline=None)
@given(ALL_NEWS)
def test_text_from_outside_has_no_effect_on_github(news: News) -> None:
    markdown = as_markdown(news)
    assert len(markdown.encode("utf-16-le")) // 2 <= TEXT_LIMIT - 500
    page = Page(rendered(markdown, raw_html=True))
    assert page.tags <= {"p", "ul", "li", "strong", "code", "a"}, markdown
    assert all(OUR_LINK.fullmatch(link) for link in page.links), page.links
    assert re.search(r"@\w|#\d|\bGH-\d|://|www\.|:\w+:", page.speech, re.IGNORECASE) is None, page.speech


DISCORD: dict[str, Any] = {
    "content": "❌ **main: 2 checks fail at 0a1b2c3** ([details](<https://github.example/octocat/compiler/commit/0a1b2c3>))",
    "embeds": [
        {
            "description": (
                "- **gpu/branch**: failure after 3 minutes ([details](<https://ci.example.org/job/gpu/7?a=1&copy=2>))\n"
                "- **\\_\\_init\\_\\_\\[\\*\\]**\n- and 3 more\n\nThe lab's contacts: @\u200bexample-lab-ci"
            ),
            "color": 13706287,
        }
    ],
    "allowed_mentions": {"parse": []},
}
SLACK: dict[str, Any] = {
    "text": "❌ main: 2 checks fail at 0a1b2c3",
    "blocks": [
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_section",
                    "elements": [
                        {"type": "text", "text": "❌ main: 2 checks fail at 0a1b2c3", "style": {"bold": True}},
                        {"type": "text", "text": " ("},
                        {
                            "type": "link",
                            "url": "https://github.example/octocat/compiler/commit/0a1b2c3",
                            "text": "details",
                        },
                        {"type": "text", "text": ")"},
                    ],
                }
            ],
        },
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_list",
                    "style": "bullet",
                    "elements": [
                        {
                            "type": "rich_text_section",
                            "elements": [
                                {"type": "text", "text": "gpu/branch", "style": {"bold": True}},
                                {"type": "text", "text": ": failure after 3 minutes"},
                                {"type": "text", "text": " ("},
                                {
                                    "type": "link",
                                    "url": "https://ci.example.org/job/gpu/7?a=1&copy=2",
                                    "text": "details",
                                },
                                {"type": "text", "text": ")"},
                            ],
                        },
                        {
                            "type": "rich_text_section",
                            "elements": [{"type": "text", "text": "__init__[*]", "style": {"bold": True}}],
                        },
                        {"type": "rich_text_section", "elements": [{"type": "text", "text": "and 3 more"}]},
                    ],
                },
                {
                    "type": "rich_text_section",
                    "elements": [{"type": "text", "text": "The lab's contacts: @\u200bexample-lab-ci"}],
                },
            ],
        },
    ],
    "unfurl_links": False,
    "unfurl_media": False,
}


def test_the_whole_messages_that_discord_and_slack_get() -> None:
    assert as_discord(NEWS) == DISCORD
    assert as_slack(NEWS) == SLACK
