"""Each attack on the distribution of jobs is refused, and leaves a log line and a count in a metric."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from handlers.device_tests.model import LEASE_SECONDS, DeviceJobState, JobEnd
from handlers.labs.calls import CALLS_PER_MINUTE, REFUSALS_PER_MINUTE
from handlers.labs.routes import MOST_WAITING
from tests.bucket import World
from tests.conversations.device_lab import BUILDKITE, TARGET, DeviceLab, device_lab
from tests.conversations.devices import ADRENO, GOOD, HEXAGON, Devices, device_town
from tests.conversations.lab import LAB, junit
from tests.conversations.town import Town
from tests.waiting import until

CLAIM = {"targets": [TARGET]}
Logs = list[MutableMapping[str, Any]]
OTHER_LAB = "other-lab: {targets: [adreno]}"


@pytest.fixture
async def lab(tmp_path: Path, aws_world: World) -> AsyncIterator[DeviceLab]:
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as lab:
        yield lab


@pytest.fixture
async def devices(tmp_path: Path, aws_world: World) -> AsyncIterator[Devices]:
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, more_labs=OTHER_LAB) as place:
        yield place


@pytest.fixture
def logs() -> Iterator[Logs]:
    with capture_logs() as captured:
        yield captured


def counted(town: Town, call: str, outcome: str, lab: str = LAB) -> float:
    """Return how often a call of a lab had an outcome, as operators see it."""
    series = f'nightjar_lab_calls_total{{call="{call}",lab="{lab}",outcome="{outcome}"}} '
    lines = [line for line in town.bot.metrics.exposition()[0].decode().splitlines() if line.startswith(series)]
    return float(lines[0].removeprefix(series)) if lines else 0.0


def entries_of(logs: Logs, event: str) -> list[MutableMapping[str, Any]]:
    """Return the log entries of an event."""
    return [entry for entry in logs if entry["event"] == event]


ATTACKS: dict[str, tuple[Callable[[DeviceLab], str | None], int, str]] = {
    "no token": (lambda _: None, 401, "no token"),
    "a token that was never issued": (lambda lab: lab.token[:-1] + "x", 401, "unknown token"),
    "another lab's token": (lambda lab: lab.other_token, 403, "token of another lab"),
    "an expired token": (lambda lab: lab.issuer.token(age=400), 401, "ExpiredSignatureError"),
    "another audience": (lambda lab: lab.issuer.token(aud="https://x.example.org"), 401, "InvalidAudienceError"),
    "a fork's workflow": (lambda lab: lab.issuer.token(repository_id="124"), 403, "claim repository_id"),
    "a pull request's workflow": (lambda lab: lab.issuer.token(event_name="pull_request"), 403, "claim event_name"),
    "a fork's build": (
        lambda lab: lab.issuer.token(BUILDKITE, path="/buildkite", build_branch="x:main"), 403, "claim build_branch",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_caller_without_the_labs_token_is_refused_and_recorded(lab: DeviceLab, logs: Logs, attack: str) -> None:
    token_of, status, reason = ATTACKS[attack]
    await lab.asked_for()
    claimed_job = await lab.claim()
    token, lease = token_of(lab), {"lease": claimed_job["lease"]}
    calls = {"claims": CLAIM, "jobs/job/heartbeat": lease, "jobs/job/failed": {**lease, "reason": "x"}}
    for path, body in calls.items():
        assert (await lab.call(path, body, token=token))[0] == status
        assert counted(lab.town, path.rpartition("/")[2], "refused") == 1
    recorded = [(entry["lab"], entry["call"], entry["why"]) for entry in entries_of(logs, "lab call refused")]
    assert recorded == [(LAB, path.rpartition("/")[2], reason) for path in calls]
    assert all(entry["client"] for entry in entries_of(logs, "lab call refused"))
    job = await lab.store.find(LAB, "job")
    assert (job.state, job.attempt, job.note) == (DeviceJobState.LEASED, 1, "")


async def test_a_call_for_another_labs_job_is_refused_and_recorded(lab: DeviceLab, logs: Logs) -> None:
    await lab.asked_for()
    claimed_job = await lab.claim()
    for call, fields in (("heartbeat", {}), ("failed", {"reason": "x"})):
        body = {"lease": claimed_job["lease"], **fields}
        assert (await lab.call(f"jobs/job/{call}", body, token=lab.other_token, lab="other-lab"))[0] == 404
        assert counted(lab.town, call, "refused", "other-lab") == 1
    recorded = [(entry["lab"], entry["call"], entry["why"]) for entry in entries_of(logs, "lab call refused")]
    assert recorded == [("other-lab", call, "not a job of this lab") for call in ("heartbeat", "failed")]


async def test_a_replayed_lease_is_refused_and_recorded(lab: DeviceLab, logs: Logs) -> None:
    """A lease ends when the lab gives the job back, it expires, the job is cancelled, or results complete the job."""
    store, expected = lab.store, 0.0
    for number, ending in enumerate(("given back", "expired", "cancelled", "done")):
        job = await lab.asked_for(f"job-{number}", sha=str(number) * 40)
        old_lease = (await lab.claim())["lease"]
        if ending == "given back":
            await store.fail(LAB, job.id, old_lease, "x")
            assert (await lab.claim())["attempt"] == 2
        elif ending == "expired":
            lab.time.ahead += LEASE_SECONDS + 1
            await store.expire()
            assert (await lab.claim())["attempt"] == 2
        elif ending == "cancelled":
            await store.cancel(await store.find(LAB, job.id), JobEnd.BY_PERSON, also_running=True)
        else:
            await store.complete(LAB, job.id, "operators")
        stored_job, expected = await store.find(LAB, job.id), expected + 1
        beat = {"lease": old_lease, "log_url": "https://lab.example.org/forged", "note": "forged"}
        assert (await lab.call(f"jobs/{job.id}/heartbeat", beat))[0] == 409
        assert counted(lab.town, "heartbeat", "lease lost") == expected
        if ending != "given back":  # repeating the same failure report is no error, and changes nothing
            assert (await lab.call(f"jobs/{job.id}/failed", {"lease": old_lease, "reason": "forged"}))[0] == 409
        recorded = entries_of(logs, "lease is lost")[-1]
        assert (recorded["lab"], recorded["job"], recorded["by"].partition(" ")[0]) == (LAB, job.id, "token")
        assert await store.find(LAB, job.id) == stored_job
        await store.complete(LAB, job.id, "operators")
    assert counted(lab.town, "failed", "lease lost") == 3


async def test_results_that_do_not_match_the_job_complete_nothing_and_are_recorded(
    devices: Devices, logs: Logs
) -> None:
    """Results of another commit or target, for another lab's job, for an unleased job, and for no job at all."""
    pull, other_pull = devices.pull(), devices.pull()
    await devices.says(pull, "hubot", f"@ci test on {HEXAGON} {ADRENO}")
    claimed = await devices.claim()
    (queued_job,) = [job for job in await devices.jobs(pull) if job.target == ADRENO]
    assert queued_job.state is DeviceJobState.QUEUED
    job, good, place = claimed.job.id, {"a.xml": junit(**GOOD)}, devices.place
    attacks: list[tuple[dict[str, Any], str]] = [
        ({"sha": other_pull.head_sha, "job": job}, f"of {LAB}/{HEXAGON} {other_pull.head_sha}"),
        ({"sha": pull.head_sha, "target": ADRENO, "job": job}, f"of {LAB}/{ADRENO} {pull.head_sha}"),
        ({"sha": pull.head_sha, "lab": "other-lab", "target": ADRENO, "job": job}, "not a job of this lab"),
        ({"sha": pull.head_sha, "target": ADRENO, "job": queued_job.id}, "not handed out"),
        ({"sha": pull.head_sha, "job": "never-there"}, "not a job of this lab"),
    ]
    for attack, reason in attacks:
        # The log gets at most one such line a second; the metric counts all of them.
        logs.clear()
        await devices.store.heartbeat(LAB, job, claimed.lease)  # each attack takes two minutes, and a lease lasts three
        lab, refusals = attack.get("lab", LAB), counted(place.town, "results", "refused", attack.get("lab", LAB))
        place.upload(attack.pop("sha"), good, **attack)
        await place.settle()
        assert counted(place.town, "results", "refused", lab) == refusals + 1, reason
        recorded = [(entry["lab"], entry["job"], entry["why"]) for entry in entries_of(logs, "results refused")]
        assert recorded in ([(lab, attack["job"], reason)], []), recorded
        assert (await devices.store.find(LAB, job)).state is DeviceJobState.LEASED
        assert (await devices.store.find(LAB, queued_job.id)).state is DeviceJobState.QUEUED
    place.upload(pull.head_sha, good, job=job)
    await place.settle()
    assert (await devices.store.find(LAB, job)).state is DeviceJobState.DONE
    assert counted(place.town, "results", "refused") == 4


