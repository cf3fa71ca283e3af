"""`POST /api/v1/labs/{lab}/runs` and what follows: a lab uploads a run through the bot, without a bucket of its own.

A lab begins an upload with the names, sizes and digests of all files, sends the files, and then the manifest. All of it
is safe to repeat. Whether the run is admitted is decided as for a run in a bucket, before the first file is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from aiohttp import web
from nightjar_formats.limits import MAX_MANIFEST_BYTES
from nightjar_formats.model import FILE_NAME, MANIFEST, RunKey
from nightjar_formats.refused import Refused
from nightjar_formats.runs.manifest import FileEntry, read_manifest

from bot.aws.client import in_thread
from bot.core.events import Repository
from bot.core.utc import iso_utc
from bot.web.app import CONNECTIONS
from bot.web.bodies import Bodies, HeldBody, request_body
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from bot.web.texts import BODY_INCOMPLETE
from handlers.labs import texts
from handlers.labs.answering import RETRY_SECONDS, LabAnswers, json_answer, read_body
from handlers.labs.bodies import AdmissionAnswer, AdmissionBody, BegunUpload, StoredUpload, UploadBody
from handlers.labs.upload_records import UPLOAD_SECONDS, LabUpload, count_upload, note_received, upload_key
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.aws.bucket import RunStore
    from bot.config import Config, RepositoryConfig
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Lab
    from handlers.labs.callers import LabCaller
    from handlers.results.ingest import IngestService
    from handlers.results.watch import Watch

MOST_BODY = 128 * 1024
"""The most bytes of a body that begins an upload: 320 files with names of 200 characters."""
MOST_BODIES = 4 << 20
"""The most bytes of all bodies, besides files, that arrive at the same time."""
MOST_ARRIVING, MOST_OF_LAB = 16, 4
"""The most files that arrive at the same time, of all labs and of one lab; each takes two MiB of memory."""
PIECE = 1 << 20
"""Bytes that are written to the disk at once."""
STALL_SECONDS = 30.0
"""Seconds within which the next byte of a file must arrive."""
UPLOAD_ID = r"[0-9a-f]{32}"
NO_RUN = "admission"
"""The run ID of a question that is not about a run."""


class UploadRoutes:
    """The routes of uploads. `clock` returns seconds since 1970."""

    def __init__(
        self,
        answers: LabAnswers,
        config: Config,
        records: Records,
        watch: Watch,
        ingest: IngestService,
        github_for: Callable[[str], Awaitable[GitHub]],
        clock: Callable[[], float],
    ) -> None:
        self._answers = answers
        self._config = config
        self._records = records
        self._watch = watch
        self._ingest = ingest
        self._github_for = github_for
        self._clock = clock
        self._bodies = Bodies(MOST_BODIES, MOST_BODY)
        self._manifests = Bodies(MOST_BODIES, MAX_MANIFEST_BYTES)
        self._arriving: Counter[str] = Counter()
        """How many files of each lab are arriving."""

    def operations(self) -> list[Operation]:
        """Return the routes."""
        upload = Parameter("upload", "The upload.", {"type": "string", "pattern": f"^{UPLOAD_ID}$"})
        name = Parameter("name", "The file's name.", {"type": "string", "pattern": f"^{FILE_NAME}$"})
        refused = {422: problem("The bot does not accept the run; the detail says why")}
        of_upload = {
            404: problem("No such upload of this lab, or it has expired: begin it again"),
            409: problem("The name is taken by other content, or files are missing"),
            507: problem("The bot's disk is nearly full"),
        }
        return [
            self._answers.operation(
                "runs",
                "Begin or continue the upload of a run",
                self._begin,
                UploadBody,
                {201: ResponseSchema("Send the files", BegunUpload), 507: of_upload[507], **refused},
            ),
            self._answers.operation(
                "runs/{upload}/files/{name}",
                "Send a file of the run",
                self._file,
                {"type": "string", "format": "binary"},
                {
                    204: ResponseSchema("The file is stored", media_type=""),
                    408: problem("The file arrives too slowly"),
                    413: problem("The file is larger than announced"),
                    422: problem("The file is not the one that was announced"),
                    **of_upload,
                },
                parameters=[upload, name],
                method="PUT",
            ),
            self._answers.operation(
                "runs/{upload}/manifest",
                "Send the manifest, after all files: the bot ingests the run",
                self._manifest,
                {"type": "object"},
                {202: ResponseSchema("The run is durable", StoredUpload), **of_upload, **refused},
                parameters=[upload],
            ),
            self._answers.operation(
                "admission",
                "Ask whether the bot would accept a run, before it is tested",
                self._admission,
                AdmissionBody,
                {200: ResponseSchema("Whether it would, and why not", AdmissionAnswer)},
            ),
        ]

    async def _begin(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body = await read_body(self._bodies, request, UploadBody)
        files = tuple(FileEntry(file.name, file.bytes, file.sha256) for file in body.files)
        if twice := next((name for name, times in Counter(file.name for file in files).items() if times > 1), None):
            raise Problem(400, texts.NAMED_TWICE.format(name=twice))
        expires_at = self._clock() + UPLOAD_SECONDS
        upload = LabUpload(body.repository, body.target, body.sha, body.run_id, files, expires_at)
        key, run = upload_key(caller.lab, upload.id), upload.run_key(caller.lab)
        config = self._config_of(run, caller)
        await self._check(run, config, body.pull_request, upload.bytes)
        if await self._records.get(key) is None:
            self._store_of(config).check_space(upload.bytes)
            await count_upload(self._records, caller.lab, _lab_of(config, caller.lab), upload, self._clock())

        def begun(known_upload: LabUpload | None) -> LabUpload:
            nonlocal upload
            if known_upload is not None:
                upload = replace(known_upload, expires_at=expires_at)
            return upload

        # Compared and set: meanwhile a file of the same upload may have arrived.
        await self._records.update(key, begun)
        answer = BegunUpload(upload=upload.id, expires_at=iso_utc(expires_at), received=list(upload.received))
        return json_answer(answer, 201), "begun"

    async def _file(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        upload, config = await self._upload(request, caller)
        name = request.match_info["name"]
        entry = next((file for file in upload.files if file.name == name), None)
        if entry is None:
            raise Problem(404, texts.UNDECLARED_FILE.format(name=name[:200]))
        length = request.content_length
        if length is not None and length != entry.bytes:
            raise Problem(422, texts.OTHER_LENGTH.format(name=name, bytes=entry.bytes, length=length))
        store, run = self._store_of(config), upload.run_key(caller.lab)
        store.check_space(entry.bytes)
        async with self._place(caller.lab):
            await request_body(request)
            with store.temporary_file() as file:
                await _receive(request, entry, file)
                await store.put_once(self._key_of(run, config, name), file, sha256=entry.sha256)
        await note_received(self._records, upload_key(caller.lab, request.match_info["upload"]), name)
        return web.Response(status=204), "stored"

    async def _manifest(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        upload, config = await self._upload(request, caller)
        run, store = upload.run_key(caller.lab), self._store_of(config)
        async with HeldBody(self._manifests, request) as body:
            raw = bytes(body)
        manifest = await asyncio.to_thread(read_manifest, raw, run)
        arrived = {(file.name, file.bytes, file.sha256) for file in upload.files if file.name in upload.received}
        missing = [file.name for file in manifest.all_files if (file.name, file.bytes, file.sha256) not in arrived]
        if missing:
            raise Problem(409, texts.FILES_MISSING.format(names=", ".join(missing[:5])))
        key = self._key_of(run, config, MANIFEST)
        with store.temporary_file() as file:
            file.write(raw)
            await store.put_once(key, file, sha256=hashlib.sha256(raw).hexdigest())
        # Announced with the version that a listing reports, so that both announce the same run.
        version = (await store.head(key)).version
        await self._watch.announce_run(self._ingest.arrival_of(run, config, version), run)
        return json_answer(StoredUpload(run_id=run.run_id), 202), "stored"

    async def _admission(self, request: web.Request, caller: LabCaller) -> tuple[web.Response, str]:
        body = await read_body(self._bodies, request, AdmissionBody)
        reasons: list[str] = []
        for target in body.targets:
            run = RunKey(body.repository, caller.lab, target, body.sha or "", NO_RUN)
            try:
                await self._check(run, self._config_of(run, caller), body.pull_request, 0)
            except Refused as refused:
                reasons.append(str(refused))
        reasons = list(dict.fromkeys(reasons))
        return json_answer(AdmissionAnswer(accepted=not reasons, reasons=reasons)), "refused run" if reasons else "good"

    def _config_of(self, run: RunKey, caller: LabCaller) -> RepositoryConfig:
        """Return the settings of a run's repository. Raises `Refused` if the caller may not upload for it."""
        name = self._config.configured.name_of(run.repository)
        config = self._config.repository(run.repository) if name in caller.repositories else None
        if config is None:
            repositories = ", ".join(sorted(caller.repositories))
            raise Refused(
                texts.UNKNOWN_REPOSITORY.format(lab=caller.lab, repository=run.repository, known=repositories)
            )
        return config

    async def _check(self, run: RunKey, config: RepositoryConfig, pull_request: int | None, size: int) -> None:
        """Raise `Refused` unless the bot would ingest the run."""
        if not run.sha:
            self._ingest.check_names(run, config)
            return
        name = self._config.configured.canonical_name(run.repository)
        repository = Repository(await self._watch.repository_id(name), name, None)
        github = await self._github_for(name)
        await self._ingest.check(run, github, repository, config, pull_request=pull_request, size=size)

    async def _upload(self, request: web.Request, caller: LabCaller) -> tuple[LabUpload, RepositoryConfig]:
        """Return the upload in the address, and its repository's settings. Raises `Problem` and `Refused`."""
        upload = await self._records.get(upload_key(caller.lab, request.match_info["upload"]))
        if upload is None or upload.expires_at < self._clock():
            raise Problem(404, texts.UNKNOWN_UPLOAD)
        return upload, self._config_of(upload.run_key(caller.lab), caller)

    def _store_of(self, config: RepositoryConfig) -> RunStore:
        results = config.of(LAB_RESULTS)
        assert results is not None, "the caller's repositories have labs"
        return self._watch.source_for(results.store)

    @staticmethod
    def _key_of(run: RunKey, config: RepositoryConfig, name: str) -> str:
        results = config.of(LAB_RESULTS)
        assert results is not None, "the caller's repositories have labs"
        return f"{results.prefix}{run.folder}{name}"

    @asynccontextmanager
    async def _place(self, lab: str) -> AsyncIterator[None]:
        """Count a file that arrives. Raises `Problem` if too many do."""
        if self._arriving.total() >= MOST_ARRIVING or self._arriving[lab] >= MOST_OF_LAB:
            detail = texts.TOO_MANY_ARRIVE.format(seconds=RETRY_SECONDS)
            raise Problem(503, detail, headers={"Retry-After": str(RETRY_SECONDS)})
        self._arriving[lab] += 1
        try:
            yield
        finally:
            self._arriving[lab] -= 1


