"""`/r/{owner}/{repo}/grid.png`: the colors of a repository's grid, which chats show beside a link to its pages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from bot.web.page_files import PageFile
from handlers.dashboard.grid.page import COLUMNS, GridQuery, read_grid
from handlers.dashboard.grid.rows import Folders
from handlers.dashboard.shared.cells import CellState
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_of
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

SECONDS = 300
"""Seconds that caches may keep the picture: as long as `DashboardParts.moment` stays the same."""
WIDTH, HEIGHT = 1200, 630
"""The size in which chats show a picture without cropping it."""
MOST_ROWS = 12
MARGIN, GAP, EDGE = 40, 8, 5
PALETTE = bytes.fromhex("ffffff 1d6b3a e6f2e8 b3261e fbe7e4 7a4b00 fcf0d9 6a3fa0 f0e9f8 a9aea5 f5f6f4")
PAPER, GREEN, PALE_GREEN, RED, PALE_RED, AMBER, PALE_AMBER, VIOLET, PALE_VIOLET, GRAY, PALE_GRAY = range(11)
"""The colors of the light stylesheet, by their place in `PALETTE`."""
COLORS = {
    CellState.PASS: (PALE_GREEN, GREEN),
    CellState.NEW: (RED, RED),
    CellState.STILL: (PALE_RED, RED),
    CellState.UNJUDGED: (PAPER, RED),
    CellState.KNOWN: (PAPER, VIOLET),
    CellState.FLAKY: (PALE_VIOLET, VIOLET),
    CellState.INFRA: (PALE_AMBER, AMBER),
    CellState.PART: (PAPER, AMBER),
    CellState.NONE: (PAPER, PAPER),
}
"""The fill and the edge of a cell in each state; `OTHER` for the others, which say nothing about the code."""
OTHER = (PALE_GRAY, GRAY)


def grid_picture(parts: DashboardParts) -> PageFile:
    """Return the picture of a repository's grid."""
    folders = Folders()

    def draw(connection: sa.Connection, name: str, settings: RepositoryConfig) -> bytes:
        page = read_grid(connection, name, settings, GridQuery(), parts.moment(), folders)
        return picture([[cell.state for cell in row.cells] for row in page.rows])

    async def load(request: PageRequest) -> bytes:
        name, settings = settings_of(parts, request.repository)
        if settings.of(LAB_RESULTS) is None:
            return picture([])
        return await request.pages.run(parts.results.store.read, draw, name, settings)

    return PageFile(
        path="/r/{owner}/{repo}/grid.png",
        summary="The colors of the grid as a picture",
        media_type="image/png",
        load=load,
        seconds=SECONDS,
        content=content_of_results(parts),
    )


def picture(rows: Sequence[Sequence[CellState]]) -> bytes:
    """Draw rows of cells, newest last, as a PNG with a palette (https://www.w3.org/TR/png-3/)."""
    rows = rows[:MOST_ROWS]
    width = (WIDTH - 2 * MARGIN) // COLUMNS
    height = (HEIGHT - 2 * MARGIN) // max(len(rows), 4)
    # Each line of pixels begins with the number of its filter, 0 for none.
    blank = bytes(1 + WIDTH)
    lines = [blank] * MARGIN
    for row in rows:
        edge, inner = (_line(row, width, inside=inside) for inside in (False, True))
        cell_height = height - GAP
        lines += [edge] * EDGE + [inner] * (cell_height - 2 * EDGE) + [edge] * EDGE + [blank] * GAP
    lines += [blank] * (HEIGHT - len(lines))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    contents = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b""))
    chunks = (struct.pack(">I", len(data)) + kind + data + _checksum(kind + data) for kind, data in contents)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def _line(row: Sequence[CellState], width: int, *, inside: bool) -> bytes:
    """Draw a line of pixels through a row of cells: `inside` of their edges, or along them."""
    pixels = bytearray(1 + MARGIN)
    for state in reversed(row):
        fill, edge = COLORS.get(state, OTHER)
        side = bytes([edge]) * EDGE
        pixels += side + bytes([fill if inside else edge]) * (width - GAP - 2 * EDGE) + side + bytes(GAP)
    return bytes(pixels.ljust(1 + WIDTH, b"\0"))
