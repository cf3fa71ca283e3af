"""Find the log and other files of a run, and fetch one from the bucket: a bounded copy that has the right digest.

See docs/decisions/files-of-runs.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

import structlog
from nightjar_formats.model import RunKey
from nightjar_formats.refused import TooMuch
from nightjar_formats.runs.artifacts import is_log, media_type, plain_name
from nightjar_formats.runs.manifest import ArtifactEntry
from pydantic import BaseModel, Field

from bot.aws.bucket import NotThere
from bot.config.types import seconds
from bot.core.errors import UserError
from bot.core.page_paths import run_file_path
from bot.results.settings.results import Results
from bot.results.state import Run
from bot.results.store.lists.run_lists import run_with_artifacts
from bot.web.problems import Problem
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.settings import results_of

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

MOST_BYTES = 256 << 20
"""The most bytes of all files that are fetched or sent at once: they are on the disk for that long."""
RETRY_SECONDS = 5
OTHER_TYPE = "application/octet-stream"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SeenArtifact(BaseModel, extra="forbid"):
    """A log or another file that a lab sent with a run."""

    name: str
    media_type: str = Field(description="The type of its content, by its name: text, JSON or an image.")
    bytes: int = Field(description="Its size as it is stored.")
    sha256: str
    is_log: bool = Field(description="Whether it is the run's log, `log.txt`.")
    page: str = Field(description="The path of its page; that path and `/raw` is the file itself.")


class SeenArtifacts(BaseModel, extra="forbid"):
    """The artifacts of a run, its log first."""

    expires_at: datetime = Field(description="When they expire; from then on, only their names are shown.")
    expired: bool
    artifacts: list[SeenArtifact]


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """An artifact, its run, and the settings of the run's repository."""

    run: Run
    entry: ArtifactEntry
    results: Results

    @property
    def key(self) -> str:
        """Return its key in the bucket."""
        return f"{self.results.prefix}{self.run.key.folder}{self.entry.name}"


def key_of(request: PageRequest, repository: str) -> RunKey:
    """Return the key of the run in an address; `repository` is its name as app.yaml has it."""
    return RunKey(repository, *(request.path[name] for name in ("lab", "target", "sha", "run_id")))


def expiry_of(run: Run, results: Results) -> float:
    """Return when the artifacts of a run expire, in seconds since 1970."""
    return run.received_at + seconds(results.keep_files)


def seen_artifact(entry: ArtifactEntry, run: RunKey) -> SeenArtifact:
    """Return an artifact as pages show it."""
    return SeenArtifact(
        name=entry.name,
        media_type=media_type(entry.name) or OTHER_TYPE,
        bytes=entry.bytes,
        sha256=entry.sha256,
        is_log=is_log(entry.name),
        page=run_file_path(run.repository, run.about.full_name, run.sha, run.run_id, entry.name),
    )


def seen_artifacts(run: Run, entries: list[ArtifactEntry], results: Results, moment: float) -> SeenArtifacts:
    """Return the artifacts of a run as pages show them at a moment, in seconds since 1970."""
    artifacts = [seen_artifact(entry, run.key) for entry in entries]
    artifacts.sort(key=lambda artifact: (not artifact.is_log, artifact.name))
    expiry = expiry_of(run, results)
    return SeenArtifacts(expires_at=datetime.fromtimestamp(expiry, UTC), expired=moment >= expiry, artifacts=artifacts)


class ArtifactReader:
    """Finds artifacts, and fetches them from the bucket of their repository, `most_bytes` of all together at once."""

    def __init__(self, parts: DashboardParts, most_bytes: int = MOST_BYTES) -> None:
        self._parts = parts
        self._free_bytes = most_bytes

    async def find(self, request: PageRequest) -> RunArtifact:
        """Return the artifact in an address. Raises LookupError, and `Problem` 410 for one that has expired.

        Names are looked up, not interpreted: an address can name only what is stored about the run.
        """
        name, _, results = results_of(self._parts, request.repository)
        key = key_of(request, name)
        run, entries = await request.pages.run(self._parts.results.store.read, run_with_artifacts, key)
        entry = next((entry for entry in entries if entry.name == request.path["name"]), None)
        if run is None or entry is None:
            raise LookupError(key.folder)
        if self._parts.clock() >= expiry_of(run, results):
            raise Problem(410, texts.FILE_EXPIRED.format(name=entry.name, period=results.keep_files))
        return RunArtifact(run, entry, results)

    @asynccontextmanager
    async def fetched(self, artifact: RunArtifact) -> AsyncIterator[BinaryIO]:
        """Fetch an artifact into a temporary file without a name, which is at its beginning.

        Raises `TryAgain`, and `Problem`: 410 if the bucket no longer has this file, 503 if it cannot be read now.
        """
        size = artifact.entry.bytes
        if size > self._free_bytes:
            raise Problem(503, texts.FILES_BUSY, headers={"Retry-After": str(RETRY_SECONDS)})
        self._free_bytes -= size
        try:
            with tempfile.TemporaryFile() as file:
                await self._fetch(artifact, file)
                yield file
        finally:
            self._free_bytes += size

    async def _fetch(self, artifact: RunArtifact, file: BinaryIO) -> None:
        entry = artifact.entry
        try:
            source = self._parts.results.source_for(artifact.results.store)
            download = await source.download(artifact.key, file, limit=entry.bytes)
        except NotThere:
            raise Problem(410, texts.FILE_REMOVED.format(name=entry.name)) from None
        except TooMuch:
            raise Problem(410, texts.FILE_REPLACED.format(name=entry.name)) from None
        except UserError as error:
            log.warning("a file of a run cannot be read", key=artifact.key, reason=str(error))
            raise Problem(503, texts.FILE_UNREADABLE.format(name=entry.name)) from error
        if download.sha256 != entry.sha256:
            raise Problem(410, texts.FILE_REPLACED.format(name=entry.name))
        file.seek(0)


def download_type(name: str) -> str:
    """Return the type of the stored bytes of an artifact, which may be compressed."""
    if name != plain_name(name):
        return "application/gzip" if name.endswith(".gz") else "application/zstd"
    return media_type(name) or OTHER_TYPE
