"""A lab without a bucket uploads runs through the bot, over real HTTP, and gets its check run."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import SettingsError
from handlers.results.watch import WATCH
from tests.bucket import World
from tests.conversations.lab import LAB, TARGET
from tests.conversations.town import REPOSITORY
from tests.conversations.uploads import FILES, UploadLab, entries, stored_names, upload_lab


@pytest.fixture
async def lab(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[UploadLab]:
    """Return a lab whose bot has no bucket and no AWS_* variables."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    async with upload_lab(sqlite_url) as lab:
        yield lab


async def test_a_lab_without_a_bucket_gets_its_check_run_at_once(lab: UploadLab, tmp_path: Path) -> None:
    await lab.upload()
    await lab.town.quiet()
    assert lab.check().conclusion == "neutral"
    assert "1 failing" in str(lab.check().title)
    folder = tmp_path / "nightjar-results/results" / REPOSITORY / LAB / TARGET / lab.sha / "run-1"
    assert sorted(next(os.walk(folder))[2]) == ["log.xml", "manifest.json", "te.xml"]
    assert len(stored_names(tmp_path)) == 3, "nothing is left of what has arrived"


async def test_an_upload_to_a_bucket_goes_through_the_bot_too(database_url: str, aws_world: World) -> None:
    async with upload_lab(database_url, store=f"bucket: {aws_world.name}\n      poll: 1h") as lab:
        await lab.upload()
        await lab.upload()
        await lab.town.quiet()
        assert lab.check().conclusion == "neutral"
        assert len(aws_world.keys("results/octocat/")) == 3


async def test_every_call_may_be_repeated_and_an_upload_continued(lab: UploadLab) -> None:
    upload = await lab.begin()
    assert (await lab.send(upload, "te.xml", FILES["te.xml"]))[0] == 204
    status, body = await lab.call("runs", lab.beginning())
    assert (status, body["upload"], body["received"]) == (201, upload, ["te.xml"])
    for _ in range(2):
        assert (await lab.send(upload, "te.xml", FILES["te.xml"]))[0] == 204
    status, body = await lab.call(f"runs/{upload}/manifest", lab.manifest())
    assert (status, "log.xml" in body["detail"]) == (409, True)
    assert (await lab.send(upload, "log.xml", FILES["log.xml"]))[0] == 204
    for _ in range(2):
        assert await lab.call(f"runs/{upload}/manifest", lab.manifest()) == (202, {"run_id": "run-1"})
        await lab.town.quiet()
    assert lab.check().conclusion == "neutral"


async def test_a_file_that_was_cut_off_leaves_nothing_and_is_sent_again(lab: UploadLab, tmp_path: Path) -> None:
    content = b"x" * (3 << 20)
    upload = await lab.begin({"te.xml": content})
    _, _, rest = lab.town.url.partition("//")
    host, _, port = rest.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"PUT /api/v1/labs/{LAB}/runs/{upload}/files/te.xml HTTP/1.1\r\nHost: {rest}\r\n"
        f"Authorization: Bearer {lab.token}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content[: 2 << 20])
    await writer.drain()
    writer.close()
    await reader.read()
    assert (await lab.send(upload, "te.xml", content))[0] == 204
    status, body = await lab.call("runs", lab.beginning({"te.xml": content}))
    assert (status, body["received"]) == (201, ["te.xml"])


async def test_a_file_is_what_was_announced_or_refused(lab: UploadLab, tmp_path: Path) -> None:
    upload = await lab.begin()
    content = FILES["te.xml"]
    assert (await lab.send(upload, "te.xml", content + b" "))[0] == 422
    assert (await lab.send(upload, "te.xml", content[:-1] + b" "))[0] == 422
    assert (await lab.send(upload, "other.xml", content))[0] == 404
    assert (await lab.send("0" * 32, "te.xml", content))[0] == 404
    for name in ("..%2F..%2Fnightjar.db", "%2e%2e", "manifest.json"):
        assert (await lab.send(upload, name, content))[0] == 404
    assert not stored_names(tmp_path)
    # Nothing is overwritten, even by another upload of the same run.
    assert (await lab.send(upload, "te.xml", content))[0] == 204
    other = await lab.begin({"te.xml": b"<other/>"})
    status, body = await lab.send(other, "te.xml", b"<other/>")
    assert (status, "another run ID" in body["detail"]) == (409, True)


async def test_the_body_of_a_file_without_a_length_is_limited(lab: UploadLab) -> None:
    upload = await lab.begin({"te.xml": b"<xml/>"})

    async def endless() -> AsyncIterator[bytes]:
        yield b"<xml/>"
        yield b"more"

    address = f"{lab.town.url}/api/v1/labs/{LAB}/runs/{upload}/files/te.xml"
    headers = {"Authorization": f"Bearer {lab.token}"}
    async with lab.client.put(address, data=endless(), headers=headers) as answer:
        assert answer.status == 413


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target": "cuda"}, "no target cuda for the lab example-lab; available: hexagon-v73, adreno"),
        ({"repository": "Octocat/Compiler"}, "app.yaml names the repository octocat/compiler"),
        ({"repository": "octocat/other"}, "no lab example-lab for octocat/other"),
        ({"sha": "0" * 40}, "there is no commit"),
    ],
)
async def test_a_run_that_would_be_refused_costs_no_upload_and_no_test(
    lab: UploadLab, changes: dict[str, Any], reason: str
) -> None:
    status, body = await lab.call("runs", lab.beginning(**changes))
    assert (status, reason in body["detail"]) == (422, True)
    question = {"repository": REPOSITORY, "targets": [TARGET, changes.pop("target", "adreno")], "sha": lab.sha}
    status, body = await lab.call("admission", question | changes)
    assert (status, body["accepted"]) == (200, False)
    assert reason in body["reasons"][0]


