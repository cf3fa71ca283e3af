"""`POST /webhook`: each answer, and that an answer of 202 means that the delivery is in the database."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.web.webhook import MAX_BODY
from tests.postgres import PostgresServer
from tests.web.conftest import NEXT_SECRET, SECRET, Site, running_site

BODY = json.dumps({"action": "created", "repository": {"id": 7}, "issue": {"number": 42}}).encode()


async def test_a_signed_delivery_is_durable_when_it_is_answered(site: Site) -> None:
    status, answer = await site.post(BODY)
    assert (status, answer) == (202, {"status": "accepted"})
    [record] = await site.engine.journal.recent()
    assert (record.guid, record.event, record.lock) == ("guid-1", "issue_comment", "pr:7#42")


async def test_the_second_of_two_secrets_is_accepted_while_rotating(site: Site) -> None:
    assert (await site.post(BODY, secret=NEXT_SECRET))[0] == 202


async def test_a_repeated_guid_is_answered_with_202_and_stored_once(site: Site) -> None:
    first, repeated = await site.post(BODY), await site.post(BODY)
    assert (first[0], repeated[0]) == (202, 202)
    assert repeated[1] == {"status": "seen before"}
    assert await site.stored() == ["guid-1"]


async def test_one_guid_sent_many_times_at_once_is_stored_once(site: Site) -> None:
    answers = await asyncio.gather(*(site.post(BODY) for _ in range(20)))
    assert {status for status, _ in answers} == {202}
    assert sorted(answer["status"] for _, answer in answers).count("accepted") == 1
    assert await site.stored() == ["guid-1"]


async def test_a_ping_is_answered_with_202(site: Site) -> None:
    body = b'{"zen":"Half measures are as bad as nothing at all.","hook_id":1}'
    assert (await site.post(body, {"X-GitHub-Event": "ping"}))[0] == 202


def sha1(body: bytes) -> str:
    return "sha1=" + hmac.new(SECRET, body, hashlib.sha1).hexdigest()


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        pytest.param({"X-Hub-Signature-256": None}, "missing", id="SHA-1 only"),
        pytest.param({"X-Hub-Signature-256": None, "X-Hub-Signature": None}, "missing", id="none"),
        pytest.param({"X-Hub-Signature-256": ""}, "missing", id="empty"),
        pytest.param({"X-Hub-Signature-256": sha1(BODY)}, "must be sha256=", id="SHA-1 in its place"),
        pytest.param({"X-Hub-Signature-256": "sha256=" + "0" * 64}, "does not match", id="wrong"),
        pytest.param({"X-Hub-Signature-256": "sha256=" + "é" * 64}, "must be sha256=", id="non-ASCII"),
    ],
)
async def test_an_unsigned_delivery_is_refused_and_not_stored(
    site: Site, headers: dict[str, str | None], reason: str
) -> None:
    status, problem = await site.post(BODY, headers)
    assert status == 401
    assert reason in problem["detail"]
    assert SECRET.decode() not in json.dumps(problem)
    assert await site.stored() == []


@pytest.mark.parametrize("secret", [b"a secret that is not ours", b""])
async def test_a_signature_with_another_secret_is_refused(site: Site, secret: bytes) -> None:
    assert (await site.post(BODY, secret=secret))[0] == 401
    assert await site.stored() == []


@pytest.mark.parametrize("body", [b"no JSON", b"", b"[]"])
async def test_the_signature_is_verified_before_anything_in_the_body_is_read(site: Site, body: bytes) -> None:
    status, problem = await site.post(body, {"X-Hub-Signature-256": "sha256=" + "0" * 64})
    assert (status, "does not match" in problem["detail"]) == (401, True)


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"no JSON", {}, "not a JSON object"),
        (b"", {}, "not a JSON object"),
        (b"[]", {}, "not a JSON object"),
        (b'{"a":"\xff"}', {}, "not a JSON object"),
        (b'{"a":' * 50_000, {}, "not a JSON object"),
        (BODY, {"X-GitHub-Delivery": None}, "X-GitHub-Delivery"),
        (BODY, {"X-GitHub-Delivery": "x" * 65}, "X-GitHub-Delivery"),
        (BODY, {"X-GitHub-Delivery": "two words"}, "X-GitHub-Delivery"),
        (BODY, {"X-GitHub-Delivery": "gülle"}, "X-GitHub-Delivery"),
        (BODY, {"X-GitHub-Event": None}, "X-GitHub-Event"),
        (BODY, {"X-GitHub-Event": "Push!"}, "X-GitHub-Event"),
        (BODY, {"X-GitHub-Event": "e" * 65}, "X-GitHub-Event"),
        (b"payload=%7B%7D", {"Content-Type": "application/x-www-form-urlencoded"}, "Set the webhook's content type"),
        (gzip.compress(BODY, mtime=0), {"Content-Encoding": "gzip"}, "not a JSON object"),
    ],
)
async def test_a_malformed_signed_delivery_is_refused_with_the_reason(
    site: Site, body: bytes, headers: dict[str, str | None], reason: str
) -> None:
    status, problem = await site.post(body, headers)
    assert status == 400
    assert reason in problem["detail"]
    assert problem["title"] == "Bad Request"
    assert await site.stored() == []


async def test_a_body_of_exactly_25_mib_is_accepted_and_one_byte_more_is_not(site: Site) -> None:
    start, end = b'{"pad":"', b'"}'
    largest = start + b"x" * (MAX_BODY - len(start) - len(end)) + end
    assert (await site.post(largest))[0] == 202
    status, problem = await site.post(largest + b" ", guid="guid-2")
    assert status == 413
    assert "26214400 bytes" in problem["detail"]
    assert await site.stored() == ["guid-1"]


async def test_a_body_without_a_length_is_cut_off_while_it_is_read(site: Site) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 20 * MAX_BODY:
            sent += 1 << 20
            yield b"x" * (1 << 20)

    try:
        async with site.client.post(f"{site.url}/webhook", data=endless(), headers=site.headers(b"")) as answer:
            assert answer.status == 413
    except OSError:
        # The connection may be closed before the client has read the answer.
        pass
    assert sent < 5 * MAX_BODY
    text = site.metrics.exposition()[0].decode()
    assert 'nightjar_webhook_answers_total{status="413"} 1.0' in text


async def test_a_body_that_ends_early_is_not_reported_as_a_fault_of_ours(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    port = int(site.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await site.post(BODY))[0] == 202


async def test_while_postgresql_is_down_the_answer_is_503_and_afterwards_it_works_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with running_site(postgres_url) as site:
        assert (await site.post(BODY))[0] == 202
        postgres_server.stop()
        try:
            async with site.client.post(
                f"{site.url}/webhook", data=BODY, headers=site.headers(BODY, "guid-2")
            ) as answer:
                problem: dict[str, Any] = json.loads(await answer.read())
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) > 0
                assert "safely send it again" in problem["detail"]
        finally:
            postgres_server.start()
        assert (await site.post(BODY, guid="guid-2"))[0] == 202
        # The process may have tried by itself whether it can store deliveries again.
        assert [guid for guid in await site.stored() if not guid.startswith("probe:")] == ["guid-1", "guid-2"]


async def test_answers_are_counted_by_status_and_event(site: Site) -> None:
    await site.post(BODY)
    await site.post(BODY)
    await site.post(BODY, {"X-GitHub-Event": "something_new"}, guid="guid-2")
    await site.post(BODY, secret=b"a secret that is not ours")
    text = site.metrics.exposition()[0].decode()
    assert 'nightjar_webhook_answers_total{status="202"} 3.0' in text
    assert 'nightjar_webhook_answers_total{status="401"} 1.0' in text
    assert 'nightjar_deliveries_total{event="issue_comment",outcome="accepted"} 1.0' in text
    assert 'nightjar_deliveries_total{event="issue_comment",outcome="duplicate"} 1.0' in text
    assert 'nightjar_deliveries_total{event="other",outcome="accepted"} 1.0' in text


async def test_a_comment_that_mentions_us_is_stored_before_other_deliveries(site: Site) -> None:
    for number, (guid, text) in enumerate({"plain": "nice", "command": "@ci rerun"}.items()):
        payload = {"repository": {"id": 1}, "issue": {"number": number}, "comment": {"body": text}}
        await site.post(json.dumps(payload).encode(), {"X-GitHub-Delivery": guid, "X-GitHub-Event": "issue_comment"})
    rows = await site.engine.database.connector.execute_query_all_async(
        "SELECT args ->> 'guid' AS guid, priority FROM procrastinate_jobs ORDER BY id"
    )
    assert [(row["guid"], row["priority"]) for row in rows] == [("plain", 0), ("command", 1)]
