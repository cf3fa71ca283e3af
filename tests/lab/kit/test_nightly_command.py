"""`nightjar-lab nightly`: a lab asks the bot or the bucket which commit to test."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from nightjar_lab.nightly import NightlyOfBot, wait_for_nightly

from tests.bucket import World
from tests.conversations.nightly_runs import nightly_town
from tests.lab.kit.running import REPOSITORY, kit_environment, run_here, run_kit, start_kit
from tests.running import finished
from tests.serving import served

OLD, NEW = "a" * 40, "b" * 40


async def test_it_prints_the_commit_from_the_bot_and_from_the_bucket(
    sqlite_url: str, tmp_path: Path, aws_world: World
) -> None:
    async with nightly_town(sqlite_url, bucket=aws_world) as place:
        bucket = kit_environment(tmp_path, aws_world)
        bot = kit_environment(tmp_path, NIGHTJAR_URL=place.town.url)
        for env, words in ((bot, "has no nightly commit yet"), (bucket, "may not read it")):
            missing = await run_kit("nightly", env=env, cwd=tmp_path)
            assert (missing.status, missing.out, len(missing.err.splitlines())) == (1, "", 1), missing
            assert words in missing.err or "has no nightly branch" in missing.err, missing
        first = place.push("The first")
        await place.nightly_run()
        for env in (bot, bucket):
            assert await run_kit("nightly", env=env, cwd=tmp_path) == type(missing)(0, f"{first}\n", "")
        stored = json.loads((await run_kit("nightly", "--json", env=bucket, cwd=tmp_path)).out)
        assert stored == json.loads((await run_kit("nightly", "--json", env=bot, cwd=tmp_path)).out)
        assert (stored["sha"], stored["branch"], stored["previous_sha"]) == (first, "nightly", None)

        # The commit printed by --wait is remembered.
        attempts = [await run_kit("nightly", "--wait", "--timeout", "0", env=bot, cwd=tmp_path) for _ in range(2)]
        assert [(attempt.status, attempt.out) for attempt in attempts] == [(0, f"{first}\n"), (1, "")]
        assert attempts[1].err == f"no new nightly commit within 0 s; the last one is {first}\n"
        waiting = await start_kit("nightly", "--wait", "--pause", "1", env=bot, cwd=tmp_path)
        second = place.push("The second")
        await place.nightly_run()
        assert (await finished(waiting)).out == f"{second}\n"


class NightlyServer:
    """A bot that gives its answers in turn, the last one for ever, and records the tags of the requests."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._answers = list(answers)
        self.tags: list[str | None] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.tags.append(request.headers.get("If-None-Match"))
        how = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return web.Response(**how)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.answer)
        return app


def says(sha: str, tag: str = "") -> dict[str, Any]:
    return {"text": json.dumps({"sha": sha}), "headers": {"ETag": tag} if tag else {}}


async def test_waiting_is_polite() -> None:
    """An unchanged answer is not sent again, Retry-After is respected, and pauses grow while the bot is down."""
    server = NightlyServer(
        says(OLD, '"1"'),
        {"status": 304},
        {"status": 429, "headers": {"Retry-After": "90"}, "text": '{"detail": "too many calls"}'},
        {"status": 503, "headers": {"Retry-After": "nonsense"}},
        {"status": 500},
        says(OLD, '"2"'),
        says(NEW),
    )
    pauses: list[float] = []
    reports: list[str] = []
    async with served(server.app()) as url:

        def waits() -> str:
            source = NightlyOfBot(url, REPOSITORY)
            wait = wait_for_nightly(source, OLD, pause=10, timeout=1e6, report=reports.append, sleep=pauses.append)
            return wait.sha

        assert await asyncio.to_thread(waits) == NEW
    assert server.tags == [None, '"1"', '"1"', '"1"', '"1"', '"1"', '"2"']
    for pause, least in zip(pauses, (10, 10, 90, 20, 40, 10), strict=True):
        assert 0.9 * least <= pause <= 1.1 * least, pauses
    assert len(reports) == 3
    assert "429: too many calls" in reports[0]


@pytest.mark.parametrize("body", ['{"sha": "main"}', "[]", '{"commit": 1}'])
async def test_an_answer_without_a_commit_is_not_printed(body: str) -> None:
    async with served(NightlyServer({"text": body}).app()) as url:
        with pytest.raises(Exception, match=r"does not name a commit|is this the address of the bot"):
            await asyncio.to_thread(lambda: NightlyOfBot(url, REPOSITORY).commit())


@pytest.mark.parametrize(
    ("changes", "words", "status", "message"),
    [
        ({"NIGHTJAR_REPOSITORY": ""}, (), 2, "--repository (NIGHTJAR_REPOSITORY) is not set; name the repository"),
        ({}, (), 2, "--url (NIGHTJAR_URL) or --bucket (NIGHTJAR_BUCKET) is not set; give the bot's address"),
        ({"NIGHTJAR_URL": "http://127.0.0.1:9"}, (), 1, "could not reach the bot at http://127.0.0.1:9"),
        ({"NIGHTJAR_URL": "http://ci.example.org"}, (), 2, "must start with https://"),
        ({"NIGHTJAR_REPOSITORY": "compiler"}, (), 2, '"compiler" is not OWNER/NAME, as in octocat/compiler'),
        ({}, ("--wait", "--after", "0d1a26e"), 2, "is not the full SHA of a commit"),
        ({"NIGHTJAR_BUCKET": "no such bucket"}, (), 1, "cannot be the name of a bucket; correct NIGHTJAR_BUCKET"),
        ({"NIGHTJAR_BUCKET": "missing-bucket"}, (), 1, "does not exist at the account or endpoint"),
    ],
)
def test_a_wrong_setting_is_named_with_the_remedy(
    changes: dict[str, str], words: tuple[str, ...], status: int, message: str, tmp_path: Path, aws_world: World
) -> None:
    env = {**kit_environment(tmp_path, aws_world), "NIGHTJAR_BUCKET": "", **changes}
    done = run_here("nightly", *words, env=env)
    assert (done.status, done.out) == (status, ""), done
    assert message in done.err