async def test_a_job_whose_head_changes_between_approval_and_claim_is_not_handed_out(devices: Devices) -> None:
    pull, town = devices.pull("somebody"), devices.place.town
    await devices.says(pull, "somebody", f"@ci test on {ADRENO}")
    await devices.says(pull, "triager", "@ci approve tests")
    approved = pull.head_sha
    pull.push()
    await town.quiet()
    tokens = TokenStore(town.bot.engine.database.connector, LAB_SCOPE)
    token, _ = await tokens.create(LAB, seconds=3600.0)
    assert await claimed_by_http(town, token, ADRENO) is None
    states = {job.sha: (job.state, job.end, job.approved_by.login) for job in await devices.jobs(pull)}
    assert states == {
        approved: (DeviceJobState.CANCELLED, JobEnd.PUSHED, "triager"),
        pull.head_sha: (DeviceJobState.WAITING, JobEnd.NONE, ""),
    }
    audit = await audited(town)
    assert f"triager approved {approved}: {LAB}/{ADRENO}" in audit
    assert "cancelled 1 job: pushed" in audit


async def test_a_claim_before_the_webhook_of_a_push_gets_the_approved_commit(devices: Devices, logs: Logs) -> None:
    pull, town = devices.pull("somebody"), devices.place.town
    await devices.says(pull, "somebody", f"@ci test on {ADRENO}")
    await devices.says(pull, "triager", "@ci approve tests")
    approved = pull.head_sha
    tokens = TokenStore(town.bot.engine.database.connector, LAB_SCOPE)
    token, _ = await tokens.create(LAB, seconds=3600.0)
    town.github.webhooks.hold()
    pull.push()
    claimed_job = await claimed_by_http(town, token, ADRENO)
    assert claimed_job is not None
    assert (claimed_job["sha"], claimed_job["requested_by"], claimed_job["approved_by"]) == (
        approved,
        "somebody",
        "triager",
    )
    (recorded,) = entries_of(logs, "job is handed out")
    assert (recorded["sha"], recorded["approved_by"], recorded["job"]) == (approved, "triager", claimed_job["job"])
    town.github.webhooks.release()
    await town.quiet()
    assert await claimed_by_http(town, token, ADRENO) is None, "the new head needs its own approval"


