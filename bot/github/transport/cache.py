"""A cache of answers for conditional requests: GitHub's 304 costs no quota."""

from __future__ import annotations

from cachetools import LRUCache
from multidict import CIMultiDict

from bot.github.errors import Answer

CACHE_BYTES = 32 * 1024 * 1024
"""Size in bytes of the cache that all clients of a process share."""
ENTRY_OVERHEAD = 1024  # bytes, roughly: key, headers and Python's own
# gidgethub reads these headers, and the next request sends the ETag. A 304 need not repeat them:
# https://www.rfc-editor.org/rfc/rfc9110#name-304-not-modified
BODY_HEADERS = ("content-type", "etag")
STORED_HEADERS = (*BODY_HEADERS, "link")

Key = tuple[str, str, str]
"""Installation, URL and media type: installations may read different things, and one URL has several forms."""


class AnswerCache:
    """An LRU cache of the answers that came with an ETag, bounded by bytes."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._answers: LRUCache[Key, Answer] = LRUCache(max_bytes, getsizeof=_size)

    def get(self, key: Key) -> Answer | None:
        """Return the cached answer to revalidate, None if nothing is cached."""
        return self._answers.get(key)

    def put(self, key: Key, answer: Answer) -> None:
        """Store a 200 that has an ETag, unless it would take most of the cache."""
        if answer.status != 200 or "etag" not in answer.headers or _size(answer) > self._answers.maxsize // 8:
            return
        cached = CIMultiDict({name: answer.headers[name] for name in STORED_HEADERS if name in answer.headers})
        self._answers[key] = Answer(answer.status, cached, answer.body)


def revalidated(cached: Answer, answer: Answer) -> Answer:
    """Return the cached answer with the headers of the 304, such as those of the quota, except those of the body.

    The `Link` of a 304 counts: an ETag is that of the body, and a list that grows changes only the `Link` of a full
    page.
    """
    headers = CIMultiDict(cached.headers)
    headers.update({name: value for name, value in answer.headers.items() if name.lower() not in BODY_HEADERS})
    return Answer(cached.status, headers, cached.body)


def _size(answer: Answer) -> int:
    return len(answer.body) + ENTRY_OVERHEAD
