"""Every webhook example that GitHub's octokit publishes, signed and posted unchanged to the running bot."""

from __future__ import annotations

import asyncio
import json
import lzma
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from handlers.main_failures.effects import SCAN_EVENT
from sandbox import App, Repository, SentDelivery
from sandbox.webhooks import headers_of
from tests.robustness.place import Place, failures, place, tracebacks

EXAMPLES = Path(__file__).parents[1] / "data" / "webhook-examples.json.xz"
AT_ONCE = 8
OWNERS_INSTALLATION = 1
"""The number under which most examples know the App's installation."""

ALARMS = {"branches": ["changes"], "wait": "1s"}
"""On the branch of the one check that fails in the examples."""

OPENED_HEAD = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"


def examples() -> list[tuple[str, dict[str, Any]]]:
    """Return all examples with their events.

    On GitHub a name has one number at a time. The examples were recorded over years, from repositories that were
    recreated under their old names, so each gets the number from the last example of its name.
    """
    listed = json.loads(lzma.decompress(EXAMPLES.read_bytes()))
    found = [(event["name"], body) for event in listed for body in event["examples"]]
    named = [body["repository"] for _, body in found if body.get("repository")]
    numbers = {repository["full_name"]: repository["id"] for repository in named}
    for repository in named:
        repository["id"] = numbers[repository["full_name"]]
    return found


def as_delivery(app: App, event: str, body: dict[str, Any]) -> SentDelivery:
    """Return an example as a delivery to the App, with its body unchanged."""
    payload = json.dumps(body).encode()
    return SentDelivery(0, str(uuid.uuid4()), event, None, payload, app, None, None, app.created_at)


async def post_all(here: Place) -> Counter[int]:
    """Post every example, some at once, and count the answers."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def post(session: aiohttp.ClientSession, event: str, body: dict[str, Any]) -> int:
        delivery = as_delivery(here.app, event, body)
        async with (
            limit,
            session.post(f"{here.bot.url}/webhook", data=delivery.payload, headers=headers_of(delivery)) as answer,
        ):
            return answer.status

    async with aiohttp.ClientSession() as session:
        return Counter(await asyncio.gather(*(post(session, event, body) for event, body in examples())))


async def ready(here: Place) -> int:
    """Return what `GET /readyz` answers."""
    async with aiohttp.ClientSession() as session, session.get(f"{here.bot.url}/readyz") as answer:
        return answer.status


def handlers(deliveries: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return which handlers ran."""
    return {plan["handler"] for one in deliveries for plan in one["plans"]}


def repositories() -> list[str]:
    """Return the name of every repository that an example is about."""
    found = {body["repository"]["full_name"] for _, body in examples() if body.get("repository")}
    return sorted(found)


def know(repository: Repository, body: dict[str, Any]) -> None:
    """Give the sandbox's repository what an example says about it: its number and the commits it names."""
    repository.id = body["repository"]["id"]
    first = next(commit for commit in repository.git.commits.values() if not commit.parents)
    group = body.get("merge_group", {}).get("head_sha")
    for sha in (body.get("after"), body.get("pull_request", {}).get("head", {}).get("sha"), group):
        if sha:
            repository.git.commits[sha] = replace(first, sha=sha)


async def test_all_examples_are_accepted_and_their_commands_are_carried_out(tmp_path: Path, sqlite_url: str) -> None:
    async with place(tmp_path, sqlite_url) as here:
        known = {name: here.add_repository(*name.split("/")) for name in repositories()}
        for _, body in examples():
            if body.get("repository"):
                know(known[body["repository"]["full_name"]], body)
        (theirs,) = [i for i in here.app.installations.values() if i.account.login == "Codertocat"]
        here.app.installations[OWNERS_INSTALLATION], theirs.id = theirs, OWNERS_INSTALLATION
        # Examples of other owners name this installation too.
        theirs.repositories[:] = known.values()
        for repository in known.values():
            repository.refs["refs/heads/changes"] = repository.branch("main")
        here.configure(repositories(), slow_tests={"branches": ["*"]}, main_failures=ALARMS)
        await here.start()
        assert await post_all(here) == {202: 329}
        deliveries = await here.quiet()
        scans = [one for one in deliveries if one["event"] == SCAN_EVENT.name]
        assert len(deliveries) == 329 + len(here.github.webhooks.deliveries) + len(scans)
        assert failures(deliveries) == []
        expected = {"slow-tests", "slow-tests-branches", "cc-reviewers", "main-failures-scan"}
        assert expected <= handlers(deliveries)
        assert known["Codertocat/Hello-World"].status(OPENED_HEAD, "ci/slow-tests") is not None
        assert tracebacks(here.bot) == []
        assert await ready(here) == 200


async def test_all_examples_are_accepted_and_logged_where_the_app_is_not_installed(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with place(tmp_path, sqlite_url) as here:
        here.add_repository("example-lab")
        here.configure(repositories(), slow_tests={"branches": ["*"]})
        await here.start()
        assert await post_all(here) == {202: 329}
        said = {text.partition(": ")[2] for text in failures(await here.quiet())}
        assert said
        assert all(text.startswith("NotInstalled: ") for text in said), said
        assert tracebacks(here.bot) == []
        assert await ready(here) == 200


async def test_all_examples_are_accepted_and_ignored_where_their_repositories_are_not_configured(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with place(tmp_path, sqlite_url) as here:
        here.configure([here.add_repository("example-lab").full_name])
        await here.start()
        assert await post_all(here) == {202: 329}
        deliveries = await here.quiet()
        assert {one["state"] for one in deliveries} == {"ignored"}
        assert all(one["job"]["text"] for one in deliveries)
        assert tracebacks(here.bot) == []
