"""What all pages share: previews for chats, addresses with a slash too many, the icon, and the reference of the API."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from urllib.parse import unquote

import pytest

from handlers.dashboard.grid.picture import COLORS, GRAY, HEIGHT, PALETTE, RED, WIDTH, picture
from handlers.dashboard.shared.cells import CellState
from tests.handlers.dashboard.nightly_runs import REPOSITORY
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site
from tests.handlers.dashboard.test_statements import ADDRESSES, PARTS

pytestmark = pytest.mark.asyncio(loop_scope="session")
HERE = f"/r/{REPOSITORY}"
PUBLIC_URL = "https://ci.example.org"


async def test_an_address_with_slashes_at_its_end_leads_to_the_page(site: DashboardSite) -> None:
    for path, queries in ADDRESSES.items():
        address = path.format(**PARTS)
        if address != "/":
            status, headers, _ = await site.get(f"{address}/{queries[-1]}")
            assert (status, unquote(headers.get("Location", ""))) == (308, unquote(address + queries[-1])), path
    for path in (f"/{HERE}//", "/help/"):
        status, headers, _ = await site.get(path)
        assert (status, headers["Location"]) == (308, f"/{path.strip('/')}")
    for path in ("//example.org/", "//example.org/r", "/nothing/", "/static/", f"{HERE}/nothing/"):
        assert (await site.get(path))[0] == 404, path
    async with site.client.post(f"{site.url}/help/", allow_redirects=False) as answer:
        assert answer.status == 404


async def test_programs_that_read_no_page_find_the_icon(site: DashboardSite) -> None:
    status, headers, _ = await site.get("/favicon.ico")
    assert status == 302
    status, icon_headers, _ = await site.get(headers["Location"])
    assert (status, icon_headers["Content-Type"].partition(";")[0]) == (200, "image/svg+xml")


async def test_a_link_to_a_page_has_a_preview_with_absolute_addresses(tmp_path: Path, site: DashboardSite) -> None:
    async with dashboard_site(tmp_path, config=f"public_url: {PUBLIC_URL}/\n{CONFIG}") as public:
        _, _, page = await public.get(f"{HERE}/labs?&&")
        status, headers, _ = await public.get(f"{HERE}/grid.png", If_None_Match="*")
    sentence = "1 of 2 labs is late: hubot-lab has not reported for 3 days."
    assert f'<meta name="description" content="{sentence}">' in page
    assert f'<meta property="og:description" content="{sentence}">' in page
    assert f'<meta property="og:title" content="Labs of {REPOSITORY}">' in page
    assert f'<meta property="og:image" content="{PUBLIC_URL}{HERE}/grid.png">' in page
    assert f'<meta property="og:url" content="{PUBLIC_URL}{HERE}/labs">' in page
    assert f'title="Regressions in {REPOSITORY}" href="{PUBLIC_URL}{HERE}/regressions.atom">' in page
    assert (status, headers["Cache-Control"]) == (304, "public, max-age=300")
    # Nobody knows where the pages are without `public_url`: the name of the host comes from the client.
    assert "og:image" not in (await site.get(HERE))[2]
    _, _, hostile = await site.get('/search?q="><script>')
    assert '"><script>' not in hostile


async def test_the_picture_has_the_colors_of_the_grid(site: DashboardSite) -> None:
    async with site.client.get(f"{site.url}{HERE}/grid.png") as answer:
        assert (answer.status, answer.content_type) == (200, "image/png")
        body = await answer.read()
    _, grid = await site.json(f"/api/v1/repos/{REPOSITORY}/grid")
    assert body[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", body[16:24]) == (WIDTH, HEIGHT)
    start = body.index(b"IDAT")
    pixels = zlib.decompress(body[start + 4 : start + 4 + struct.unpack(">I", body[start - 4 : start])[0]])
    assert len(pixels) == HEIGHT * (WIDTH + 1)
    lines = [pixels[place : place + WIDTH + 1] for place in range(0, len(pixels), WIDTH + 1)]
    assert max(pixels) < len(PALETTE) // 3
    new_failures = {cell["state"] for cell in grid["rows"][0]["cells"]}
    middle = lines[50]
    assert (RED in middle) == ("new-failure" in new_failures)
    assert len(body) < 20_000
    assert len(picture([])) < 2_000
    assert {state.value for state in set(CellState) - set(COLORS)} == {"skipped", "missing", "waiting", "absent"}
    assert GRAY in set(pixels)
    assert (await site.get("/r/octocat/docs/grid.png", Accept="*/*"))[0] == 200
    assert (await site.get("/r/octocat/secret/grid.png"))[0] == 404


async def test_the_reference_describes_each_route_of_the_api_and_its_links_lead_somewhere(site: DashboardSite) -> None:
    status, _, page = await site.get("/api")
    assert status == 200
    _, document = await site.json("/api/v1/openapi.json")
    for path, item in document["paths"].items():
        if path.startswith("/api/"):
            for method, operation in item.items():
                assert f'<section class="card" id="{operation["operationId"]}"' in page, path
                assert f"<code>{method.upper()} {path}</code></h2>" in page
    anchors = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    assert 'curl "$NIGHTJAR_URL/api/v1/repos/octocat/compiler/tests?id=tests/test_math.py::test_softmax"' in (
        page.replace("&#34;", '"').replace("&#39;", "'").replace("%3A%3A", "::")
    )
    assert 'href="/api"' in (await site.get(HERE))[2]
