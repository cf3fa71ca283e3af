"""Our record of a pull request's head, whatever order the payloads come in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import PayloadError
from bot.core.events import Delivery, Payload, Repository
from bot.engine.database import Database
from bot.engine.records import Records
from bot.github.pull_heads import MOST_PULLS, confirmed_head, head_of, note_head, pulls_with_head, repository_id_of
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.tables import with_tables

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
    await database.open()
    yield Records(database.connector)
    await database.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


def head_after(
    sha: str,
    second: int,
    replaced_sha: str = "",
    *,
    action: str = "synchronize",
    home: int = 7,
    number: int = 12,
    **members: Any,
) -> Delivery:
    """Return a payload that names a head, `second` seconds after the hour."""
    pull = {
        "number": number,
        "head": {"sha": sha, "ref": "fast", "repo": {"id": home}},
        "base": {"ref": "main", "repo": {"id": 7}},
        "user": {"id": 1, "login": "octocat", "type": "User"},
        "state": "open",
        "updated_at": f"2026-11-20T05:00:{second:02}Z",
        **members,
    }
    body = {
        "action": action,
        "number": number,
        "pull_request": pull,
        "repository": {"id": 7, "full_name": "octocat/Compiler"},
    }
    if replaced_sha:
        body["before"] = replaced_sha
    return Delivery("guid", "pull_request", Payload(body), 0.0)


async def head_after_noting(records: Records, *deliveries: Delivery) -> str | None:
    for delivery in deliveries:
        await note_head(records, delivery)
    head = await head_of(records, 7, 12)
    return head.sha if head else None


async def test_before_any_payload_no_head_is_known(records: Records) -> None:
    assert await head_after_noting(records) is None
    assert await repository_id_of(records, "octocat/compiler") is None


PUSHES = (head_after(A, 1, action="opened"), head_after(B, 2, replaced_sha=A), head_after(C, 3, replaced_sha=B))
IN_ONE_SECOND = (head_after(A, 1, action="opened"), head_after(B, 1, replaced_sha=A))


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
async def test_the_newest_head_stays_in_any_order(records: Records, order: tuple[int, ...]) -> None:
    assert await head_after_noting(records, *(PUSHES[index] for index in order)) == C


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0, 1), (1, 0, 0)])
async def test_two_payloads_of_the_same_second_are_ordered_by_the_push(
    records: Records, order: tuple[int, ...]
) -> None:
    assert await head_after_noting(records, *(IN_ONE_SECOND[index] for index in order)) == B


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
async def test_three_pushes_of_the_same_second_are_ordered_too(records: Records, order: tuple[int, ...]) -> None:
    pushes = (head_after(B, 1, replaced_sha=A), head_after(C, 1, replaced_sha=B), head_after(D, 1, replaced_sha=C))
    assert await head_after_noting(records, *(pushes[index] for index in order)) == D


async def test_a_push_that_is_reverted_within_the_second_is_followed(records: Records) -> None:
    assert (
        await head_after_noting(
            records,
            head_after(A, 1, action="opened"),
            head_after(B, 1, replaced_sha=A),
            head_after(A, 1, replaced_sha=B),
        )
        == A
    )


async def test_an_edit_in_the_second_of_a_push_keeps_its_head(records: Records) -> None:
    assert await head_after_noting(records, head_after(B, 1, replaced_sha=A), head_after(B, 1, action="edited")) == B


async def test_a_head_that_moves_back_is_followed(records: Records) -> None:
    assert await head_after_noting(records, head_after(B, 1, replaced_sha=A), head_after(A, 2, replaced_sha=B)) == A


async def test_fields_stored_with_the_head(records: Records) -> None:
    await head_after_noting(records, head_after(A, 1, action="opened"))
    head = await head_of(records, 7, 12)
    assert head is not None
    assert (head.head_ref, head.base_ref, head.author_id, head.is_open) == ("fast", "main", 1, True)
    assert await repository_id_of(records, "OCTOCAT/compiler") == 7


async def test_a_forks_branch_is_not_ours(records: Records) -> None:
    for delivery in (head_after(A, 1, home=8), head_after(A, 2, head={"sha": A, "ref": "main", "repo": None})):
        await note_head(records, delivery)
        head = await head_of(records, 7, 12)
        assert head is not None
        assert head.head_ref == ""


async def test_other_events_do_not_change_the_head(records: Records) -> None:
    comment = Delivery("guid", "issue_comment", head_after(A, 1).payload, 0.0)
    assert await head_after_noting(records, comment) is None


async def test_a_payload_without_a_head_names_the_missing_field(records: Records) -> None:
    with pytest.raises(PayloadError, match=r"pull_request\.head\.sha"):
        await note_head(records, head_after(A, 1, head={}))


async def test_the_pull_request_of_a_head_is_found_by_its_commit(records: Records) -> None:
    """Commit statuses and workflow runs name a commit, and GitHub finds no pull request for a fork's commit."""
    await head_after_noting(records, head_after(A, 1, action="opened", home=8))
    assert await pulls_with_head(records, 7, A) == [12]
    assert await pulls_with_head(records, 7, B) == []
    assert await pulls_with_head(records, 8, A) == []


