"""Stylesheets, scripts and pictures of the pages, under names that hold a digest of what is in them.

A file that changes gets another address, so browsers may keep each one for a year.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from aiohttp import hdrs, web

from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.problems import Problem
from bot.web.texts import NO_PAGE

FOLDER = Path(__file__).parent / "static"
PATH = "/static/"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The kinds of files that are served."""
DIGEST_LENGTH = 10
ICON, ICON_PATH = "icon.svg", "/favicon.ico"
FOR_A_DAY = "public, max-age=86400"
FOR_A_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load, as it is and compressed."""

    media_type: str
    body: bytes
    compressed: bytes


class Assets:
    """All files of a folder, read once."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._addresses: dict[str, str] = {}
        self._assets: dict[str, Asset] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix in TYPES:
                self._add(path.name, path.read_bytes())

    @property
    def addresses(self) -> Mapping[str, str]:
        """The address of each file by its name in the folder."""
        return self._addresses

    def _add(self, name: str, body: bytes) -> None:
        stem, _, suffix = name.rpartition(".")
        served = f"{stem}.{hashlib.sha256(body).hexdigest()[:DIGEST_LENGTH]}.{suffix}"
        self._addresses[name] = PATH + served
        self._assets[served] = Asset(TYPES[f".{suffix}"], body, gzip.compress(body, mtime=0))

    def operations(self) -> list[Operation]:
        """Return the routes."""
        return [
            Operation(
                "GET",
                f"{PATH}{{name}}",
                "A file that the pages load",
                self._answer,
                {200: ResponseSchema("The file", media_type="text/css"), 404: problem("There is no such file")},
                [Parameter("name", "Its name, with a digest of its content.", {"type": "string"})],
            ),
            Operation(
                "GET",
                ICON_PATH,
                "The icon of the pages, where programs look for it that read no page",
                self._icon,
                {302: ResponseSchema("The icon is there", media_type="")},
            ),
        ]

    async def _icon(self, _: web.Request) -> web.Response:
        headers = {"Location": self._addresses[ICON], "Cache-Control": FOR_A_DAY}
        return web.Response(status=HTTPStatus.FOUND, headers=headers)

    async def _answer(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            raise Problem(404, NO_PAGE)
        headers = {
            "Cache-Control": FOR_A_YEAR,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        body = asset.body
        if accepts_gzip(request):
            body, headers["Content-Encoding"] = asset.compressed, "gzip"
        return web.Response(body=body, content_type=asset.media_type, charset="utf-8", headers=headers)


def accepts_gzip(request: web.Request) -> bool:
    """Say whether a client reads gzip: https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding."""
    for part in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
