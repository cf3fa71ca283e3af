"""How pages write commits: escaped, with what is known about them."""

from __future__ import annotations

import pytest

from bot.results.state import CommitSummary
from bot.web.page_filters import commit_link, commit_words, short_html

SHA = "0cc1c13" + "a" * 33
HOSTILE = '"><script>'


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (CommitSummary("Fuse softmax", "octocat", 7), "Fuse softmax, by octocat (#7)"),
        (CommitSummary("Fuse softmax", "", None), "Fuse softmax"),
        (CommitSummary("", "octocat", None), "by octocat"),
        (CommitSummary("t" * 201, "a" * 101, None), f"{'t' * 200}…, by {'a' * 100}…"),
    ],
)
def test_a_commit_is_described_by_what_is_known(summary: CommitSummary, words: str) -> None:
    assert commit_words(summary) == words
    assert commit_link(SHA, "octocat/compiler", {SHA: summary}) == (
        f'<a class="mono" href="/r/octocat/compiler/commits/{SHA}" title="{words}">0cc1c13</a>'
    )


def test_a_link_to_a_commit_escapes_texts_from_outside() -> None:
    link = commit_link(HOSTILE, "octocat/compiler", {HOSTILE: CommitSummary(HOSTILE, HOSTILE, None)}, f"/{HOSTILE}")
    assert "<script" not in link
    assert link.count('"') == 6
    assert short_html("<b>&") == "&lt;b&gt;&amp;"
