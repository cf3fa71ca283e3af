"""What people recognize a commit by, as its message says it."""

from __future__ import annotations

import pytest

from bot.results.ingest.commit_summaries import LONGEST_AUTHOR, LONGEST_TITLE, commit_summary
from bot.results.state import CommitSummary
from bot.results.store.store import ResultsStore
from bot.results.store.tables.commits import summaries_of
from tests.handlers.dashboard.nightly_runs import NIGHTLY_RUNS, REPOSITORY, TITLE, fill, sha


@pytest.mark.parametrize(
    ("message", "pull_request", "expected"),
    [
        ("Fuse softmax\n\nIt is faster.", None, ("Fuse softmax", None)),
        ("Fuse softmax (#42)\n\nIt closes (#7)", None, ("Fuse softmax", 42)),
        ("(#42)", None, ("(#42)", 42)),
        ("Merge pull request #42 from hubot/fuse\n\nFuse softmax\n", None, ("Fuse softmax", 42)),
        ("Merge pull request #42 from hubot/fuse", None, ("Merge pull request #42 from hubot/fuse", 42)),
        ("Fuse softmax (#42)", 43, ("Fuse softmax", 43)),
        ("\n \nFuse (#4 2) \r\nmore", None, ("Fuse (#4 2)", None)),
        ("", None, ("", None)),
        ("x" * 100_000, None, ("x" * LONGEST_TITLE, None)),
    ],
)
def test_a_message_has_a_title_and_perhaps_a_number(
    message: str, pull_request: int | None, expected: tuple[str, int | None]
) -> None:
    summary = commit_summary(message, " Mona Lisa" + "a" * 1000, pull_request)
    assert (summary.title, summary.pull_request) == expected
    assert summary.author.startswith("Mona Lisa")
    assert len(summary.author) == LONGEST_AUTHOR


def test_a_tested_commit_is_stored_once(store: ResultsStore) -> None:
    fill(store)
    fill(store)
    known = store.read(summaries_of, REPOSITORY, map(sha, range(NIGHTLY_RUNS)))
    assert known == {sha(NIGHTLY_RUNS - 1): CommitSummary(TITLE, "Mona Lisa", 41)}
