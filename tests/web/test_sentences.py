"""Sentences of the bot on pages: their code and emphasis is shown, and any text in them stays text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.text.markdown import code
from bot.web.page_filters import sentence
from tests.results.test_report_safe import PIECES

TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8).map("".join)
NO_MARKS = str.maketrans("", "", "`* ")
PERMISSION = "GitHub denied this: the App needs *Actions: write*."


class Read(HTMLParser):
    """What people read, and the elements in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements = list[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element, which has no attributes."""
        assert attrs == []
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.text += data


@pytest.mark.parametrize(
    ("written", "html"),
    [
        (PERMISSION, "GitHub denied this: the App needs <em>Actions: write</em>."),
        ("`TOKEN` needs *Job/Read*: no", "<code>TOKEN</code> needs <em>Job/Read</em>: no"),
        ("**Reviewers:** none", "<strong>Reviewers:</strong> none"),
        ("restarted ``a`b``", "restarted <code>a`b</code>"),
        ("named `` `x` ``", "named <code>`x`</code>"),
        ("2 * 3 * 4, *, ** and `", "2 * 3 * 4, *, ** and `"),
        ("x/*Foo*/y and a*B*c", "x/*Foo*/y and a*B*c"),
        ("__init__ *all* [it](javascript:x) <b>", "__init__ *all* [it](javascript:x) &lt;b&gt;"),
    ],
)
def test_code_and_emphasis_are_shown_and_no_other_markdown(written: str, html: str) -> None:
    assert str(sentence(written)).replace("<wbr>", "") == html


@given(TEXT)
def test_any_text_in_a_sentence_stays_text(text: str) -> None:
    page = Read(str(sentence(text)))
    assert set(page.elements) <= {"code", "em", "strong", "wbr"}
    # Nothing is lost but marks, and the spaces between code and them.
    assert page.text.translate(NO_MARKS) == text.translate(NO_MARKS)


@given(TEXT)
def test_a_text_that_the_bot_quotes_is_shown_as_it_is(text: str) -> None:
    line = text.replace("|", "")
    page = Read(str(sentence(f"GitHub refused this: {code(line)}. {PERMISSION}")))
    assert page.elements.count("em") == 1
    if code(line).startswith("`"):
        assert code(line).strip("` ") == page.text.partition(": ")[2].rpartition(". GitHub")[0].strip("` ")
