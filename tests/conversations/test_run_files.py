"""The log and other files of a run: from the lab's bucket to its pages, and to nobody who may not see them."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from nightjar_formats.model import RunKey
from yarl import URL

from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import run_with_artifacts
from bot.web.problems import Problem
from handlers.dashboard.run.artifacts import ArtifactReader, RunArtifact
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS
from tests.bucket import World
from tests.conversations.lab import LAB, TARGET, TEST_FILE, LabTown, junit, lab_town
from tests.conversations.town import REPOSITORY
from tests.conversations.uploads import upload_lab

ADD, SUB = f"{TEST_FILE}::test_add", f"{TEST_FILE}::test_sub"
HTML = "<script>alert(1)</script><img src=x onerror=alert(2)> \N{RIGHT-TO-LEFT OVERRIDE}лог"
LOG = "\n".join(
    [f"line {number}" for number in range(1, 1500)] + [f"FAILED {ADD} - \x1b[31mboom\x1b[0m", HTML]
).encode()
PNG = b"\x89PNG\r\n\x1a\n...."
FILES = {
    "log.txt": LOG,
    "notes.log.gz": gzip.compress(b"FAILED test_add\n"),
    "plot.png": PNG,
    "a+b.json": b'{"a": "<b>"}',
}
TYPES = {".txt": "text/plain", ".gz": "text/plain", ".png": "image/png", ".json": "application/json"}
REPORTS = {"te.xml": junit(test_add="boom", test_sub="crashed", test_mul="passed")}


def entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return the entries of artifacts in a manifest."""
    return [
        {
            "name": name,
            "type": TYPES[f".{name.rpartition('.')[2]}"],
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in files.items()
    ]


def uploaded(lab: LabTown, sha: str, files: Mapping[str, bytes] = FILES, **changes: Any) -> str:
    """Upload a run with artifacts; return its folder."""
    folder = f"results/{REPOSITORY}/{LAB}/{TARGET}/{sha}/run-{lab.runs + 1}/"
    for name, content in files.items():
        lab.bucket.put(folder + name, content)
    return lab.upload(sha, REPORTS, artifacts=entries(files), **changes)


class Reader:
    """Somebody who reads pages: with a browser, or through the API."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self._url, self._client = url, client

    async def get(self, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Ask for a path, as it is written."""
        sent = {"Accept": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self._client.get(URL(self._url + path, encoded=True), headers=sent, allow_redirects=False) as answer:
            return answer.status, answer.headers, await answer.read()

    async def page(self, path: str) -> str:
        """Return the HTML of a page."""
        status, _, body = await self.get(path)
        assert status == 200, (path, body)
        return body.decode()

    async def api(self, path: str) -> Any:
        """Return the JSON twin of a page."""
        status, _, body = await self.get(f"/api/v1/repos{path.removeprefix('/r')}")
        assert status == 200, (path, body)
        return json.loads(body)


async def test_a_run_shows_its_log_and_files_as_what_they_are(sqlite_url: str, aws_world: World) -> None:
    async with lab_town(sqlite_url, aws_world) as lab, aiohttp.ClientSession() as client:
        reader, sha = Reader(lab.town.url, client), lab.nightly_run()
        folder = uploaded(lab, sha)
        await lab.settle()
        run = f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{sha}/run-1"
        page, twin = await reader.page(run), await reader.api(run)
        assert not twin["files"]["expired"]
        listed = twin["files"]["artifacts"]
        assert [(file["name"], file["media_type"], file["is_log"]) for file in listed] == [
            ("log.txt", "text/plain", True),
            ("a+b.json", "application/json", False),
            ("notes.log.gz", "text/plain", False),
            ("plot.png", "image/png", False),
        ]
        for file in listed:
            assert f'href="{file["page"]}"' in page
            assert f'href="{file["page"]}/raw"' in page
        assert f'href="{run}/files/log.txt?id' not in page
        assert f"{run}/files/log.txt?test={quote(ADD, safe='')}#named" in page, "each failing test leads to its line"

        # The log: escaped, with anchors; the line of the test is marked, on the second part.
        page, text = (
            await reader.page(f"{run}/files/log.txt?test={quote(ADD)}"),
            await reader.api(f"{run}/files/log.txt"),
        )
        assert '<tr id="L1500" class="named"><td class="num"><span id="named"></span><a href="#L1500"' in page
        assert f"FAILED {ADD} - boom<" in page, "without the codes of colors"
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page
        assert "it names 1 of 2 failing tests, the first " in page
        assert (text["total_lines"], len(text["lines"]), text["next"], text["previous"]) == (1501, 1000, 1001, None)
        assert text["named_tests"] == [{"test": ADD, "line": 1500}]
        assert "".join(part["text"] for part in text["answer"]) == (
            "log.txt has 1,501 lines; it names 1 of 2 failing tests, the first in line 1,500."
        )
        assert f" It does not name {SUB}.</p>" in await reader.page(f"{run}/files/log.txt?test={quote(SUB)}")
        assert "FAILED test_add" in await reader.page(f"{run}/files/notes.log.gz")
        assert '<img class="shown" src=' in await reader.page(f"{run}/files/plot.png")
        assert "{&#34;a&#34;: &#34;&lt;b&gt;&#34;}" in await reader.page(f"{run}/files/a%2Bb.json")

        # The files as they are: never a page, whatever they hold and whoever asks.
        kinds = {"log.txt": "text/plain; charset=utf-8", "notes.log.gz": "application/gzip", "plot.png": "image/png"}
        for name, kind in {**kinds, "a+b.json": "application/json"}.items():
            for path in (f"{run}/files/{name}/raw", f"/api/v1/repos{run[2:]}/files/{name}/raw"):
                status, headers, body = await reader.get(path, Range="bytes=0-3", Accept_Encoding="identity")
                assert (status, body, headers["Content-Type"]) == (200, FILES[name], kind)
                assert headers["Content-Disposition"] == f'attachment; filename="{name}"'
                assert headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
                assert (headers["X-Content-Type-Options"], headers["Accept-Ranges"]) == ("nosniff", "none")
                assert "Content-Encoding" not in headers
                assert (await reader.get(path, If_None_Match=headers["ETag"]))[0] == 304
        async with client.head(f"{lab.town.url}{run}/files/plot.png/raw") as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(PNG)))

        # An address names only what is stored about the run.
        for name in ("te.xml", "manifest.json", "..%2Fmanifest.json", "%2e%2e", "log.txt%00", "x.txt", "log.txt%2Fraw"):
            for suffix in ("", "/raw"):
                assert (await reader.get(f"{run}/files/{name}{suffix}"))[0] in (400, 404), name
        assert (await reader.get(f"{run}/files/log.txt?line=0"))[0] == 400
        assert (await reader.get(f"{run}/files/log.txt/raw?x=1"))[0] == 400

        # The bucket has the file of the manifest, or no file is shown.
        lab.bucket.put(f"{folder}plot.png", PNG + b"<script>")
        lab.bucket.put(f"{folder}notes.log.gz", FILES["notes.log.gz"][:-1] + b"x")
        lab.bucket.s3.delete_object(Bucket=lab.bucket.name, Key=f"{folder}a+b.json")
        for name, reason in {
            "plot.png": "is not shown",
            "notes.log.gz": "is not shown",
            "a+b.json": "lifecycle",
        }.items():
            status, _, body = await reader.get(f"{run}/files/{name}/raw", Accept="*/*")
            assert (status, reason in body.decode()) == (410, True), body

        # After `keep_files`, only the names are left.
        lab.time.ahead += 90 * 86_400 + 600
        assert (await reader.get(f"{run}/files/log.txt"))[0] == 410
        status, _, body = await reader.get(f"{run}/files/log.txt/raw", Accept="*/*")
        assert (status, "shown for 90d (`results.keep_files` in app.yaml)" in body.decode()) == (410, True)
        expired = await reader.page(run)
        assert "The files of this run expired" in expired
        assert "/files/log.txt" not in expired


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_with_tables"])
async def test_the_files_of_a_run_are_listed_whatever_becomes_of_its_report(
    database: str, request: pytest.FixtureRequest, aws_world: World
) -> None:
    async with lab_town(request.getfixturevalue(database), aws_world) as lab, aiohttp.ClientSession() as client:
        reader, sha = Reader(lab.town.url, client), lab.nightly_run()
        log = {"log.txt": b"Segmentation fault\n"}
        uploaded(lab, sha, log, without=("te.xml",))  # its report may still arrive
        lab.bucket.put(f"results/{REPOSITORY}/{LAB}/{TARGET}/{sha}/run-2/log.txt", log["log.txt"])
        lab.upload(sha, {"te.txt": b"not a report"}, artifacts=entries(log))
        foreign_sha = "e" * 40
        uploaded(lab, foreign_sha, log)  # no commit that labs should test
        await lab.settle()
        for run, state in (("run-1", "waiting"), ("run-2", "incomplete")):
            twin = await reader.api(f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{sha}/{run}")
            assert twin["run"]["state"] == state
            assert [file["name"] for file in twin["files"]["artifacts"]] == ["log.txt"]
        assert "If it is a log, send it as log.txt beside a report" in twin["run"]["reason"]
        twin = await reader.api(f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{foreign_sha}/run-3")
        assert (twin["run"]["state"], twin["files"]) == ("refused", None)


async def test_the_files_of_a_private_repository_are_for_those_who_may_see_it(
    sqlite_url: str, aws_world: World
) -> None:
    async with lab_town(sqlite_url, aws_world) as lab, aiohttp.ClientSession() as client:
        reader, sha = Reader(lab.town.url, client), lab.nightly_run()
        uploaded(lab, sha)
        await lab.settle()
        run = f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{sha}/run-1"
        assert (await reader.get(f"{run}/files/log.txt/raw"))[0] == 200
        lab.town.repo.privatize("octocat")
        await lab.town.quiet()
        for suffix in ("", "/raw"):
            assert (await reader.get(f"{run}/files/log.txt{suffix}"))[0] == 404
            assert (await reader.get(f"/api/v1/repos{run[2:]}/files/log.txt{suffix}"))[0] == 401


async def test_files_sent_through_the_bot_are_shown_from_the_folder_beside_the_database(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    async with upload_lab(sqlite_url) as lab, aiohttp.ClientSession() as client:
        files = {**REPORTS, "log.txt": LOG}
        upload = await lab.begin(files)
        manifest = lab.manifest(REPORTS, artifacts=entries({"log.txt": LOG}))
        assert (await lab.send(upload, "te.xml", REPORTS["te.xml"]))[0] == 204
        status, problem = await lab.call(f"runs/{upload}/manifest", manifest)
        assert (status, "log.txt" in problem["detail"]) == (409, True), "the log has not arrived"
        assert (await lab.send(upload, "log.txt", LOG))[0] == 204
        assert (await lab.call(f"runs/{upload}/manifest", manifest))[0] == 202
        await lab.town.quiet()
        reader = Reader(lab.town.url, client)
        path = f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{lab.sha}/run-1/files/log.txt"
        assert (await reader.get(f"{path}/raw"))[2] == LOG
        # A few readers at once; more of them come back later, and nothing is left over.
        artifacts = ArtifactReader(DashboardParts.of(lab.town.bot.services), most_bytes=3 * len(LOG))
        key = RunKey(REPOSITORY, LAB, TARGET, lab.sha, "run-1")
        run, (entry,) = lab.town.bot.services.part(RESULTS).store.read(run_with_artifacts, key)
        config = lab.town.bot.config.repository(REPOSITORY)
        results = config.of(LAB_RESULTS) if config else None
        assert run is not None
        assert results is not None
        async with AsyncExitStack() as readers:
            for _ in range(3):
                await readers.enter_async_context(artifacts.fetched(RunArtifact(run, entry, results)))
            with pytest.raises(Problem) as busy:
                await readers.enter_async_context(artifacts.fetched(RunArtifact(run, entry, results)))
            assert (busy.value.status, busy.value.headers) == (503, {"Retry-After": "5"})
        async with artifacts.fetched(RunArtifact(run, entry, results)) as file:
            assert file.read() == LOG
        bodies = await asyncio.gather(*(reader.page(f"{path}?line={line}") for line in (1, 1001, 1)))
        assert [f'id="L{line}"' in body for line, body in zip((1, 1001, 1), bodies, strict=True)] == [True] * 3
