"""Sessions of people who signed in, in the bot's own database.

The browser has the session's secret; the database has a digest of it and GitHub's token, sealed with that same secret.
So neither a copy of the database nor SESSION_SECRET alone is enough to act for a person.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.core.events import Person
from bot.core.patterns import Pattern
from bot.engine.records import DAY, Key, Record, Records
from bot.github.sign_in import PersonToken
from bot.web.sign_in.keys import SignInKeys

SESSION_SECONDS = 8 * 3600.0
"""How long a session lasts: as long as GitHub's token, which is never renewed. The next sign-in needs no password."""
MOST_SESSIONS = 10
"""Sessions of one person; one more ends the oldest."""
SECRET_BYTES = 32
_COOKIE = Pattern(rf"([1-9][0-9]{{0,17}})\.([0-9a-f]{{{2 * SECRET_BYTES}}})")


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it is stored; `sealed` is GitHub's token. Moments are in seconds since 1970."""

    login: str
    sealed: str
    created_at: float
    expires_at: float


SESSION = Record("session", 1, StoredSession, "a person who is signed in on the pages", days=SESSION_SECONDS / DAY)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is valid now: who it is, and GitHub's token to ask in their name. `digest` names it."""

    person: Person
    digest: str
    token: str = field(repr=False)


class Sessions:
    """All sessions; `clock` returns seconds since 1970. All methods raise DatabaseFailure without a database."""

    def __init__(self, records: Records, keys: SignInKeys, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._keys = keys
        self._clock = clock

    async def begin(self, person: Person, token: PersonToken) -> tuple[str, float]:
        """Begin a session; return the text of its cookie, and for how many seconds it is valid."""
        await self._make_room(person)
        secret = secrets.token_hex(SECRET_BYTES)
        lifetime = min(SESSION_SECONDS, token.lifetime or SESSION_SECONDS)
        created_at = self._clock()
        sealed = self._keys.seal(token.value, str(person.id), secret)
        stored = StoredSession(person.login, sealed, created_at, created_at + lifetime)
        await self._records.put(_key(person.id, self._digest(secret)), stored)
        return f"{person.id}.{secret}", lifetime

    async def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie's text; None if there is none, or it has ended."""
        form = _COOKIE.fullmatch(cookie)
        if form is None:
            return None
        number, secret = int(form[1]), form[2]
        digest = self._digest(secret)
        stored = await self._records.get(_key(number, digest))
        if stored is None or self._clock() >= stored.expires_at:
            return None
        token = self._keys.open(stored.sealed, str(number), secret)
        if token is None:
            return None
        return Session(Person(number, stored.login, is_bot=False), digest, token)

    async def end(self, session: Session) -> None:
        """End a session."""
        await self._records.remove(_key(session.person.id, session.digest))

    async def _make_room(self, person: Person) -> None:
        sessions = await self._records.under(SESSION, person.id)
        oldest_first = sorted(sessions, key=lambda digest: sessions[digest].created_at)
        for digest in oldest_first[: max(0, len(sessions) - MOST_SESSIONS + 1)]:
            await self._records.remove(_key(person.id, digest))

    def _digest(self, secret: str) -> str:
        return self._keys.sign("session", secret)


def _key(person: int, digest: str) -> Key[StoredSession]:
    return SESSION.of(person, digest)
