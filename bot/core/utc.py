"""Times as text: UTC in the format of RFC 3339, as in GitHub's API."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_utc(seconds: float) -> str:
    """Return seconds since 1970 as `2026-11-20T05:10:00Z`."""
    return datetime_of(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def datetime_of(seconds: float) -> datetime:
    """Return seconds since 1970 as a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def iso_utc_or_none(seconds: float | None) -> str | None:
    """Return the text of a time, None for None."""
    return None if seconds is None else iso_utc(seconds)


def moment_or_none(text: str) -> datetime | None:
    """Return the moment of a time in ISO 8601, in UTC; None for an empty text."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
