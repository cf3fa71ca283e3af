"""The two families of errors that labs and the server share.

The text of `UserError` is for the person; after `TryAgain`, another try may succeed. Readers of reports raise
`refused.Refused`.
"""

from __future__ import annotations


class UserError(Exception):
    """A final error: it is not retried. Its text is for the person, and says what to do next."""


class TryAgain(Exception):
    """A transient error: try the same thing again later.

    `retry_in` is in seconds; None leaves the time of the next try to the engine's back-off.
    """

    def __init__(self, reason: str, *, retry_in: float | None = None) -> None:
        super().__init__(reason)
        self.retry_in = retry_in


class AlreadyThere(UserError):
    """The object exists, and these credentials may not see whether it has the same content."""
