"""Upload a run through the bot, for labs without a bucket: begin, files, manifest; all of it may be repeated.

The bot remembers which files have arrived. So after a lost connection only the interrupted file is sent again, and a
second upload under the same run ID continues the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any, BinaryIO, TypeVar

from nightjar_formats.errors import TryAgain, UserError
from nightjar_formats.model import MANIFEST
from nightjar_formats.runs.upload import PackedRun
from nightjar_formats.strict_json import read_json
from nightjar_lab import texts
from nightjar_lab.api import BotClient, BotRefused, BotUnavailable, LostLease, NotFound

TRIES = 6
FIRST_PAUSE = 1.0
CHUNK = 1 << 18

Result = TypeVar("Result")


class BotStore:
    """The bot as the store of one run (`nightjar_formats.runs.upload.WriteOnce`); `sleep` waits some seconds."""

    def __init__(self, bot: BotClient, run: PackedRun, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bot = bot
        self._run = run
        self._sleep = sleep
        self._upload = ""
        self._received: frozenset[str] = frozenset()

    def put_once(self, key: str, source: BinaryIO, *, sha256: str) -> bool:
        """Send a file or the manifest; return False if it had arrived before. Raises `UserError` and `TryAgain`."""

        def chunks() -> Iterator[bytes]:
            source.seek(0)
            return iter(lambda: source.read(CHUNK), b"")

        size = source.seek(0, 2)
        return self.send(key.rpartition("/")[2], size, chunks)

    def send(self, name: str, size: int, chunks: Callable[[], Iterator[bytes]]) -> bool:
        """Send a file of `size` bytes, or the manifest; `chunks` yields its content, again for each try."""
        if not self._upload:
            self._begin()
        if name in self._received:
            return False
        try:
            self._send(name, size, chunks)
        except NotFound:
            # It has expired meanwhile; the files that have arrived stay.
            self._begin()
            self._send(name, size, chunks)
        return True

    def send_manifest(self) -> None:
        """Send the manifest, after which the bot ingests the run."""
        self.send(MANIFEST, len(self._run.manifest), lambda: iter(BytesIO(self._run.manifest)))

    def _begin(self) -> None:
        key, pieces = self._run.key, self._run.pieces
        body = {
            "repository": key.repository,
            "target": key.target,
            "sha": key.sha,
            "run_id": key.run_id,
            "pull_request": read_json(self._run.manifest).get("pull_request"),
            "files": [{"name": piece.name, "bytes": piece.bytes, "sha256": piece.sha256} for piece in pieces],
        }
        answer = self._repeat(lambda: self._bot.begin_upload(body))
        self._upload = str(answer.body.get("upload", ""))
        received: Any = answer.body.get("received")
        self._received = frozenset(received if isinstance(received, list) else ())

    def _send(self, name: str, size: int, chunks: Callable[[], Iterator[bytes]]) -> None:
        self._repeat(lambda: self._bot.send_file(self._upload, name, size, chunks()))

    def _repeat(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns, repeated while the bot is busy or away; wait as long as the bot says."""
        pause = FIRST_PAUSE
        for attempt in range(TRIES):
            try:
                return call()
            except NotFound:
                raise
            except (BotRefused, LostLease) as error:
                raise UserError(texts.BOT_REFUSES.format(url=self._bot.url, reason=error)) from None
            except BotUnavailable as error:
                if attempt + 1 == TRIES:
                    raise TryAgain(texts.BOT_AWAY.format(url=self._bot.url, reason=error)) from None
                self._sleep(max(pause, error.retry_in or 0.0))
                pause *= 2
        raise AssertionError


def check_admission(
    bot: BotClient, repository: str, targets: Sequence[str], sha: str | None, pull_request: int | None
) -> bool:
    """Raise `UserError` unless the bot would accept runs of a lab, so that this shows before hours of tests.

    Without `sha`, only names are checked. Returns False if the bot is older than this question.
    """
    try:
        answer = bot.admission(
            {"repository": repository, "targets": list(targets), "sha": sha, "pull_request": pull_request}
        )
    except NotFound:
        return False
    except (BotRefused, LostLease) as error:
        raise UserError(texts.BOT_REFUSES.format(url=bot.url, reason=error)) from None
    except BotUnavailable as error:
        raise UserError(texts.BOT_AWAY.format(url=bot.url, reason=error)) from None
    if answer.body.get("accepted") is not True:
        reasons = answer.body.get("reasons")
        reason = "; ".join(map(str, reasons)) if isinstance(reasons, list) else texts.NOT_THE_BOT
        raise UserError(texts.NOT_ADMITTED.format(reason=reason))
    return True
