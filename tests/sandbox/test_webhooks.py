"""Webhooks: what is sent, how it is sent, and what GitHub stores about it."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from sandbox import App, GitHubSandbox, Repository
from tests.serving import served

from .conftest import SECRET, Client, Receiver, signed


@pytest.fixture
def heard(app: App, receiver: Receiver) -> Receiver:
    app.webhook_url = receiver.url
    return receiver


async def test_actions_of_people_are_delivered_in_order_under_separate_guids(
    github: GitHubSandbox, repo: Repository, heard: Receiver, app: App
) -> None:
    pull = repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci rerun")
    pull.edit_comment(comment, "@ci rerun all")
    pull.push()
    pull.review("monalisa", "Nice", "APPROVED", [("README.md", 1, "Why?")])
    pull.request_review("hubot", "octocat")
    pull.remove_review_request("octocat", "octocat")
    pull.label("octocat", "hold")
    pull.close("hubot")
    await github.delivered()
    message = [name for name in heard.names if not name.startswith(("push", "check_suite", "create"))]
    assert message == [
        "pull_request.opened",
        "issue_comment.created",
        "issue_comment.edited",
        "pull_request.synchronize",
        "pull_request_review.submitted",
        "pull_request_review_comment.created",
        "pull_request.review_requested",
        "pull_request.review_request_removed",
        "pull_request.labeled",
        "pull_request.closed",
    ]
    assert len(set(heard.guids)) == len(heard.guids)
    headers = heard.headers[0]
    assert headers["User-Agent"].startswith("GitHub-Hookshot/")
    assert headers["X-GitHub-Hook-Installation-Target-ID"] == str(app.id)
    assert headers["X-GitHub-Hook-Installation-Target-Type"] == "integration"
    edited = dict(heard.received)["issue_comment"]
    assert edited["changes"] == {"body": {"from": "@ci rerun"}}
    assert edited["installation"]["id"] in app.installations


async def test_actions_of_the_app_are_delivered_to_it(github: GitHubSandbox, client: Client, heard: Receiver) -> None:
    pull = github.repositories["octocat/compiler"].open_pull_request("hubot")
    await client.post("issues/1/comments", {"body": "Hello"})
    await client.post(f"statuses/{pull.head_sha}", {"state": "success", "context": "ci/slow-tests"})
    await client.post("check-runs", {"name": "lint", "head_sha": pull.head_sha, "conclusion": "neutral"})
    await github.delivered()
    of_bots = [f"{event}.{body.get('action')}" for event, body in heard.received if body["sender"]["type"] == "Bot"]
    message = [
        "issue_comment.created",
        "status.None",
        "check_run.created",
        "check_run.completed",
        "check_suite.completed",
    ]
    assert of_bots == message


async def test_a_forks_pull_request_is_in_no_check_run(
    github: GitHubSandbox, repo: Repository, heard: Receiver, app: App
) -> None:
    pull = repo.open_pull_request("stranger", fork=True)
    repo.add_check_run(app, pull.head_sha, "lint", conclusion="success")
    await github.delivered()
    assert pull.head_repository.full_name == "stranger/compiler"
    assert dict(heard.received)["check_run"]["check_run"]["pull_requests"] == []
    assert "push" not in heard.names


async def test_a_pressed_button_of_a_check_run_is_delivered_only_to_its_app(
    github: GitHubSandbox, repo: Repository, heard: Receiver, app: App
) -> None:
    second_app = github.create_app("other", webhook_url=heard.url, webhook_secret=SECRET)
    second_app.install(repo)
    button = {"label": "Again", "description": "Run again", "identifier": "again"}
    run = repo.add_check_run(app, repo.branch("main"), "lint", conclusion="failure", actions=[button])
    await github.delivered()
    heard.received.clear()
    run.rerequest("hubot")
    run.press("hubot", "again")
    await github.delivered()
    assert heard.names == ["check_run.rerequested", "check_run.requested_action"]
    assert heard.received[1][1]["requested_action"] == {"identifier": "again"}


@pytest.mark.one_clock
async def test_a_lost_delivery_is_stored_and_can_be_redelivered_under_its_guid(
    github: GitHubSandbox, repo: Repository, heard: Receiver, as_app: Client
) -> None:
    pull = repo.open_pull_request("hubot")
    github.webhooks.lose("issue_comment")
    pull.comment("hubot", "lost")
    pull.comment("hubot", "found")
    await github.delivered()
    assert heard.names.count("issue_comment.created") == 1
    delivered, lost = (await as_app.get("/app/hook/deliveries?per_page=2")).json
    assert (delivered["status_code"], lost["status_code"], lost["redelivery"]) == (202, 502, False)
    assert (await as_app.post(f"/app/hook/deliveries/{lost['id']}/attempts")).status == 202
    await github.delivered()
    newest = (await as_app.get("/app/hook/deliveries?per_page=1")).json[0]
    assert (newest["guid"], newest["redelivery"], newest["status_code"]) == (lost["guid"], True, 202)
    assert newest["id"] != lost["id"]
    delivery = (await as_app.get(f"/app/hook/deliveries/{newest['id']}")).json
    assert delivery["request"]["payload"]["comment"]["body"] == "lost"
    assert heard.guids[-1] == lost["guid"]


@pytest.mark.one_clock
async def test_deliveries_are_listed_newest_first_a_page_at_a_time(
    github: GitHubSandbox, repo: Repository, heard: Receiver, as_app: Client
) -> None:
    pull = repo.open_pull_request("hubot")
    for number in range(5):
        pull.comment("hubot", str(number))
    await github.delivered()
    seen: list[int] = []
    url = "/app/hook/deliveries?per_page=3"
    while url:
        answer = await as_app.get(url)
        seen += [delivery["id"] for delivery in answer.json]
        url = answer.headers.get("Link", "").partition(">")[0].removeprefix("<")
    assert seen == sorted((d.id for d in github.webhooks.deliveries), reverse=True)
    assert len(seen) == len(heard.received)


async def test_after_three_days_nothing_is_redelivered(
    github: GitHubSandbox, repo: Repository, heard: Receiver, app: App, session: aiohttp.ClientSession
) -> None:
    repo.push("main", by="octocat")
    await github.delivered()
    path = f"/app/hook/deliveries/{github.webhooks.deliveries[-1].id}/attempts"
    github.clock.advance(days=2)
    assert (await Client(session, signed(app)).post(path)).status == 202
    github.clock.advance(days=1)
    assert (await Client(session, signed(app)).post(path)).status == 422


async def test_held_deliveries_come_in_the_requested_order(
    github: GitHubSandbox, repo: Repository, heard: Receiver
) -> None:
    pull = repo.open_pull_request("hubot")
    await github.delivered()
    heard.received.clear()
    github.webhooks.hold()
    for text in "abc":
        pull.comment("hubot", text)
    await github.delivered()
    assert heard.received == []
    github.webhooks.release(reversed)
    await github.delivered()
    assert [body["comment"]["body"] for _, body in heard.received] == ["c", "b", "a"]


async def test_duplicates_share_a_guid_and_a_second_hook_has_its_own(
    github: GitHubSandbox, repo: Repository, heard: Receiver
) -> None:
    repo.add_webhook(heard.url, SECRET, "issue_comment")
    pull = repo.open_pull_request("hubot")
    await github.delivered()
    heard.guids.clear()
    github.webhooks.duplicate(2)
    pull.comment("hubot", "@ci rerun")
    await github.delivered()
    assert len(heard.guids) == 4
    assert len(set(heard.guids)) == 2
    assert heard.headers[-1]["X-GitHub-Hook-Installation-Target-Type"] == "repository"
    assert "installation" not in heard.received[-1][1]
    github.webhooks.send_under_new_guid(github.webhooks.find("issue_comment")[0])
    await github.delivered()
    assert len(set(heard.guids)) == 3


async def test_a_bot_that_answers_too_late_has_failed(github: GitHubSandbox, repo: Repository, app: App) -> None:
    github.webhooks.timeout = 0.05
    application = web.Application()
    never = asyncio.Event()

    async def stall(request: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    application.router.add_post("/webhook", stall)
    async with served(application) as url:
        app.webhook_url = f"{url}/webhook"
        repo.push("main", by="octocat")
        await github.delivered()
    assert {(d.status_code, d.status) for d in github.webhooks.find("push")} == {(504, "timed out")}
