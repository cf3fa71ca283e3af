"""How long a session lasts, and which secret opens it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bot.core.events import Person
from bot.engine.service import Engine
from bot.github.sign_in import PersonToken
from bot.web.login import BegunSignIns
from bot.web.sign_in.keys import SignInKeys
from bot.web.sign_in.sessions import MOST_SESSIONS, SESSION, Sessions
from tests.tables import with_tables

PERSON = Person(583231, "octocat", is_bot=False)
HOUR = 3600.0


@dataclass
class Clock:
    """A clock that is set by hand."""

    moment: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.moment


@pytest.mark.parametrize(("lifetime", "seconds"), [(None, 8 * HOUR), (24 * HOUR, 8 * HOUR), (60.0, 60.0)])
async def test_a_session_ends_with_the_token_and_after_at_most_eight_hours(
    sqlite_url: str, lifetime: float | None, seconds: float
) -> None:
    clock = Clock()
    async with Engine(with_tables(sqlite_url)) as engine:
        sessions = Sessions(engine.records, SignInKeys("s" * 32), clock)
        cookie, valid = await sessions.begin(PERSON, PersonToken("ghu_token", lifetime))
        assert valid == seconds
        clock.moment += seconds - 1
        session = await sessions.find(cookie)
        assert session is not None
        assert (session.person, session.token) == (PERSON, "ghu_token")
        clock.moment += 1
        assert await sessions.find(cookie) is None


async def test_another_server_secret_opens_no_session(sqlite_url: str) -> None:
    async with Engine(with_tables(sqlite_url)) as engine:
        cookie, _ = await Sessions(engine.records, SignInKeys("s" * 32)).begin(PERSON, PersonToken("ghu_token", None))
        assert await Sessions(engine.records, SignInKeys("t" * 32)).find(cookie) is None


async def test_a_persons_oldest_session_makes_room(sqlite_url: str) -> None:
    clock = Clock()
    async with Engine(with_tables(sqlite_url)) as engine:
        sessions = Sessions(engine.records, SignInKeys("s" * 32), clock)
        cookies = []
        for _ in range(MOST_SESSIONS + 1):
            clock.moment += 1
            cookies.append((await sessions.begin(PERSON, PersonToken("ghu_token", None)))[0])
        assert [bool(await sessions.find(cookie)) for cookie in cookies] == [False] + [True] * MOST_SESSIONS
        assert len(await engine.records.under(SESSION, PERSON.id)) == MOST_SESSIONS


def test_a_sign_in_may_take_at_most_ten_minutes() -> None:
    clock = Clock()
    begun = BegunSignIns(SignInKeys("s" * 32), clock)
    cookie = begun.begin("/help")
    state = begun.state(cookie)
    assert begun.destination(cookie, state) == "/help"
    clock.moment += 599
    assert begun.destination(cookie, state) == "/help"
    clock.moment += 2
    assert begun.destination(cookie, state) is None
