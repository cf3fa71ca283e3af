"""The page that lists the commands."""

from __future__ import annotations

from tests.web.conftest import Site


async def test_the_commands_are_a_page_that_runs_nothing(site: Site) -> None:
    async with site.client.get(f"{site.url}/help") as answer:
        page = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "<table>" in page
    assert "<code>@ci help</code>" in page


async def test_the_page_has_a_dark_mode_and_shows_all_columns_on_a_narrow_screen(site: Site) -> None:
    async with site.client.get(f"{site.url}/help") as answer:
        page = await answer.text()
    _, _, dark = page.partition("@media (prefers-color-scheme: dark) {")
    assert "--page: #0d1117" in dark.partition("}")[0]
    assert "background: var(--page)" in page
    _, _, narrow = page.partition("@media (max-width: 40rem) {")
    assert "table, tbody, tr, td { display: block }" in narrow
    assert "nowrap" not in page
