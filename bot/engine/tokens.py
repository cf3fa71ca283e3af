"""Store the tokens with which programs authenticate: each is shown once, and only its digest is stored.

A token contains the ID of its row: the row is found by ID, and the digests are compared in constant time. A stolen
digest gives no access. SHA-256 is enough, because a token is random and, unlike a password, cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString

from bot.core.patterns import Pattern
from bot.engine.sql.transactions import Connector

API: LiteralString = "api"
"""The scope of tokens that read `/api/v1` of a repository; the subject is its `owner/name` in lower case."""
LAB: LiteralString = "lab"
"""The scope of tokens with which a lab gets work; the subject is its name in app.yaml, whose case matters."""
USE_NOTED = 60.0
"""Seconds for which a use is not noted again, so that a lab that asks all the time costs one write a minute."""

ID_BYTES, SECRET_BYTES = 6, 32
PREFIX = "nightjar"  # by it `bot.core.redaction` finds tokens in a log
_TOKEN = Pattern(rf"{PREFIX}_([0-9a-f]{{{2 * ID_BYTES}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")

CREATE: LiteralString = """
INSERT INTO nightjar_tokens (id, scope, subject, digest, note, created_at, expires_at)
VALUES (%(id)s, %(scope)s, %(subject)s, %(digest)s, %(note)s, %(created_at)s, %(expires_at)s)
"""
FIND: LiteralString = "SELECT * FROM nightjar_tokens WHERE id = %(id)s"
LIST: LiteralString = "SELECT * FROM nightjar_tokens WHERE scope = %(scope)s ORDER BY subject, created_at, id"
REVOKE: LiteralString = "DELETE FROM nightjar_tokens WHERE id = %(id)s AND scope = %(scope)s RETURNING id"
USED: LiteralString = "UPDATE nightjar_tokens SET used_at = %(now)s WHERE id = %(id)s"

NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A stored token: `subject` is the repository or lab that it is for. Moments are seconds since 1970.

    `used_at` is the time of its last use, if `note_use` is called for such tokens.
    """

    id: str
    subject: str
    note: str
    created_at: float
    expires_at: float | None
    used_at: float | None = None

    def expired(self, moment: float) -> bool:
        """Return whether it has expired."""
        return self.expires_at is not None and moment >= self.expires_at


class TokenStore:
    """The tokens of one scope, such as `api`, in the engine's database; `clock` returns seconds since 1970.

    All methods raise DatabaseFailure when the database cannot be reached.
    """

    def __init__(self, connector: Connector, scope: LiteralString, clock: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self._scope = scope
        self._clock = clock

    async def create(self, subject: str, *, seconds: float | None, note: str = "") -> tuple[str, StoredToken]:
        """Create a token that is valid for `seconds`, or until it is revoked if None.

        Returns its text, which is stored nowhere, and the token.
        """
        moment = self._clock()
        expires_at = moment + seconds if seconds is not None else None
        token = StoredToken(secrets.token_hex(ID_BYTES), subject, note, moment, expires_at)
        text = f"{PREFIX}_{token.id}_{secrets.token_hex(SECRET_BYTES)}"
        await self._connector.execute_query_async(
            CREATE,
            id=token.id,
            scope=self._scope,
            subject=token.subject,
            digest=_digest(text),
            note=note,
            created_at=moment,
            expires_at=expires_at,
        )
        return text, token

    async def verify(self, text: str) -> StoredToken | None:
        """Return the token with this text; None if there is none, or if it has expired."""
        form = _TOKEN.fullmatch(text)
        if form is None:
            return None
        rows = await self._connector.execute_query_all_async(FIND, id=form[1])
        row: dict[str, Any] = rows[0] if rows else {"digest": NO_DIGEST, "scope": ""}
        # Always compare, so that the time does not reveal which IDs exist.
        if not hmac.compare_digest(_digest(text), row["digest"]) or row["scope"] != self._scope:
            return None
        token = _token(row)
        return None if token.expired(self._clock()) else token

    async def note_use(self, token: StoredToken) -> None:
        """Note that a token was used now."""
        moment = self._clock()
        if token.used_at is None or moment - token.used_at >= USE_NOTED:
            await self._connector.execute_query_async(USED, id=token.id, now=moment)

    async def all(self) -> list[StoredToken]:
        """Return all tokens of the scope, by subject and then by age."""
        return [_token(row) for row in await self._connector.execute_query_all_async(LIST, scope=self._scope)]

    async def revoke(self, token_id: str) -> bool:
        """Remove a token; return whether it existed."""
        rows = await self._connector.execute_query_all_async(REVOKE, id=token_id, scope=self._scope)
        return bool(rows)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _token(row: dict[str, Any]) -> StoredToken:
    return StoredToken(row["id"], row["subject"], row["note"], row["created_at"], row["expires_at"], row["used_at"])
