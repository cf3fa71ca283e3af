"""What handlers remember between deliveries: small JSON objects by key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, LiteralString, cast

from procrastinate.connector import BaseAsyncConnector

from bot.engine import text

GET: LiteralString = "SELECT value AS stored FROM nightjar_records WHERE key = %(key)s"
PUT: LiteralString = """
INSERT INTO nightjar_records (key, value, at) VALUES (%(key)s, %(value)s, %(at)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at
"""
EXCHANGE: LiteralString = """
INSERT INTO nightjar_records (key, value, at) VALUES (%(key)s, %(value)s, %(at)s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at
WHERE nightjar_records.value = CAST(%(was)s AS text)
RETURNING key
"""
STARTING: LiteralString = """
SELECT key, value AS stored FROM nightjar_records
WHERE substr(key, 1, length(CAST(%(prefix)s AS text))) = CAST(%(prefix)s AS text)
"""
NOTHING = ""
"""What no record's text is, for JSON has at least two characters."""


class Records:
    """The records of one database. All methods raise ConnectorException when it cannot be reached."""

    def __init__(self, connector: BaseAsyncConnector) -> None:
        self._connector = connector

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key, None where nothing is."""
        rows = await self._connector.execute_query_all_async(GET, key=key)
        return cast("dict[str, Any]", text.loads(rows[0]["stored"])) if rows else None

    async def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a JSON object under a key, in place of what stood there."""
        await self._connector.execute_query_async(PUT, key=key, value=text.dumps(dict(value)), at=time.time())

    async def exchange(self, key: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
        """Keep a JSON object under a key if that still has what was read, or nothing for None; say whether it had."""
        was = NOTHING if old is None else text.dumps(dict(old))
        values = {"key": key, "was": was, "value": text.dumps(dict(new)), "at": time.time()}
        return bool(await self._connector.execute_query_all_async(EXCHANGE, **values))

    async def starting_with(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Return what is kept under all keys that begin like this. It reads every key: for timers, not for events."""
        rows = await self._connector.execute_query_all_async(STARTING, prefix=prefix)
        return {row["key"]: cast("dict[str, Any]", text.loads(row["stored"])) for row in rows}
