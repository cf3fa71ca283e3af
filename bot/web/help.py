"""`GET /help`: the commands as a page, which answers to mistyped commands link where `public_url` is set."""

from __future__ import annotations

from aiohttp import web
from markdown_it import MarkdownIt

from bot.web.openapi import Answer, Operation

PATH = "/help"
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Commands</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328 }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ border: 1px solid #d1d9e0; padding: .4rem .7rem; text-align: left; vertical-align: top }}
td:nth-child(3) {{ min-width: 9rem }}
code {{ background: #f0f1f3; border-radius: .3rem; padding: .1rem .3rem; white-space: nowrap }}
</style>
<h1>Commands</h1>
{body}
"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "max-age=300",
    "X-Content-Type-Options": "nosniff",
}


def operation(markdown: str) -> Operation:
    """Return the route that shows a Markdown text, rendered once, with any HTML in it escaped."""
    page = PAGE.format(body=MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown))

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html", headers=HEADERS)

    return Operation("GET", PATH, "The commands, as a page", show, {200: Answer("It", media_type="text/html")})