def _lab_of(config: RepositoryConfig, name: str) -> Lab:
    results = config.of(LAB_RESULTS)
    assert results is not None, "the caller's repositories have labs"
    return results.labs[name]


async def _receive(request: web.Request, entry: FileEntry, file: BinaryIO) -> None:
    """Write the body into a file. Raises `Problem` unless it is the announced content."""
    connections, digest, count, piece = request.app[CONNECTIONS], hashlib.sha256(), 0, bytearray()

    def store(chunk: bytes) -> None:
        digest.update(chunk)
        file.write(chunk)

    try:
        while True:
            async with asyncio.timeout(STALL_SECONDS):
                chunk = await request.content.readany()
            count += len(chunk)
            if count > entry.bytes:
                raise Problem(413, texts.OTHER_LENGTH.format(name=entry.name, bytes=entry.bytes, length=count))
            piece += chunk
            if len(piece) >= PIECE or not chunk:
                await in_thread(partial(store, bytes(piece)))
                piece.clear()
                connections.renew(request)
            if not chunk:
                break
    except TimeoutError:
        raise Problem(408, texts.FILE_TOO_SLOW.format(seconds=STALL_SECONDS)) from None
    except (ConnectionError, web.RequestPayloadError):
        raise Problem(400, BODY_INCOMPLETE) from None
    if digest.hexdigest() != entry.sha256:
        raise Problem(422, texts.OTHER_DIGEST.format(name=entry.name, expected=entry.sha256, found=digest.hexdigest()))
