"""`GET /help`: the commands as a page. Answers to invalid commands link it if `public_url` is set."""

from __future__ import annotations

from functools import lru_cache

from aiohttp import web
from markdown_it import MarkdownIt

from bot.web.openapi import Operation, ResponseSchema

PATH = "/help"
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Commands</title>
<style>
:root {{ --text: #1f2328; --page: #fff; --line: #d1d9e0; --code: #f0f1f3; color-scheme: light dark }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e6edf3; --page: #0d1117; --line: #3d444d; --code: #262c36 }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }}
body {{ color: var(--text); background: var(--page) }}
table {{ border-collapse: collapse }}
th, td {{ border: 1px solid var(--line); padding: .4rem .7rem; text-align: left; vertical-align: top }}
td:nth-child(3) {{ min-width: 9rem }}
code {{ background: var(--code); border-radius: .3rem; padding: .1rem .3rem; overflow-wrap: anywhere }}
/* A narrow screen shows each row as a block, so that no column is cut off. */
@media (max-width: 40rem) {{
  thead {{ display: none }}
  table, tbody, tr, td {{ display: block }}
  tr {{ border: 1px solid var(--line); margin-bottom: 1rem }}
  td {{ border: 0; min-width: 0 }}
}}
</style>
<h1>Commands</h1>
{body}
"""
# Should markup ever get into the page, it can load and run nothing.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "max-age=300",
    "X-Content-Type-Options": "nosniff",
}


def operation(markdown: str) -> Operation:
    """Return the route that shows a Markdown text, rendered once, with any HTML in it escaped."""
    page = _page(markdown)

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html", headers=HEADERS)

    return Operation("GET", PATH, "The commands, as a page", show, {200: ResponseSchema("It", media_type="text/html")})


@lru_cache(maxsize=8)
def _page(markdown: str) -> str:
    return PAGE.format(body=MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))
