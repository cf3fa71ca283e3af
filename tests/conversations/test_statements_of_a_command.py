"""A command runs few statements: each is a round trip to PostgreSQL, and each write a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.conversations.town import CONFIG, town
from tests.conversations.traced_statements import in_lines, traced_statements, without_frames

WRITES = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b")
COMMANDS = ("@ci help", "@ci run slow tests")
MOST_STATEMENTS = {"sqlite": 45, "postgresql": 16}
"""With the delivery of the bot's own comment. A delivery is stored by one statement on PostgreSQL, and by up to five on
SQLite, where a statement is not a round trip."""
MOST_COMMITS = 12
"""Of SQLite: the delivery, one fetch, an end for each of five jobs, and what is stored before and after writes."""
MOST_LONE_READS = 4
"""Of SQLite: the tallies of commands, the switch of the slow tests, and what is stored about the repository: once by
the delivery's job, and up to twice by the prefilter. The other jobs get that from the transaction that begins them."""
JOBS = 5
"""The delivery with its plan, two effects, the conclusion and its effect."""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that both drivers have run, in their order."""
    return traced_statements(monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_runs_few_statements(database_url: str, statements: list[str], command: str) -> None:
    async with town(database_url, config=CONFIG) as here:
        pull = here.repo.open_pull_request("octocat")
        # The first command also reads what is remembered afterwards.
        for _ in range(2):
            await here.quiet()
            statements.clear()
            comment = pull.comment("hubot", command)
            await here.quiet()
        assert pull.reactions(comment) == ["eyes", "+1"]
        kind = database_url.partition(":")[0]
        texts = in_lines(statements, database_url)
        if kind == "sqlite":
            assert commits_of(texts) <= MOST_COMMITS
            assert lone_reads_of(texts) <= MOST_LONE_READS
        counted = without_frames(texts)
        assert 10 < len(counted) <= MOST_STATEMENTS[kind], "\n".join(counted)
        records = await here.bot.engine.journal.recent()
        assert [len(record.jobs) for record in records if record.plans][:1] == [JOBS]


def lone_reads_of(texts: Iterable[str]) -> int:
    """Return how many transactions of SQLite read records and wrote nothing."""
    lone_reads, has_read, has_written = 0, False, False
    for text in texts:
        has_read |= "nightjar_records" in text
        has_written |= WRITES.search(text) is not None
        if text == "COMMIT":
            lone_reads, has_read, has_written = lone_reads + (has_read and not has_written), False, False
    return lone_reads


def commits_of(texts: Iterable[str]) -> int:
    """Return how many transactions of SQLite wrote something."""
    commits, has_written = 0, False
    for text in texts:
        if text == "COMMIT":
            commits, has_written = commits + has_written, False
        elif WRITES.search(text):
            has_written = True
    return commits
