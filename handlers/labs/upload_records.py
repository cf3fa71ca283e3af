"""What the bot remembers of uploads: which files a run will have, which have arrived, and how much a lab sent today."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from nightjar_formats.model import RunKey
from nightjar_formats.runs.manifest import FileEntry

from bot.core.utc import iso_utc
from bot.engine.records import Key, Record
from bot.results.ingest.admission import check_quota

if TYPE_CHECKING:
    from bot.engine.records import Records
    from bot.results.settings.results import Lab

UPLOAD_SECONDS = 86_400.0
"""Seconds for which an upload may be continued."""


@dataclass(frozen=True, slots=True)
class LabUpload:
    """An upload of a run: its files with sizes and digests, and the names of those that have `received`."""

    repository: str
    target: str
    sha: str
    run_id: str
    files: tuple[FileEntry, ...]
    expires_at: float
    received: tuple[str, ...] = ()

    def run_key(self, lab: str) -> RunKey:
        """Return the key of the run."""
        return RunKey(self.repository, lab, self.target, self.sha, self.run_id)

    @property
    def bytes(self) -> int:
        """Return the bytes of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def id(self) -> str:
        """Return the same ID for the same run with the same files."""
        description = [self.repository, self.target, self.sha, self.run_id, [asdict(file) for file in self.files]]
        return hashlib.sha256(json.dumps(description).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class UploadsOfDay:
    """How many uploads a lab has begun on a `day` (UTC), and their bytes, whether or not they were finished."""

    day: str
    runs: int = 0
    bytes: int = 0


UPLOAD = Record("lab-upload", 1, LabUpload, "an upload of a lab through the bot", days=2)
UPLOADS_OF_DAY = Record("lab-uploads-of-day", 1, UploadsOfDay, "how much a lab has uploaded today", days=2)


def upload_key(lab: str, upload_id: str) -> Key[LabUpload]:
    """Return the key of an upload."""
    return UPLOAD.of(lab, upload_id)


async def count_upload(records: Records, name: str, lab: Lab, upload: LabUpload, moment: float) -> None:
    """Count an upload of the lab `name` at a moment in seconds since 1970. Raises `Refused` beyond its daily quota.

    Stored runs count by themselves. This also bounds what a lab leaves behind that never sends a manifest.
    """
    today = iso_utc(moment)[:10]

    def counted(uploads: UploadsOfDay | None) -> UploadsOfDay:
        if uploads is None or uploads.day != today:
            uploads = UploadsOfDay(today)
        check_quota(lab, uploads.runs, uploads.bytes, upload.bytes)
        return UploadsOfDay(today, uploads.runs + 1, uploads.bytes + upload.bytes)

    await records.update(UPLOADS_OF_DAY.of(name, upload.repository), counted)


async def note_received(records: Records, key: Key[LabUpload], name: str) -> None:
    """Remember that a file of an upload has arrived."""

    def noted(upload: LabUpload | None) -> LabUpload | None:
        if upload is None or name in upload.received:
            return None
        return replace(upload, received=(*upload.received, name))

    await records.update(key, noted)
