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

from sandbox import App, Repository, SentDelivery
from sandbox.webhooks import headers_of
from tests.robustness.place import Place, failures, open_place, tracebacks

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
    all_examples = [(event["name"], body) for event in listed for body in event["examples"]]
    repositories = [body["repository"] for _, body in all_examples if body.get("repository")]
    numbers = {repository["full_name"]: repository["id"] for repository in repositories}
    for repository in repositories:
        repository["id"] = numbers[repository["full_name"]]
    return all_examples


def as_delivery(app: App, event: str, body: dict[str, Any]) -> SentDelivery:
    """Return an example as a delivery to the App, with its body unchanged."""
    payload = json.dumps(body).encode()
    return SentDelivery(0, str(uuid.uuid4()), event, None, payload, app, None, None, app.created_at)


async def post_all(place: Place) -> Counter[int]:
    """Post every example, some at once, and count the answers."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def post(session: aiohttp.ClientSession, event: str, body: dict[str, Any]) -> int:
        delivery = as_delivery(place.app, event, body)
        async with (
            limit,
            session.post(f"{place.bot.url}/webhook", data=delivery.payload, headers=headers_of(delivery)) as answer,
        ):
            return answer.status

    async with aiohttp.ClientSession() as session:
        return Counter(await asyncio.gather(*(post(session, event, body) for event, body in examples())))


async def ready(place: Place) -> int:
    """Return what `GET /readyz` answers."""
    async with aiohttp.ClientSession() as session, session.get(f"{place.bot.url}/readyz") as answer:
        return answer.status


def handlers(deliveries: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return which handlers ran."""
    return {plan["handler"] for delivery in deliveries for plan in delivery["plans"]}


def repositories() -> list[str]:
    """Return the name of every repository that an example is about."""
    names = {body["repository"]["full_name"] for _, body in examples() if body.get("repository")}
    return sorted(names)


def adopt_example(repository: Repository, body: dict[str, Any]) -> None:
    """Give the sandbox's repository what an example says about it: its number and the commits it names."""
    repository.id = body["repository"]["id"]
    first = next(commit for commit in repository.git.commits.values() if not commit.parents)
    group = body.get("merge_group", {}).get("head_sha")
    for sha in (body.get("after"), body.get("pull_request", {}).get("head", {}).get("sha"), group):
        if sha:
            repository.git.commits[sha] = replace(first, sha=sha)


async def test_all_examples_are_accepted_and_their_commands_are_carried_out(tmp_path: Path, sqlite_url: str) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        repositories_by_name = {name: place.add_repository(*name.split("/")) for name in repositories()}
        for _, body in examples():
            if body.get("repository"):
                adopt_example(repositories_by_name[body["repository"]["full_name"]], body)
        (installation,) = [i for i in place.app.installations.values() if i.account.login == "Codertocat"]
        place.app.installations[OWNERS_INSTALLATION], installation.id = installation, OWNERS_INSTALLATION
        # Examples of other owners name this installation too.
        installation.repositories[:] = repositories_by_name.values()
        for repository in repositories_by_name.values():
            repository.refs["refs/heads/changes"] = repository.branch("main")
        place.configure(repositories(), slow_tests={"branches": ["*"]}, main_failures=ALARMS)
        await place.start()
        assert await post_all(place) == {202: 329}
        deliveries = await place.quiet()
        # Timers and other events of the bot's own are deliveries too, and how many depends on the time that it took.
        webhooks = [delivery for delivery in deliveries if not delivery["event"].startswith("nightjar.")]
        assert len(webhooks) == 329 + len(place.github.webhooks.deliveries)
        assert failures(deliveries) == []
        expected = {"slow-tests", "slow-tests-branches", "cc-reviewers", "main-failures-scan"}
        assert expected <= handlers(deliveries)
        assert repositories_by_name["Codertocat/Hello-World"].status(OPENED_HEAD, "ci/slow-tests") is not None
        assert tracebacks(place.bot) == []
        assert await ready(place) == 200


async def test_all_examples_are_accepted_and_logged_where_the_app_is_not_installed(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        place.add_repository("example-lab")
        place.configure(repositories(), slow_tests={"branches": ["*"]})
        await place.start()
        assert await post_all(place) == {202: 329}
        reasons = {text.partition(": ")[2] for text in failures(await place.quiet())}
        assert reasons
        assert all(text.startswith("NotInstalled: ") for text in reasons), reasons
        assert tracebacks(place.bot) == []
        assert await ready(place) == 200


async def test_all_examples_are_accepted_and_ignored_where_their_repositories_are_not_configured(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        place.configure([place.add_repository("example-lab").full_name])
        await place.start()
        assert await post_all(place) == {202: 329}
        deliveries = await place.quiet()
        assert {delivery["state"] for delivery in deliveries} == {"ignored"}
        assert all(delivery["job"]["text"] for delivery in deliveries)
        assert tracebacks(place.bot) == []
