"""A bare bot to compare with: it answers a command with the same requests as the others, and stores nothing.

aiohttp, gidgethub and uvloop, as the bot has them, and no queue, limits, decisions or log: the least that a command
costs in Python. `python -m benchmarks.bare_commands API_URL APP_ID`, with the App's key in `PRIVATE_KEY`, prints its
port and serves until standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from aiohttp import web
from gidgethub.aiohttp import GitHubAPI
from gidgethub.apps import get_installation_access_token

from benchmarks import processes
from benchmarks.traffic import COMMAND
from benchmarks.webhook_server import serve
from bot.core.event_loop import run_on_fastest_loop
from sandbox import App

HELP = "| `@ci help` | Shows the commands, and who may use each of them. |\n" * 45
"""As long as the bot's answer."""


def serving(app: App, api_url: str) -> AbstractAsyncContextManager[processes.ServerProcess]:
    """Run the bot for an App in its own process; yields its port and process."""
    environment = os.environ | {"PRIVATE_KEY": app.private_key}
    return processes.running(sys.executable, "-m", "benchmarks.bare_commands", api_url, str(app.id), env=environment)


class BareBot:
    """Answers commands through one session; a token of each installation is fetched once."""

    def __init__(self, session: aiohttp.ClientSession, api_url: str, app_id: str) -> None:
        self._session, self._api_url, self._app_id = session, api_url, app_id
        self._clients = dict[int, asyncio.Task[GitHubAPI]]()
        self._answers = set[asyncio.Task[None]]()

    async def accept(self, request: web.Request, body: bytes) -> None:
        """Begin to answer the command of a webhook."""
        payload = json.loads(body)
        is_comment = request.headers["X-GitHub-Event"] == "issue_comment" and payload["sender"]["type"] != "Bot"
        if is_comment and COMMAND in payload["comment"]["body"]:
            answer = asyncio.create_task(self._answer(payload))
            self._answers.add(answer)
            answer.add_done_callback(self._answers.discard)

    async def _answer(self, payload: Any) -> None:
        installation = payload["installation"]["id"]
        if installation not in self._clients:
            self._clients[installation] = asyncio.create_task(self._client(installation))
        github = await self._clients[installation]
        repository, number = f"/repos/{payload['repository']['full_name']}", payload["issue"]["number"]
        comment_id = payload["comment"]["id"]
        mark = f"<!-- bare:answer:{comment_id} -->"
        reactions = f"{repository}/issues/comments/{comment_id}/reactions"
        comments = f"{repository}/issues/{number}/comments"
        await github.getitem(f"{repository}/pulls/{number}")
        await github.post(reactions, data={"content": "eyes"})
        if not any([comment["body"].startswith(mark) async for comment in github.getiter(f"{comments}?per_page=100")]):
            await github.post(comments, data={"body": f"{mark}\n{HELP}"})
        await github.post(reactions, data={"content": "+1"})

    async def _client(self, installation: int) -> GitHubAPI:
        app = GitHubAPI(self._session, "bare", base_url=self._api_url)
        token = await get_installation_access_token(
            app, installation_id=str(installation), app_id=self._app_id, private_key=os.environ["PRIVATE_KEY"]
        )
        return GitHubAPI(self._session, "bare", base_url=self._api_url, oauth_token=token["token"])


async def _serve(api_url: str, app_id: str) -> None:
    async with aiohttp.ClientSession(trust_env=False) as session:
        await serve(BareBot(session, api_url, app_id).accept)


if __name__ == "__main__":
    run_on_fastest_loop(_serve(*sys.argv[1:]))
