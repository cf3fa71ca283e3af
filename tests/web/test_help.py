"""The page that lists the commands."""

from __future__ import annotations

from tests.web.conftest import Site


async def test_the_commands_are_a_page(site: Site) -> None:
    async with site.client.get(f"{site.url}/help") as answer:
        page = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/html")
    assert "<table>" in page
    assert "<code>@ci help</code>" in page
