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
# Versions are compared byte by byte on both: they are moments as GitHub writes them (RFC 3339, UTC, whole seconds).
PUT_NEWER: LiteralString = (
    PUT + " WHERE coalesce(nightjar_records.value::jsonb ->> 'version', '') <= %(version)s RETURNING key"
)


class Records:
    """The records of one database. All methods raise ConnectorException when it cannot be reached."""

    def __init__(self, connector: BaseAsyncConnector) -> None:
        self._connector = connector

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key, None where nothing is."""
        rows = await self._connector.execute_query_all_async(GET, key=key)
        if not rows:
            return None
        stored = cast("dict[str, Any]", text.loads(rows[0]["stored"]))
        return cast("dict[str, Any]", stored["value"])

    async def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a JSON object under a key, in place of what stood there."""
        await self._connector.execute_query_async(PUT, key=key, value=_stored(value, ""), at=time.time())

    async def put_newer(self, key: str, value: Mapping[str, Any], version: str) -> bool:
        """Keep a JSON object unless one of a later version is kept already; say whether it was kept.

        `version` is a text that sorts in time, such as `2026-11-20T05:10:00Z`.
        """
        rows = await self._connector.execute_query_all_async(
            PUT_NEWER, key=key, value=_stored(value, version), at=time.time(), version=version
        )
        return bool(rows)


def _stored(value: Mapping[str, Any], version: str) -> str:
    return text.dumps({"version": version, "value": dict(value)})
