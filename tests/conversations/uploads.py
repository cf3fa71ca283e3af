"""A lab that uploads through the bot: the bot, which may have no bucket, and the lab's calls."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from bot.aws.store_folder import StoreFolder
from bot.config.types import STORE_FOLDER
from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from bot.results.service import RESULTS
from handlers.labs.calls import LAB_CALLS
from sandbox.model.checks import CheckRun
from tests.conversations.lab import CHECK, LAB, TARGET, Moments, junit
from tests.conversations.town import REPOSITORY, Town, town

CONFIG = """
repositories:
  octocat/compiler:
    results:
      {store}
      labs:
        example-lab: {{targets: [hexagon-v73, adreno], {limits}}}
        other-lab: {{targets: [adreno]}}
"""
FILES = {"te.xml": junit(test_add="passed"), "log.xml": junit(test_sub="AssertionError")}


@dataclass
class UploadLab:
    """A bot, and a lab that uploads through it."""

    town: Town
    time: Moments
    token: str
    other_token: str
    sha: str
    client: aiohttp.ClientSession

    async def call(
        self, path: str, body: object = None, *, method: str = "POST", token: str = "", lab: str = LAB
    ) -> tuple[int, Any]:
        """Make a call as the lab; return status and body."""
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        address = f"{self.town.url}/api/v1/labs/{lab}/{path}"
        headers = {"Authorization": f"Bearer {token or self.token}"}
        async with self.client.request(method, address, data=data, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else None

    def beginning(self, contents: Mapping[str, bytes] = FILES, **changes: Any) -> dict[str, Any]:
        """Return the body that begins an upload."""
        body = {"repository": REPOSITORY, "target": TARGET, "sha": self.sha, "run_id": "run-1"}
        return {**body, "files": entries(contents), **changes}

    def manifest(self, files: Mapping[str, bytes] = FILES, **changes: Any) -> bytes:
        """Return a manifest."""
        document = {"schema": 1, "sha": self.sha, "suite": "operators", "files": entries(files), **changes}
        return json.dumps(document).encode()

    async def begin(self, files: Mapping[str, bytes] = FILES, **changes: Any) -> str:
        """Begin an upload and return its ID."""
        status, body = await self.call("runs", self.beginning(files, **changes))
        assert status == 201, body
        return str(body["upload"])

    async def send(self, upload: str, name: str, content: bytes) -> tuple[int, Any]:
        """Send a file."""
        return await self.call(f"runs/{upload}/files/{name}", content, method="PUT")

    async def upload(self, files: Mapping[str, bytes] = FILES, **changes: Any) -> None:
        """Upload a run."""
        upload = await self.begin(files, **changes)
        for name, content in files.items():
            assert (await self.send(upload, name, content))[0] == 204
        assert (await self.call(f"runs/{upload}/manifest", self.manifest(files)))[0] == 202

    def check(self) -> CheckRun:
        """Return the one check run on the commit."""
        runs = [run for suite in self.town.repo.suites for run in suite.runs if run.name == CHECK]
        (run,) = runs
        return run

    @property
    def folder(self) -> StoreFolder:
        """Return the folder beside the database."""
        store = self.town.bot.services.part(RESULTS).source_for(STORE_FOLDER)
        assert isinstance(store, StoreFolder)
        return store


def stored_names(place: Path) -> list[str]:
    """Return the names of all files in the folder beside the database."""
    return [name for _, _, names in os.walk(place / "nightjar-results") for name in names]


def entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return the entries of files in a manifest."""
    return [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    ]


@asynccontextmanager
async def upload_lab(
    database_url: str, *, store: str = "", limits: str = "runs_per_day: 5"
) -> AsyncIterator[UploadLab]:
    """Start the bot and the lab; without `store`, app.yaml names no bucket."""
    moments = Moments()
    config = CONFIG.format(store=store, limits=limits)
    async with town(database_url, config=config, now=moments) as place, aiohttp.ClientSession() as client:
        place.bot.services.part(LAB_CALLS).clock = lambda: 0.0
        sha = place.repo.push("nightly", {"tests/python/test_ops.py": "def test_add(): ...\n"}, by="octocat").sha
        tokens = TokenStore(place.bot.engine.database.connector, LAB_SCOPE)
        token, _ = await tokens.create(LAB, seconds=1e6)
        other_token, _ = await tokens.create("other-lab", seconds=1e6)
        await place.quiet()
        yield UploadLab(place, moments, token, other_token, sha, client)
