"""The workflow in docs/labs-on-request.md gets a token that may act for the lab."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from aiohttp import web

from tests.bucket import World
from tests.conversations.device_lab import PUBLIC_URL, device_lab
from tests.serving import served
from tests.waiting import DEADLINE

GUIDE = Path(__file__).parents[2] / "docs/labs-on-request.md"
REQUEST_TOKEN = "what GitHub gives to a job with id-token: write"


async def test_the_documented_script_gets_a_token_that_may_act_for_the_lab(tmp_path: Path, aws_world: World) -> None:
    match = re.search(r"<!-- script: oidc-token -->\n```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    script = tmp_path / "oidc-token"
    script.write_text(match[1])
    script.chmod(0o755)
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as lab:

        async def issue(request: web.Request) -> web.Response:
            # https://docs.github.com/actions/reference/security/oidc#methods-for-requesting-the-oidc-token
            if request.headers["Authorization"] != f"bearer {REQUEST_TOKEN}":
                raise web.HTTPUnauthorized
            token = lab.issuer.token(aud=request.query["audience"], event_name="workflow_dispatch")
            return web.json_response({"count": 1, "value": token})

        app = web.Application()
        app.router.add_get("/token", issue)
        async with served(app) as url:
            environment = {
                "PATH": os.environ["PATH"],
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"{url}/token?api-version=2.0",
            }
            process = await asyncio.create_subprocess_exec(script, env=environment, stdout=asyncio.subprocess.PIPE)
            printed, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
        assert process.returncode == 0
        assert f"audience={PUBLIC_URL}" in match[1]
        await lab.asked_for()
        assert (await lab.claim(token=printed.decode().strip()))["job"] == "job"