async def test_a_good_run_is_admitted_before_it_is_tested(lab: UploadLab) -> None:
    for question in ({"sha": lab.sha}, {}):
        answer = await lab.call("admission", {"repository": REPOSITORY, "targets": [TARGET, "adreno"], **question})
        assert answer == (200, {"accepted": True, "reasons": []})


async def test_the_head_of_a_fork_is_admitted_by_its_pull_request(lab: UploadLab) -> None:
    pull = lab.town.repo.open_pull_request("hubot", "Faster")
    await lab.town.quiet()
    changes: dict[str, Any] = {"sha": pull.head_sha, "pull_request": pull.number}
    await lab.begin(**changes)
    answer = await lab.call("admission", {"repository": REPOSITORY, "targets": [TARGET], **changes})
    assert answer == (200, {"accepted": True, "reasons": []})


@pytest.mark.parametrize("changes", [{"files": []}, {"run_id": "../x"}, {"files": entries(FILES) * 2}, {"more": 1}])
async def test_an_invalid_beginning_is_refused(lab: UploadLab, changes: dict[str, Any]) -> None:
    assert (await lab.call("runs", lab.beginning(**changes)))[0] == 400


async def test_a_lab_uploads_only_for_itself(lab: UploadLab) -> None:
    upload = await lab.begin()
    assert (await lab.call("runs", lab.beginning(), token=lab.other_token))[0] == 403
    path = f"runs/{upload}/files/te.xml"
    assert (await lab.call(path, FILES["te.xml"], method="PUT", token=lab.other_token, lab="other-lab"))[0] == 404
    assert (await lab.call("runs", lab.beginning(), token="nonsense"))[0] == 401
    assert (await lab.call("admission", {"repository": REPOSITORY, "targets": [TARGET]}, token="nonsense"))[0] == 401


async def test_an_invalid_manifest_is_refused_with_its_fault(lab: UploadLab) -> None:
    upload = await lab.begin()
    for name, content in FILES.items():
        await lab.send(upload, name, content)
    status, body = await lab.call(f"runs/{upload}/manifest", lab.manifest(suite=""))
    assert (status, "suite" in body["detail"]) == (422, True)
    assert (await lab.call(f"runs/{upload}/manifest", lab.manifest(sha="1" * 40)))[0] == 422
    assert (await lab.call(f"runs/{upload}/manifest", lab.manifest()))[0] == 202


async def test_the_daily_quota_counts_uploads_that_are_never_finished(lab: UploadLab) -> None:
    for number in range(5):
        await lab.begin(run_id=f"run-{number}")
        await lab.begin(run_id=f"run-{number}")
    status, body = await lab.call("runs", lab.beginning(run_id="run-5"))
    assert (status, "runs_per_day" in body["detail"]) == (422, True)
    lab.time.ahead += 86_400
    await lab.begin(run_id="run-5")


async def test_an_upload_expires_after_a_day_and_may_be_begun_again(lab: UploadLab) -> None:
    upload = await lab.begin()
    await lab.send(upload, "te.xml", FILES["te.xml"])
    lab.time.ahead += 86_401
    assert (await lab.send(upload, "log.xml", FILES["log.xml"]))[0] == 404
    await lab.upload()


async def test_a_full_disk_is_said_before_anything_is_sent(lab: UploadLab, tmp_path: Path) -> None:
    upload = await lab.begin()
    lab.folder.least_free = 1 << 60
    status, body = await lab.call("runs", lab.beginning(run_id="run-2"))
    assert (status, "MB free" in body["detail"]) == (507, True)
    assert (await lab.send(upload, "te.xml", FILES["te.xml"]))[0] == 507
    assert not stored_names(tmp_path)


async def test_a_run_whose_announcement_was_lost_is_found_by_the_listing(lab: UploadLab) -> None:
    folder = f"results/{REPOSITORY}/{LAB}/{TARGET}/{lab.sha}/run-7/"
    for name, content in {**FILES, "manifest.json": lab.manifest()}.items():
        with lab.folder.temporary_file() as file:
            file.write(content)
            await lab.folder.put_once(folder + name, file, sha256=hashlib.sha256(content).hexdigest())
    lab.time.ahead += 3600
    await lab.town.bot.services.part(WATCH).tick()
    await lab.town.quiet()
    assert lab.check().conclusion == "neutral"


async def test_postgresql_needs_a_bucket(postgres_url: str) -> None:
    with pytest.raises(SettingsError, match=r"results\.bucket is not set"):
        async with upload_lab(postgres_url):
            pass
