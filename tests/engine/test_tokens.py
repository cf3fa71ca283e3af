"""Tokens: created once, found by their ID, and stored only as digests; on both databases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator

import pytest

from bot.engine.database import Database
from bot.engine.tokens import StoredToken, TokenStore
from tests.postgres import PostgresServer  # noqa: F401  (its fixtures)

DAY = 86_400.0


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    opened = Database(request.getfixturevalue(request.param))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def clock() -> list[float]:
    return [1_800_000_000.0]


@pytest.fixture
def tokens(database: Database, clock: list[float]) -> TokenStore:
    return TokenStore(database.connector, "api", clock=lambda: clock[0])


async def test_a_token_is_recognized_by_its_text_while_it_is_valid(tokens: TokenStore, clock: list[float]) -> None:
    text, made = await tokens.create("octocat/compiler", seconds=DAY, note="Jenkins")
    assert made == StoredToken(made.id, "octocat/compiler", "Jenkins", clock[0], clock[0] + DAY)
    assert re.fullmatch(rf"nightjar_{made.id}_[0-9a-f]{{64}}", text)
    clock[0] += DAY - 0.5
    assert await tokens.verify(text) == made
    clock[0] += 0.5
    assert await tokens.verify(text) is None
    assert await tokens.all() == [made]


async def test_a_token_without_an_expiry_is_valid_until_it_is_revoked(tokens: TokenStore, clock: list[float]) -> None:
    text, made = await tokens.create("octocat/compiler", seconds=None)
    clock[0] += 36_500 * DAY
    assert await tokens.verify(text) == made
    assert await tokens.revoke(made.id)
    assert await tokens.verify(text) is None
    assert not await tokens.revoke(made.id)


@pytest.mark.parametrize("change", ["first", "last", "id", "case", "more", "less"])
async def test_only_the_exact_text_is_the_token(tokens: TokenStore, change: str) -> None:
    text, made = await tokens.create("octocat/compiler", seconds=DAY)
    start = text.index("_", 9) + 1
    changed = {
        "first": text[:start] + ("1" if text[start] == "0" else "0") + text[start + 1 :],
        "last": text[:-1] + ("1" if text[-1] == "0" else "0"),
        "id": text.replace(made.id, "0" * 12),
        "case": text.upper(),
        "more": text + "0",
        "less": text[:-1],
    }[change]
    assert await tokens.verify(changed) is None


async def test_a_token_of_another_scope_is_not_recognized(tokens: TokenStore, database: Database) -> None:
    labs = TokenStore(database.connector, "lab")
    text, made = await labs.create("example-lab", seconds=None)
    assert await tokens.verify(text) is None
    assert await tokens.all() == []
    assert not await tokens.revoke(made.id)
    assert await labs.verify(text) == made


async def test_the_last_use_is_stored_at_most_once_a_minute(tokens: TokenStore, clock: list[float]) -> None:
    text, made = await tokens.create("octocat/compiler", seconds=DAY)
    assert made.used_at is None
    for later, noted in ((0.0, 0.0), (59.0, 0.0), (1.0, 60.0)):
        clock[0] += later
        token = await tokens.verify(text)
        assert token is not None
        await tokens.note_use(token)
        (stored,) = await tokens.all()
        assert stored.used_at == made.created_at + noted


async def test_the_text_of_a_token_is_not_in_the_database(tokens: TokenStore, database: Database) -> None:
    text, made = await tokens.create("octocat/compiler", seconds=DAY)
    (row,) = await database.connector.execute_query_all_async("SELECT * FROM nightjar_tokens")
    assert row["digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert text.removeprefix(f"nightjar_{made.id}_") not in str(row)