async def claimed_by_http(town: Town, token: str, target: str) -> dict[str, Any] | None:
    """Claim as a lab's agent does."""
    address, headers = f"{town.url}/api/v1/labs/{LAB}/claims", {"Authorization": f"Bearer {token}"}
    body = {"targets": [target], "wait": 0}
    async with aiohttp.ClientSession(headers=headers) as client, client.post(address, json=body) as answer:
        assert answer.status in (200, 204)
        job: dict[str, Any] | None = await answer.json() if answer.status == 200 else None
        return job


async def audited(town: Town) -> list[str]:
    """Return the effects in the audit log."""
    deliveries = await town.bot.engine.journal.recent(limit=500)
    return [effect.job.text for delivery in deliveries for plan in delivery.plans for effect in plan.effects]


async def test_floods_of_calls_are_limited_and_recorded(lab: DeviceLab) -> None:
    waiting = [asyncio.create_task(lab.call("claims", {**CLAIM, "wait": 60})) for _ in range(MOST_WAITING)]
    await until(lambda: lab.store.bell.waiting(LAB) == MOST_WAITING)
    assert (await lab.call("claims", {**CLAIM, "wait": 60}))[0] == 429
    assert counted(lab.town, "claims", "too many") == 1
    for claim in waiting:
        claim.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    flood = await asyncio.gather(*(lab.call("claims", CLAIM) for _ in range(2 * CALLS_PER_MINUTE)))
    answers = [status for status, _, _ in flood]
    assert answers.count(204) == CALLS_PER_MINUTE - MOST_WAITING - 1
    assert answers.count(429) == CALLS_PER_MINUTE + MOST_WAITING + 1
    assert counted(lab.town, "claims", "too many") == 1 + answers.count(429)


async def block_the_address(lab: DeviceLab) -> None:
    """Send calls with wrong tokens until the bot blocks the address."""
    while (await lab.call("claims", CLAIM, token="x"))[0] != 429:
        pass


async def test_a_revoked_token_loses_its_exemption_from_a_blocked_address(lab: DeviceLab) -> None:
    assert await lab.claim(token=lab.token) is None
    await block_the_address(lab)
    assert await lab.claim(token=lab.token) is None, "the lab is not blocked by its neighbor"
    tokens = TokenStore(lab.town.bot.engine.database.connector, LAB_SCOPE)
    assert await tokens.revoke(lab.token.split("_")[1])
    assert (await lab.call("claims", CLAIM, token=lab.token))[0] == 401
    await block_the_address(lab)
    assert (await lab.call("claims", CLAIM, token=lab.token))[0] == 429


async def test_a_token_is_exempt_for_its_own_lab_only(lab: DeviceLab) -> None:
    assert await lab.claim(token=lab.other_token, lab="other-lab", target="adreno") is None
    await block_the_address(lab)
    assert (await lab.call("claims", CLAIM, token=lab.other_token))[0] == 429


async def test_a_flood_of_wrong_tokens_is_still_recorded_once_their_address_is_blocked(lab: DeviceLab) -> None:
    answers = [(await lab.call("claims", CLAIM, token="x"))[0] for _ in range(2 * REFUSALS_PER_MINUTE)]
    assert answers == [401] * REFUSALS_PER_MINUTE + [429] * REFUSALS_PER_MINUTE
    assert counted(lab.town, "claims", "refused") == REFUSALS_PER_MINUTE
    assert counted(lab.town, "claims", "too many") == REFUSALS_PER_MINUTE
