"""A bucket with any number of objects, of which the server keeps none: it computes each answer to a listing."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from aiohttp import web

from bot.app.load import parse_config
from bot.aws.bucket import Bucket
from bot.aws.client import Aws
from bot.engine.service import Engine
from bot.github.client import GitHub
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId
from bot.results.store.store import ResultsStore
from handlers.results.records import LISTED, Listed
from handlers.results.watch import SECONDS_PER_PAGE, Watch
from sandbox.bucket import ENVIRONMENT
from tests.results.uploads import LAB, REPOSITORY, TARGET, Upload, sha
from tests.serving import served
from tests.tables import with_tables

COMMITS = 400
"""Nightly runs of more than a year; the objects are those of their runs."""
NEW = COMMITS
FOLDER = f"results/{REPOSITORY}/{LAB}/{TARGET}/"
ITEM = '<Contents><Key>{key}</Key><ETag>"1"</ETag><Size>1</Size></Contents>'
CONFIG = f"""
repositories:
  {REPOSITORY}:
    results: {{bucket: device-results, labs: {{{LAB}: {{targets: [{TARGET}]}}}}}}
"""


async def _answer(request: web.Request) -> web.Response:
    prefix = request.query.get("prefix", "")
    if prefix == FOLDER and request.query.get("delimiter"):
        prefixes = (f"{FOLDER}{sha(number)}/" for number in range(COMMITS + 1))
        content = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in prefixes)
    elif prefix == f"{FOLDER}{sha(NEW)}/":
        content = ITEM.format(key=f"{prefix}run-1/manifest.json")
    else:
        raise web.HTTPBadRequest(text=f"a listing of {prefix} reads all objects")
    text = f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>{content}</ListBucketResult>'
    return web.Response(text=text, content_type="application/xml")


async def _nobody(repository: str) -> GitHub:
    raise LookupError(repository)


@asynccontextmanager
async def watching(folder: Path, objects: int) -> AsyncIterator[tuple[Watch, list[str]]]:
    """Yield the watch of a bucket with so many objects and one new run, and the prefixes that were listed.

    All objects were listed a moment ago, which takes a request for each thousand.
    """
    url, listed = with_tables(f"sqlite:///{folder}/nightjar.db"), list[str]()

    async def noted(request: web.Request) -> web.Response:
        listed.append(request.query.get("prefix", ""))
        return await _answer(request)

    app = web.Application()
    app.router.add_get("/{path:.*}", noted)
    async with served(app) as address, Engine(url) as engine:
        os.environ.update(ENVIRONMENT | {"AWS_ENDPOINT_URL": address})
        with closing(ResultsStore(url)) as store, closing(Aws()) as aws:
            store.open()
            for number in range(COMMITS):
                upload = Upload(number, {"a.py::test_one": "passed"})
                store.put(upload.run, upload.columns)
            moment = time.time()
            await engine.records.put(REPOSITORY_ID.of(REPOSITORY), RepositoryId(1))
            pause = objects / 1000 * SECONDS_PER_PAGE
            await engine.records.put(LISTED.of(REPOSITORY), Listed(moment, moment + max(pause, 60.0), moment))
            yield (
                Watch(
                    parse_config(CONFIG.encode(), "app.yaml"),
                    store,
                    engine.records,
                    engine.journal,
                    accept=engine.accept,
                    github_for=_nobody,
                    source_for=lambda name: Bucket(aws, name),
                ),
                listed,
            )
