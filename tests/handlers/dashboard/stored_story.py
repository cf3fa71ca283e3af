"""The bot's recorded actions for two pull requests, in the engine's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bot.commands.conclusion import CommandResults, Item
from bot.core.events import Person, Repository, pull_lock
from bot.core.utc import iso_utc
from bot.effects.section_state import SECTION, SectionState
from bot.engine.jobs import notes
from bot.engine.jobs.definitions import Origin, delivery_job, effect_jobs, plan_job
from bot.engine.jobs.inbox import store_delivery
from bot.engine.jobs.notes import Note, write_note
from bot.engine.jobs.once import NewJob
from bot.engine.jobs.store import Store
from bot.engine.processor import PlannedEffect, PlannedEffects
from bot.engine.service import Engine
from bot.engine.sql.transactions import Connector
from bot.github.pull_heads import HEAD, PullHead
from handlers.merge.records import MERGE_REQUEST, MergeRequest, PendingMerge
from tests.handlers.dashboard.nightly_runs import NOW, REPOSITORY, sha

NUMBER, HOSTILE = 42, 43
SECRET = "ghp_" + "a1B2" * 9
ENDED = "UPDATE procrastinate_jobs SET status = %(status)s, attempts = 1 WHERE id = %(id)s"
HOSTILE_TEXT = "<script>alert(1)</script> [x](javascript:alert(1)) \"&' \u202e"


class StoryWriter:
    """Writes the deliveries and actions of one pull request directly to the tables."""

    def __init__(self, connector: Connector, repository_id: int, number: int) -> None:
        self._connector = connector
        self._store = Store(self._connector)
        self._repository = Repository(repository_id, REPOSITORY, 1)
        self._number, self._at, self._count = number, NOW - 3600.0, 0

    async def delivery(
        self,
        event: str,
        action: str,
        *plans: tuple[str, str, Sequence[tuple[PlannedEffect, Note]]],
        outcome: str = "",
        results: CommandResults | None = None,
        lock: str = "",
        guid: str = "",
    ) -> None:
        """Write a delivery with what each handler planned, why, and how each effect ended.

        `results` are those of the handler `commands`. The lock is that of the pull request unless another is given.
        """
        self._count += 1
        self._at += 60
        guid = guid or f"0b989ba4-242f-11e5-81e1-{self._number:06}{self._count:06}"
        lock = lock or pull_lock(self._repository.id, self._number)
        arguments = {"action": action, "repository": REPOSITORY, "number": self._number}
        job = delivery_job(guid, event, self._at, lock)
        text = "no handler accepts it" if outcome == notes.IGNORED else ""
        await store_delivery(self._connector, job, b'{"comment": {"body": "a comment of somebody else"}}')
        number = await self._ended(job, Note(outcome or notes.ROUTED, text, about=arguments))
        for handler, reason, effects in plans:
            origin = Origin(guid, handler, f"{guid}:{handler}", number, self._at, 0, lock)
            plan = await self._ended(plan_job(origin), Note(notes.PLANNED, reason))
            basis = {"basis": asdict(results), "rank": 0} if results and handler == "commands" else None
            planned = PlannedEffects(tuple(effect for effect, _ in effects), reason, basis)
            concluded = [Note(notes.CONCLUDED, "all effects were applied")] if basis else []
            jobs = effect_jobs(origin, plan, self._repository, planned)
            for job, note in zip(jobs, [*(note for _, note in effects), *concluded], strict=True):
                await self._ended(job, note)

    async def _ended(self, job: NewJob, note: Note) -> int:
        (deferred,) = await self._store.defer([job])
        status = "failed" if note.outcome == notes.FAILED else "succeeded"
        await self._connector.execute_query_async(ENDED, status=status, id=deferred.job_id)
        await write_note(self._connector, deferred.job_id, note)
        return deferred.job_id


def effect(kind: str, target: str, **fields: Any) -> PlannedEffect:
    """Return an effect as a plan stores it."""
    members: Mapping[str, Any] = {"kind": kind, **fields}
    return PlannedEffect(target, members)


def applied(text: str, page: str) -> Note:
    """Return the outcome of an effect that links a page on GitHub."""
    return Note(notes.APPLIED, text, about={"page": page})


def _results(*items: Item) -> CommandResults:
    url = f"https://github.com/{REPOSITORY}/pull/{NUMBER}#issuecomment-1"
    return CommandResults("issue_comment", 1, "", NUMBER, url, iso_utc(NOW), items, by="hubot")


async def fill_story(engine: Engine, repository_id: int) -> None:
    """Write the stories of two pull requests: an ordinary one, and one with hostile texts."""
    connector = engine.database.connector
    writer = StoryWriter(connector, repository_id, NUMBER)
    status = effect("SetStatus", "status", sha=sha(13), description="on: hubot asked for slow tests", state="success")
    await writer.delivery(
        "pull_request",
        "opened",
        (
            "slow-tests",
            "the title has no slow tests",
            [(status, applied("ci/slow-tests: on: hubot asked for slow tests", f"commit/{sha(13)}/checks"))],
        ),
    )
    await writer.delivery("pull_request", "labeled", outcome=notes.IGNORED)
    reply = effect("Reply", "reply:1", text="I merge it when `cpu/pr-head` is green.", number=NUMBER)
    react = effect("React", "reaction:eyes", content="eyes")
    await writer.delivery(
        "issue_comment",
        "created",
        ("commands", "merge, asked for by hubot", [(react, Note(notes.APPLIED, "reacted with eyes"))]),
        ("merge", "waits for cpu/pr-head", [(reply, applied("answered", f"pull/{NUMBER}#issuecomment-7"))]),
        results=_results(Item("`@ci merge when green`", "I'll merge it once `cpu/pr-head` is green.", done=True)),
    )
    rerun = effect("RestartRun", "run:7", sha=sha(13))
    secret = Note(notes.FAILED, f"HTTPError: https://internal.example.org answered 500: {SECRET}", "")
    denied = Note(notes.FAILED, "403", "GitHub denied this: the App needs *Actions: write*.", is_user_error=True)
    await writer.delivery("issue_comment", "created", ("rerun", "rerun", [(rerun, denied)]))
    await writer.delivery("pull_request", "synchronize", ("lint", "two findings", [(rerun, secret)]))
    head = PullHead(sha(13), {sha(13): ""}, "", "main", 1, True, iso_utc(NOW))
    await engine.records.put(HEAD.of(repository_id, NUMBER), head)
    await engine.records.put(SECTION.of(repository_id, NUMBER, "runtime"), SectionState(sha(12), NOW - 900, "a digest"))
    await engine.records.put(SECTION.of(repository_id, NUMBER, "skipped-tests"), SectionState(sha(13), NOW - 900, ""))
    comment_url = f"https://github.com/{REPOSITORY}/pull/{NUMBER}#issuecomment-1"
    pending = PendingMerge(sha(13), "main", Person(2, "hubot", False), comment_url, iso_utc(NOW - 1800))
    await engine.records.put(MERGE_REQUEST.of(repository_id, NUMBER), MergeRequest(pending))
    hostile = StoryWriter(connector, repository_id, HOSTILE)
    hostile_reply = effect("Reply", HOSTILE_TEXT, text=f"{HOSTILE_TEXT} {SECRET} configured-secret", number=HOSTILE)
    await hostile.delivery(
        "issue_comment",
        HOSTILE_TEXT,
        (HOSTILE_TEXT, HOSTILE_TEXT, [(hostile_reply, applied(HOSTILE_TEXT, "javascript:alert(1)//pull/1"))]),
    )
