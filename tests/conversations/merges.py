"""A town where comments merge pull requests, and the bot's visible answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sandbox import PullRequest
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

CONFIG = """
repositories:
  octocat/compiler:
    merge: {%s}
"""
KEYS = 'required: ["*/pr-head"]'
CPU = "cpu/pr-head"
UNAPPROVED = "has no approval by someone with write access other than the author."
BODY = "Saves a pass.\n\ncc @octocat"


@asynccontextmanager
async def merge_town(database_url: str, keys: str = KEYS, also: str = "", **options: Any) -> AsyncIterator[Town]:
    """Start a town where `@ci merge` is on; `keys` are added below `merge`, `also` to the repository."""
    async with start_town(database_url, config=CONFIG % keys + also, **options) as town:
        yield town


def report(town: Town, pull: PullRequest, state: str = "success", context: str = CPU) -> None:
    """Let CI report on the head, with a link."""
    town.repo.set_status("octocat", pull.head_sha, context, state, target_url="https://ci.example.org/job/1")


def approve(pull: PullRequest, by: str = "octocat") -> None:
    """Let somebody approve the head."""
    pull.review(by, "Looks good.", "APPROVED")


def ready(town: Town, author: str = "hubot", **values: Any) -> PullRequest:
    """Open a pull request whose checks passed and that is approved."""
    pull = town.repo.open_pull_request(author, "Faster", BODY, **values)
    report(town, pull)
    approve(pull)
    return pull


async def says(town: Town, pull: PullRequest, text: str, by: str = "octocat") -> str:
    """Let somebody comment; return the bot's reactions and its answer, without the link at the top."""
    # GitHub's times are in full seconds: a comment in the same second as a push would count as older than it.
    town.github.clock.advance(seconds=1)
    comment = pull.comment(by, text)
    await town.quiet()
    replies = [answer.split("\n\n", 1)[-1] for answer in town.answers(pull) if f"issuecomment-{comment.id})" in answer]
    return "\n".join([" ".join(pull.reactions(comment)), *replies])


def short(pull: PullRequest) -> str:
    """Return the head SHA as answers abbreviate it."""
    return f"`{pull.head_sha[:7]}`"


def message(town: Town) -> str:
    """Return the message of the newest commit on the base branch."""
    return town.repo.git.commits[town.repo.branch("main")].message
