"""Who may act for a lab, and who may not: tokens of labs, of workflows, and attacks with both."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from structlog.testing import capture_logs

from bot.results.settings.lab_identity import GitHubOidc
from bot.web import oidc
from bot.web.oidc import ISSUER_KEYS
from handlers.device_tests.model import DeviceJobState
from handlers.labs import texts
from handlers.labs.callers import wrong_claim
from handlers.labs.calls import REFUSALS_PER_MINUTE
from tests.bucket import World
from tests.conversations.device_lab import (
    BUILDKITE,
    CONFIG,
    GITHUB,
    LAB,
    PUBLIC_URL,
    TARGET,
    DeviceLab,
    device_lab,
    public_pem,
    rsa_key,
    unsigned,
)
from tests.running import Finished, run

CLAIM = {"targets": [TARGET]}


@pytest.fixture
async def lab(tmp_path: Path, aws_world: World) -> AsyncIterator[DeviceLab]:
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as lab:
        yield lab


async def refused(lab: DeviceLab, token: str | None, status: int = 401, name: str = LAB) -> str:
    """Claim with a token that must be refused; return the remedy."""
    attempts = (await lab.asked_for()).attempt
    answer, headers, problem = await lab.call("claims", CLAIM, token=token, lab=name)
    assert (answer, headers["Content-Type"]) == (status, "application/problem+json")
    assert ("WWW-Authenticate" in headers) == (status == 401)
    assert (await lab.store.find(LAB, "job")).attempt == attempts
    assert f'nightjar_lab_calls_total{{call="claims",lab="{name}",outcome="refused"}}' in lab.metrics()
    detail: str = problem["detail"]
    return detail


async def test_workflows_named_in_app_yaml_may_act_for_the_lab(lab: DeviceLab) -> None:
    await lab.asked_for()
    with capture_logs() as logs:
        assert (await lab.claim(token=lab.issuer.token()))["job"] == "job"
    assert "repo:octocat/lab:environment:devices" in [entry.get("to") for entry in logs]
    key_requests = lab.issuer.asked
    for _ in range(3):
        assert await lab.claim(token=lab.issuer.token()) is None
    assert lab.issuer.asked == key_requests, "keys are cached"
    buildkite = lab.issuer.token(BUILDKITE, path="/buildkite")
    assert await lab.claim(token=buildkite) is None


async def test_a_workflow_gets_jobs_only_of_repositories_that_name_it(lab: DeviceLab) -> None:
    job = await lab.asked_for(repository="octocat/other")
    assert await lab.claim(token=lab.issuer.token()) is None
    claimed_job = await lab.claim()
    assert claimed_job["job"] == job.id, "a token of the lab works for all its repositories"
    body = {"lease": claimed_job["lease"]}
    status, _, problem = await lab.call("jobs/job/heartbeat", body, token=lab.issuer.token())
    assert (status, problem["detail"]) == (404, texts.UNKNOWN_JOB)
    assert (await lab.call("jobs/job/heartbeat", body))[0] == 200


async def test_a_claim_without_a_valid_token_is_refused(lab: DeviceLab) -> None:
    assert await refused(lab, None) == texts.NO_TOKEN
    invalid = texts.INVALID_TOKEN.format(audience=PUBLIC_URL)
    for token in ("x", "nightjar_0_0", lab.token[:-1] + "g", "e30.e30.e30", "a.b"):
        assert await refused(lab, token) == invalid
    assert await refused(lab, lab.other_token, 403) == texts.OTHER_LAB


def hs256_with_the_public_key(lab: DeviceLab) -> str:
    """Return a token signed with the public key as HMAC secret, which PyJWT itself refuses to create."""
    header = {"alg": "HS256", "typ": "JWT", "kid": "first"}
    issued_at = int(time.time())
    claims = {**GITHUB, "iss": lab.issuer.url, "aud": PUBLIC_URL, "iat": issued_at, "exp": issued_at + 300}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.new(public_pem("first"), b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def of_nobody(lab: DeviceLab, alg: str) -> str:
    issued_at = time.time()
    claims = {**GITHUB, "iss": lab.issuer.url, "aud": PUBLIC_URL, "iat": issued_at, "exp": issued_at + 300}
    return unsigned(claims, alg=alg, kid="first")


def altered(lab: DeviceLab) -> str:
    header, _, signature = lab.issuer.token(repository_id="5").split(".")
    return f"{header}.{lab.issuer.token().split('.')[1]}.{signature}"


FORGED: dict[str, Any] = {
    "expired": lambda lab: lab.issuer.token(age=400),
    "not yet valid": lambda lab: lab.issuer.token(age=-120),
    "another audience": lambda lab: lab.issuer.token(aud="https://other.example.org"),
    "several audiences": lambda lab: lab.issuer.token(aud=[PUBLIC_URL, "https://other.example.org"]),
    "without an audience": lambda lab: lab.issuer.token(aud=None),
    "without an expiry": lambda lab: lab.issuer.token(exp=None),
    "another issuer": lambda lab: lab.issuer.token(iss="https://token.actions.githubusercontent.com"),
    "without a signature": lambda lab: of_nobody(lab, "none"),
    "without a signature, in capitals": lambda lab: of_nobody(lab, "NONE"),
    "with an empty signature": lambda lab: of_nobody(lab, "RS256"),
    "signed with the public key": hs256_with_the_public_key,
    "signed with another key under the same name": lambda lab: jwt.encode(
        jwt.decode(lab.issuer.token(), options={"verify_signature": False}),
        rsa_key("of a stranger"),
        algorithm="RS256",
        headers={"kid": "first"},
    ),
    "with its own key": lambda lab: lab.issuer.token(key="of a stranger"),
    "with altered claims": altered,
}


async def test_forged_and_stale_tokens_are_refused(lab: DeviceLab) -> None:
    invalid = texts.INVALID_TOKEN.format(audience=PUBLIC_URL)
    for name, forge in FORGED.items():
        assert await refused(lab, forge(lab)) == invalid, name
    assert lab.issuer.asked <= 2, "unknown keys are not fetched each time"


async def test_forks_and_foreign_branches_may_not_act_for_the_lab(lab: DeviceLab) -> None:
    for claim, changes in (
        ("repository_id", {"repository_id": "124"}),
        ("repository_id", {"repository_id": 123}),
        ("repository_owner_id", {"repository_owner_id": "10"}),
        ("environment", {"environment": None}),
        ("environment", {"environment": "Devices"}),
        ("event_name", {"event_name": "pull_request_target"}),
        ("event_name", {"event_name": "workflow_run"}),
        ("event_name", {"event_name": None}),
    ):
        detail = await refused(lab, lab.issuer.token(**changes), 403)
        assert detail == texts.WRONG_CLAIM.format(claim=claim, lab=LAB)
    fork = lab.issuer.token(BUILDKITE, path="/buildkite", build_branch="stranger:main")
    assert await refused(lab, fork, 403) == texts.WRONG_CLAIM.format(claim="build_branch", lab=LAB)
    # A token does not say that its build is a fork's; a fork may call its own branch main.
    for source in ("webhook", "trigger_job", "ui", "api", None):
        fork = lab.issuer.token(BUILDKITE, path="/buildkite", build_source=source)
        assert await refused(lab, fork, 403) == texts.WRONG_CLAIM.format(claim="build_source", lab=LAB)
    # One issuer's signature does not count for the other.
    assert "was not issued for this bot" in await refused(lab, lab.issuer.token(), 401, "other-lab")


@pytest.mark.parametrize(
    "event",
    [
        *("pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment", "workflow_run"),
        *("issue_comment", "issues", "discussion", "fork", "watch", "check_run", "merge_group", "of_tomorrow", ""),
        *("PUSH", "push ", None, 7, True, ["push"], {"push": 1}),
    ],
)
def test_an_event_that_a_stranger_can_cause_or_that_is_unknown_is_wrong(event: object) -> None:
    identity = GitHubOidc(repository_id=123, branch="main")
    claims = {"repository_id": "123", "ref": "refs/heads/main"}
    assert wrong_claim(identity, {**claims, "event_name": "push"}) == ""
    assert wrong_claim(identity, {**claims, "event_name": event}) == wrong_claim(identity, claims) == "event_name"


async def test_workflows_that_only_a_writer_can_start_may_act_for_the_lab(lab: DeviceLab) -> None:
    for event in ("push", "repository_dispatch", "schedule", "workflow_dispatch"):
        assert await lab.claim(token=lab.issuer.token(event_name=event)) is None


async def test_builds_started_by_webhooks_may_act_for_a_lab_whose_pipeline_builds_no_forks(
    tmp_path: Path, aws_world: World
) -> None:
    config = CONFIG.replace("branch: main\n", "branch: main\n              sources: [schedule, webhook]\n")
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, config=config) as lab:
        for source in ("schedule", "webhook"):
            token = lab.issuer.token(BUILDKITE, path="/buildkite", build_source=source)
            assert await lab.claim(token=token) is None
        await refused(lab, lab.issuer.token(BUILDKITE, path="/buildkite", build_source="ui"), 403)


async def test_a_lab_cannot_touch_the_job_of_another(lab: DeviceLab) -> None:
    await lab.asked_for()
    claimed_job = await lab.claim()
    for call, body in (("heartbeat", {}), ("failed", {"reason": "x"})):
        path, sent = f"jobs/{claimed_job['job']}/{call}", {"lease": claimed_job["lease"], **body}
        status, _, problem = await lab.call(path, sent, token=lab.other_token, lab="other-lab")
        assert (status, problem["detail"]) == (404, texts.UNKNOWN_JOB)
        assert (await lab.call(path, sent, token=lab.other_token))[0] == 403
    assert await lab.claim(token=lab.other_token, lab="other-lab", target="adreno") is None
    assert (await lab.store.find(LAB, "job")).state is DeviceJobState.LEASED


async def test_keys_survive_an_outage_of_the_issuer_and_are_replaced_when_they_change(
    lab: DeviceLab,
) -> None:
    keys, moment = lab.town.bot.services.part(ISSUER_KEYS), 0.0
    keys.clock = lambda: moment
    lab.issuer.away = True
    status, headers, problem = await lab.call("claims", CLAIM, token=lab.issuer.token())
    assert (status, problem["detail"], "Retry-After" in headers) == (503, texts.ISSUER_AWAY, True)
    moment += oidc.PAUSE_SECONDS
    lab.issuer.away = False
    assert await lab.claim(token=lab.issuer.token()) is None
    lab.issuer.away = True
    moment += oidc.FRESH_SECONDS
    assert await lab.claim(token=lab.issuer.token()) is None
    moment += oidc.PAUSE_SECONDS
    lab.issuer.away, lab.issuer.keys = False, ["second", "third"]
    assert await lab.claim(token=lab.issuer.token(key="third")) is None
    moment += oidc.PAUSE_SECONDS
    await refused(lab, lab.issuer.token(key="first"))


async def test_an_address_with_repeatedly_refused_tokens_is_blocked(lab: DeviceLab) -> None:
    answers = [(await lab.call("claims", CLAIM, token="x"))[0] for _ in range(2 * REFUSALS_PER_MINUTE)]
    assert {*answers} == {401, 429}
    status, headers, _ = await lab.call("claims", CLAIM)
    assert (status, "Retry-After" in headers) == (429, True)


async def test_a_stranger_at_the_same_address_does_not_lock_out_a_working_lab(lab: DeviceLab) -> None:
    assert (await lab.call("claims", CLAIM))[0] == 204
    for _ in range(2 * REFUSALS_PER_MINUTE):
        await lab.call("claims", CLAIM, token="x")
    assert (await lab.call("claims", CLAIM, token="x"))[0] == 429
    assert (await lab.call("claims", CLAIM))[0] == 204


async def test_tokens_of_labs_can_be_created_listed_and_revoked(lab: DeviceLab, tmp_path: Path) -> None:
    async def command(*arguments: str) -> Finished:
        config = CONFIG.format(
            public_url=PUBLIC_URL, bucket="bucket", issuer=lab.issuer.url, presigned="false", extra=""
        )
        (tmp_path / "app.yaml").write_text(config)
        database = {"DATABASE_URL": f"sqlite:///{tmp_path}/nightjar.db"}
        return await run("lab", "token", *arguments, env=database, cwd=tmp_path)

    created = json.loads((await command("create", LAB, "--expires", "90d", "--note", "rack 3", "--json")).out)
    assert created.keys() == {"token", "id", "lab", "note", "created_at", "expires_at", "last_used_at"}
    await lab.asked_for()
    assert (await lab.claim(token=created["token"]))["job"] == "job"
    tokens = json.loads((await command("list", "--json")).out)
    (listed_token,) = [token for token in tokens if token["id"] == created["id"]]
    assert (listed_token["lab"], listed_token["note"], listed_token["last_used_at"] is not None) == (
        LAB,
        "rack 3",
        True,
    )
    table = (await command("list")).out
    assert "LAST USED" in table
    assert created["token"] not in table
    assert (await command("revoke", created["id"])).out == f"revoked {created['id']}\n"
    await refused(lab, created["token"])
    unknown = await command("create", "Example-Lab")
    assert (unknown.status, "has no lab Example-Lab" in unknown.err) == (1, True)
