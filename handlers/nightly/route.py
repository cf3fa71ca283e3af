"""`GET /api/v1/repos/{owner}/{repo}/nightly`: the commit that labs test, and why it is not a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from bot.results.service import ResultsService
from bot.results.state import CommitSummary
from bot.results.store.tables.commits import summaries_of
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Operation
from handlers.nightly.answer import nightly_answer, nightly_steps
from handlers.tracking_branches import route as tracking
from handlers.tracking_branches.records import MOST_MOVES, TrackingRecord


class BranchMove(BaseModel, extra="forbid"):
    """A move of the branch. What is not known is null."""

    sha: tracking.Sha | None = Field(description="The branch's commit after the move; null if the branch was removed.")
    previous_sha: tracking.Sha | None = Field(description="The branch's commit before the move.")
    moved_at: datetime | None = Field(description="When the bot moved the branch; null if somebody else did.")
    found_at: datetime = Field(description="When a scan found the branch there.")
    commits: int | None = Field(description="Commits between the two.")
    why: str = Field(description="Why the branch moved there and not to a newer commit; empty if that is not stored.")


class NightlyBranch(tracking.TrackedBranch):
    """Where the branch is that labs test: `sha` is the commit to test. What is not known (yet) is null."""

    moves: list[BranchMove] = Field(description="The branch's last moves, newest first, at most 30.")
    answer: list[AnswerPart] = Field(default=[], description="Which commit labs test, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits that labs tested, where they are known."
    )


class NightlyBranches:
    """Reads what the API and the page report about nightly branches."""

    def __init__(self, record: TrackingRecord, results: ResultsService) -> None:
        self._record = record
        self._results = results

    async def __call__(self, repository: str) -> Mapping[str, Any]:
        """Return the members of `NightlyBranch`. Raises LookupError if no branch is configured or was scanned."""
        state, moves = await self._record.of(repository), await self._record.moves(repository)
        shas = {sha for step in (state, *moves) for sha in (step["sha"], step["previous_sha"]) if sha}
        name = self._results.canonical_name(repository)
        summaries = await self._results.read(summaries_of, name, shas)
        return {
            **state,
            "moves": moves,
            "answer": nightly_answer(state, name, summaries),
            "next_steps": nightly_steps(state),
            "known_commits": summaries,
        }


def operation(read: tracking.ReadBranch) -> Operation:
    """Return the route."""
    summary = "The commit that all labs test, its last moves, and why it is not a newer one"
    return tracking.operation("nightly", summary, NightlyBranch, read, table=moves_table, most_csv_rows=MOST_MOVES)


def moves_table(branch: NightlyBranch) -> CsvTable:
    """Return the last moves of the branch as a table."""
    columns = tuple(BranchMove.model_fields)
    return CsvTable.of(columns, branch.moves)
