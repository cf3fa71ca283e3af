"""Text from labs in a report is shown as it is: it mentions, links, formats and breaks nothing.

The oracle is cmark-gfm, the parser that GitHub itself is built on.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.model import Detail, Trouble

from bot.github.check_runs import CheckContent
from bot.results.report.check_run import results_report
from bot.results.report.findings import Findings, IgnoredFailures
from tests.gfm import Page, rendered
from tests.results.reported import BASE, a_run, a_suite, compared, findings

BREAK = "\u200b"
PIECES = [
    "@octocat",
    "@example-lab/gpu",
    "#1",
    "GH-1",
    "octocat/compiler#1",
    "https://example.org",
    "www.example.org",
    "hubot@example.org",
    "<img src=x>",
    "<!--",
    "-->",
    "</code>",
    "</details>",
    "[a](https://example.org)",
    "![a](/b)",
    "```",
    "``",
    "`",
    "|",
    "\\|",
    "\\",
    "\n",
    "\n\n# head\n",
    "\r",
    "\n| a | b |\n|---|---|\n",
    "~~~",
    "*",
    "_",
    "~~",
    ":tada:",
    "$x$",
    "&lt;",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\ud800",
    "\ufffc",
    " ",
    "tests/a.py::test_b",
    "é",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(max_size=20)
OURS = {"p", "h3", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "strong", "em", "ul", "li", "a"}
ACTIVE = re.compile(r"@\w|#\d|\bGH-\d|://|www\.|:\w+:", re.IGNORECASE)


@st.composite
def reports(draw: st.DrawFn) -> Findings:
    """Generate findings with hostile values in everything that a lab controls."""
    text = draw(st.lists(TEXTS, min_size=12, max_size=12))
    tests = {
        f"{text[0]}{number}": Detail(draw(st.sampled_from(Trouble)), text[number], text[number + 3], text[number + 4])
        for number in range(3)
    }
    claims = {"environment": {text[7] or "k": text[8]}, "log_url": text[9], "started_at": text[10]}
    run = a_run(text[1], text[2], reason=text[11], **claims)
    name = text[2] or "x"
    suite = a_suite(tests, name=name, runs=[run], waiting=(run,) if draw(st.booleans()) else ())
    comparison = compared(*tests, fixed=tuple(tests), flaky=tuple(tests), renamed=((text[3], text[4]),))
    unusable_suite = (a_suite(name="codegen"), compared(infra=text[5]))
    ignored = IgnoredFailures(text[6], text[7], "", frozenset({(name, next(iter(tests)))}))
    return findings(
        (suite, comparison),
        *([unusable_suite] if draw(st.booleans()) and name != "codegen" else []),
        files={test.partition("::")[0] for test in tests} | set(text),
        contacts=(text[8] or "x",),
        reproduce="pytest {test} {path} {name} {suite}",
        ignored=ignored if draw(st.booleans()) else None,
    )


def check_harmless(content: CheckContent) -> None:
    for markdown in (content.summary, content.text):
        assert "\ud800" not in markdown
        page = Page(rendered(markdown, raw_html=True))
        assert page.tags <= OURS, markdown
        assert page.links <= {BASE.url}, markdown
        assert ACTIVE.search(page.speech) is None, page.speech
        check_tables(markdown)
    for plain in (content.title, *(f"{a.title}{a.message}" for a in content.annotations)):
        assert re.search(r"@\w|://|[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", plain) is None


def check_tables(markdown: str) -> None:
    """Assert that the rows of every table have as many cells as its header, and that GFM takes them all for rows."""
    fence, rows, expected = "", 0, 0
    for line in markdown.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("text")
        elif line.startswith("|"):
            cells = line.count("|")
            assert cells == (expected or cells), line
            expected = cells
            rows += not line.startswith("| --- ")
        else:
            expected = 0
    assert not fence
    assert rendered(markdown, raw_html=True).count("<tr>") == rows


@pytest.mark.no_cover
@given(reports())
@settings(max_examples=150)
def test_text_from_a_lab_has_no_effect_in_its_report(reported: Findings) -> None:
    check_harmless(results_report(reported))


def test_the_text_of_a_failure_stays_in_its_code_block() -> None:
    text = "```\n</code></pre><img src=x>\n````\n@octocat https://example.org"
    reported = findings((a_suite({"a": Detail(text=text)}), compared("a")))
    content = results_report(reported)
    check_harmless(content)
    assert "@octocat https://example.org\n`````" in content.text
