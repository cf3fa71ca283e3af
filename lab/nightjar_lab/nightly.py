"""Find the commit to test: ask the bot or read the bucket, once or until there is a new commit."""

from __future__ import annotations

import random
import re  # noqa: TID251
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nightjar_formats.errors import TryAgain, UserError
from nightjar_formats.model import FULL_SHA
from nightjar_formats.strict_json import read_json
from nightjar_lab import texts
from nightjar_lab.api import BotRefused, BotUnavailable, NotFound, get_from_bot_api
from nightjar_lab.bucket import LabBucket, NoObject

SHA = re.compile(FULL_SHA)  # noqa: TID251
LONGEST_PAUSE = 600.0
FIELDS = ("branch", "sha", "previous_sha", "moved_at", "commits")


class NoNightly(UserError):
    """The commit to test is not known; the text says why and what to do."""


@dataclass(frozen=True)
class NightlyCommit:
    """The commit to test, and the `FIELDS` of the document that names it."""

    sha: str
    fields: Mapping[str, Any]


class NightlySource(ABC):
    """A source of the nightly commit; an unchanged answer is not read again."""

    def __init__(self, repository: str) -> None:
        self.repository = repository
        self._tag = ""
        self._last: NightlyCommit | None = None

    def commit(self) -> NightlyCommit | None:
        """Return the commit to test; None if there is none yet. Raises `NoNightly` and `BotUnavailable`."""
        body, tag = self._fetch(self._tag)
        if body is not None:
            self._tag, self._last = tag, self._parsed(body)
        return self._last

    @property
    @abstractmethod
    def place(self) -> str:
        """The address that it is read from."""

    @abstractmethod
    def _fetch(self, tag: str) -> tuple[Mapping[str, Any] | None, str]:
        """Return the document and its tag; None if it still has the tag."""

    def _parsed(self, body: Mapping[str, Any]) -> NightlyCommit | None:
        sha = body.get("sha", "")
        if sha is None:
            return None
        if not isinstance(sha, str) or not SHA.fullmatch(sha):
            raise NoNightly(texts.BAD_NIGHTLY.format(place=self.place))
        return NightlyCommit(sha, {name: body.get(name) for name in FIELDS})


class NightlyOfBot(NightlySource):
    """The bot's API; `token` is what a private repository needs."""

    def __init__(self, url: str, repository: str, token: str = "") -> None:
        super().__init__(repository)
        self._url = url
        self._token = token

    @property
    def place(self) -> str:
        """The address that it is read from."""
        return f"{self._url}/api/v1/repos/{self.repository}/nightly"

    def _fetch(self, tag: str) -> tuple[Mapping[str, Any] | None, str]:
        try:
            answer = get_from_bot_api(self._url, f"/api/v1/repos/{self.repository}/nightly", self._token, tag)
        except NotFound as error:
            raise NoNightly(texts.NO_NIGHTLY.format(repository=self.repository, reason=error)) from None
        except BotRefused as error:
            raise NoNightly(texts.BOT_REFUSES.format(url=self._url, reason=error)) from None
        except BotUnavailable as error:
            raise BotUnavailable(texts.BOT_AWAY.format(url=self._url, reason=error), error.retry_in) from None
        return (None if answer.status == 304 else answer.body), answer.tag


class NightlyOfBucket(NightlySource):
    """`nightly.json` beside the labs' folders in the bucket."""

    def __init__(self, bucket: str, prefix: str, repository: str) -> None:
        super().__init__(repository)
        self._bucket = LabBucket(bucket)
        self._key = f"{prefix}{repository}/nightly.json"

    @property
    def place(self) -> str:
        """The address that it is read from."""
        return f"s3://{self._bucket.name}/{self._key}"

    def _fetch(self, tag: str) -> tuple[Mapping[str, Any] | None, str]:
        try:
            raw, tag = self._bucket.read(self._key, tag)
        except TryAgain as error:
            raise BotUnavailable(str(error)) from None
        except NoObject as error:
            raise NoNightly(texts.NO_NIGHTLY_FILE.format(reason=error)) from None
        try:
            body = None if raw is None else read_json(raw)
        except ValueError:
            body = ()
        if body is not None and not isinstance(body, dict):
            raise NoNightly(texts.BAD_NIGHTLY.format(place=self.place))
        return body, tag


def nightly_commit(source: NightlySource) -> NightlyCommit:
    """Return the commit to test now. Raises `UserError` and `BotUnavailable`."""
    commit = source.commit()
    if commit is None:
        raise NoNightly(texts.NO_NIGHTLY_BRANCH.format(repository=source.repository))
    return commit


def wait_for_nightly(
    source: NightlySource,
    last_sha: str,
    *,
    pause: float,
    timeout: float,
    report: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> NightlyCommit:
    """Wait until the commit to test is another one than `last_sha`. Times are in seconds.

    The pauses grow while the source does not answer, and are at least Retry-After. Raises `NoNightly`.
    """
    deadline = time.monotonic() + timeout
    failures = 0
    while True:
        wait = pause
        try:
            commit = source.commit()
            if commit is not None and commit.sha != last_sha:
                return commit
            failures = 0
        except BotUnavailable as error:
            wait = min(pause * 2**failures, LONGEST_PAUSE)
            failures = min(failures + 1, 10)
            if error.retry_in is not None:
                wait = max(wait, error.retry_in)
            report(str(error))
        seconds_left = deadline - time.monotonic()
        # Random, because many labs wait for the same commit and must not all ask in the same second.
        wait *= random.uniform(0.9, 1.1)  # noqa: S311  # no secret
        if wait > seconds_left:
            raise NoNightly(texts.NO_NEW_NIGHTLY.format(seconds=timeout, sha=last_sha or "unknown"))
        sleep(wait)