async def test_a_commit_that_is_no_longer_a_head_has_no_pull_request(records: Records) -> None:
    await head_after_noting(records, head_after(A, 1, action="opened"), head_after(B, 2, replaced_sha=A))
    assert [await pulls_with_head(records, 7, sha) for sha in (A, B)] == [[], [12]]
    await head_after_noting(records, head_after(A, 3, replaced_sha=B))
    assert [await pulls_with_head(records, 7, sha) for sha in (A, B)] == [[12], []]


async def test_one_commit_may_be_the_head_of_several_pull_requests(records: Records) -> None:
    await head_after_noting(records, *(head_after(A, 1, action="opened", number=number) for number in (12, 3, 12)))
    assert await pulls_with_head(records, 7, A) == [12, 3]
    await head_after_noting(
        records, *(head_after(A, 1, action="opened", number=number) for number in range(100, 100 + MOST_PULLS))
    )
    assert await pulls_with_head(records, 7, A) == [*range(100, 100 + MOST_PULLS)]


@pytest.mark.parametrize(
    ("deliveries", "expected"),
    [
        ([head_after(A, 1)], ""),
        ([head_after(A, 1), head_after(A, 2, action="labeled")], ""),
        ([head_after(A, 1), head_after(B, 2, A)], "02"),
        ([head_after(A, 1), head_after(B, 2, A), head_after(B, 3, action="labeled")], "02"),
        ([head_after(A, 1), head_after(B, 2, A), head_after(A, 1, action="labeled")], "02"),
        ([head_after(A, 1), head_after(B, 1, A)], "01"),
        ([head_after(B, 1, A), head_after(A, 1)], "01"),
        ([head_after(B, 1, A), head_after(B, 2, action="labeled")], "01"),
        ([head_after(A, 1), head_after(B, 2, A), head_after(A, 3, B)], "03"),
    ],
)
async def test_the_recorded_time_of_a_move_is_never_too_early(
    records: Records, deliveries: list[Delivery], expected: str
) -> None:
    await head_after_noting(records, *deliveries)
    head = await head_of(records, 7, 12)
    assert head is not None
    assert head.moved_at == (f"2026-11-20T05:00:{expected}Z" if expected else "")


@pytest.mark.parametrize(
    ("deliveries", "since"),
    [
        ([head_after(A, 1, action="opened")], ""),
        ([head_after(A, 1, action="opened"), head_after(A, 5, action="labeled")], ""),
        ([head_after(A, 1, action="opened"), head_after(B, 2, A), head_after(B, 5, action="labeled")], "02"),
        ([head_after(B, 4, action="labeled")], "04"),
        ([head_after(B, 4, action="labeled"), head_after(B, 6, action="edited")], "04"),
        ([head_after(B, 4, action="labeled"), head_after(B, 4, action="edited")], "04"),
        ([head_after(B, 4, action="labeled"), head_after(C, 6, B)], "06"),
    ],
)
async def test_somebody_who_wrote_before_the_first_recorded_head_may_have_seen_another_one(
    records: Records, deliveries: list[Delivery], since: str
) -> None:
    """The webhook of a push was lost, and a label event named the new head first."""
    await head_after_noting(records, *deliveries)
    head = await head_of(records, 7, 12)
    assert head is not None
    moments = [f"2026-11-20T05:00:{second:02}Z" for second in range(1, 8)]
    assert [moment for moment in moments if head.may_follow(moment)] == [
        at for at in moments if since and at[-3:-1] <= since
    ]


async def test_a_head_is_confirmed_by_our_record_or_else_by_github(world: World) -> None:
    """A status may name any commit, and its address any pull request."""
    pull = world.open()
    await world.happen()
    app = world.pipeline.app
    github = await app.reader(FULL_NAME)
    repository = Repository(world.repository.id, FULL_NAME, None)

    async def confirmed(number: int, sha: str) -> tuple[str | None, int]:
        """Return the confirmed head, and how many requests that took."""
        world.github.requests.clear()
        head = await confirmed_head(world.records, github, repository, number, sha)
        made = world.github.requests.of_installation
        return head.sha if head else None, len(made)

    first = pull.head_sha
    assert await confirmed(pull.number, first) == (first, 0)
    assert await confirmed(pull.number, B) == (None, 1)
    assert await confirmed(77, first) == (None, 1)
    pull.push()  # its webhook has not arrived yet
    assert await confirmed(pull.number, pull.head_sha) == (pull.head_sha, 1)
    await world.happen()
    assert await confirmed(pull.number, first) == (None, 1)
    assert await confirmed(pull.number, pull.head_sha) == (pull.head_sha, 0)


async def test_pull_requests_of_one_head_that_are_opened_at_the_same_moment_are_all_found(records: Records) -> None:
    numbers = list(range(1, 9))
    await asyncio.gather(*(note_head(records, head_after(A, 1, number=number)) for number in numbers))
    assert sorted(await pulls_with_head(records, 7, A)) == numbers
