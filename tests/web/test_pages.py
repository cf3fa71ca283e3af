"""Properties of every page: headers, caching, compression, limits, and readable errors."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.handlers.dashboard.site import CONFIG, dashboard_site
from tests.web.conftest import Site


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def kind(self) -> str:
        return self.headers["Content-Type"].partition(";")[0]


async def ask(site: Site, path: str, **headers: str) -> Answer:
    given_headers = {name.replace("_", "-"): text for name, text in headers.items()}
    sent = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "identity", **given_headers}
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(site.url + path, headers=sent) as answer,
    ):
        return Answer(answer.status, answer.headers, await answer.read())


async def test_a_page_loads_only_our_own_files_and_runs_no_inline_script(site: Site) -> None:
    answer = await ask(site, "/help")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.text
    assert "style=" not in text
    assert "<style" not in text
    assert text.count("<script") == text.count('<script src="/static/')


async def test_a_browser_that_has_the_page_gets_an_empty_answer(site: Site) -> None:
    first = await ask(site, "/help")
    assert first.headers["Cache-Control"] == "no-cache"
    revalidated = await ask(site, "/help", If_None_Match=first.headers["ETag"])
    assert (revalidated.status, revalidated.body) == (304, b"")
    assert revalidated.headers["ETag"] == first.headers["ETag"]
    assert (await ask(site, "/help", If_None_Match='"another"')).status == 200


async def test_pages_are_compressed_for_clients_that_accept_it(site: Site) -> None:
    plain = await ask(site, "/help", Accept_Encoding="identity")
    compressed = await ask(site, "/help", Accept_Encoding="br, gzip;q=0.8")
    refused = await ask(site, "/help", Accept_Encoding="gzip;q=0")
    assert "Content-Encoding" not in plain.headers
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.body) == plain.body == refused.body
    assert compressed.headers["Vary"] == "Accept-Encoding, Cookie"


async def test_files_have_an_address_per_content_and_are_cached_for_a_year(site: Site) -> None:
    page = (await ask(site, "/help")).text
    _, _, rest = page.partition('rel="stylesheet" href="')
    address = rest.partition('"')[0]
    answer = await ask(site, address)
    assert (answer.status, answer.kind) == (200, "text/css")
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (await ask(site, "/static/site.0000000000.css")).status == 404
    assert (await ask(site, "/static/..%2fpages.py")).status == 404


@pytest.mark.parametrize("path", ["/nothing", "/static/nothing", "/r/octocat"])
async def test_a_browser_gets_an_error_as_a_page_and_a_program_as_json(site: Site, path: str) -> None:
    answer = await ask(site, path)
    assert (answer.status, answer.kind) == (404, "text/html")
    assert "<h1>Not Found</h1>" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    status, headers, _ = await site.get(path)
    assert (status, headers["Content-Type"].partition(";")[0]) == (404, "application/problem+json")


async def test_a_wrong_method_gets_a_page_too(site: Site) -> None:
    async with site.client.post(f"{site.url}/help", headers={"Accept": "text/html"}) as answer:
        assert (answer.status, answer.content_type) == (405, "text/html")
        assert answer.headers["Allow"] == "GET, HEAD"


async def test_the_api_answers_browsers_with_json(site: Site) -> None:
    answer = await ask(site, "/api/v1/nothing")
    assert (answer.status, answer.kind) == (404, "application/problem+json")


async def test_an_address_that_requests_too_many_pages_waits_and_others_do_not(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, filled=lambda _: None, pages_per_minute=1, proxies=1) as site:
        assert (await site.get("/", X_Forwarded_For="192.0.2.1"))[0] == 200
        status, headers, page = await site.get("/", X_Forwarded_For="192.0.2.1")
        assert (status, headers["Retry-After"].isdigit()) == (429, True)
        assert f"Try again in {headers['Retry-After']} s" in page
        # What a client writes before its own address does not make it somebody else.
        assert (await site.get("/", X_Forwarded_For="198.51.100.7, 192.0.2.1"))[0] == 429
        assert (await site.get("/", X_Forwarded_For="192.0.2.2"))[0] == 200
        assert (await site.get("/", X_Forwarded_For="2001:db8::1"))[0] == 200


@pytest.mark.parametrize("path", ["/r/octocat/secret", "/r/octocat/unknown", "/r/octo%20cat/compiler"])
async def test_a_page_that_is_not_public_is_not_found(tmp_path: Path, path: str) -> None:
    async with dashboard_site(tmp_path, config=CONFIG, filled=lambda _: None) as site:
        status, _, page = await site.get(path)
        assert (status, "secret" in page) == (404, False)
