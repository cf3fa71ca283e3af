"""No secret leaks: after an eventful run, the test searches all output and files for secrets."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import psycopg
import pytest

from sandbox.processes import launch
from sandbox.webhooks import headers_of
from tests.bucket import World
from tests.postgres import PostgresServer
from tests.robustness.conversation import CONVERSATIONS
from tests.robustness.nightly_runs import NightlyRuns
from tests.robustness.place import SECRET, Place, open_place
from tests.robustness.side_by_side import SideBySide
from tests.robustness.test_incomplete_payloads import without

OLD_SECRET = "only-the-tests-knew-this-one-before"
PASSWORD = "pass:word/of the@database"
OTHER_SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "only-the-tests-know-this-key-of-a-bucket",
    "AWS_SESSION_TOKEN": "only-the-tests-know-this-token-of-a-role",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T000/B000/only-the-tests-know",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/only-the-tests-know",
}
TALKATIVE = {"PYTHONDEVMODE": "1"}
"""Python then reports slow callbacks and unclosed resources, with all that it knows about them."""

REPOS = "/repos/{owner}/{repo}"
SHAPES = re.compile(r"ghs_[0-9a-zA-Z]|BEGIN [A-Z ]*PRIVATE KEY|eyJ[A-Za-z0-9_-]{20}", re.I)
"""What a secret that nobody thought of would look like."""

Outputs = dict[str, str]
"""Everything that the bot wrote, by its source."""


def secrets_of(place: Place) -> dict[str, str]:
    """Return every secret of the run by its name, in each form in which it is sent."""
    secrets = {
        "webhook secret": SECRET,
        "webhook secret before": OLD_SECRET,
        "password": PASSWORD,
        "Jenkins token": place.jenkins.token,
        **OTHER_SECRETS,
    }
    secrets |= {f"token {n}": token for n, token in enumerate(place.github.tokens.issued)}
    secrets |= {f"JWT {n}": token.rpartition(".")[2] for n, token in enumerate(place.github.tokens.shown)}
    secrets |= {
        f"line {n} of the key": line for n, line in enumerate(place.app.private_key.split("\n")) if len(line) > 40
    }
    forms = dict(secrets)
    forms |= {f"{name}, quoted": quote(value, safe="") for name, value in secrets.items()}
    forms |= {f"{name}, base64": base64.b64encode(value.encode()).decode() for name, value in secrets.items()}
    basic = base64.b64encode(f"{place.jenkins.user}:{place.jenkins.token}".encode()).decode()
    return forms | {"Jenkins' basic authentication": basic}


def leaks(place: Place, outputs: Outputs) -> Iterator[str]:
    """Yield the name of each leaked secret and the source that contains it."""
    secrets = secrets_of(place)
    for source, text in outputs.items():
        yield from (f"{name} in {source}" for name, secret in secrets.items() if secret in text)
        yield from (f"{match[0]} in {source}" for match in SHAPES.finditer(text))


async def answers(place: Place) -> Outputs:
    """Return the bot's HTTP answers to good requests and to bad ones."""
    outputs: Outputs = {}
    (delivery,) = place.github.webhooks.find("pull_request", "opened")[:1]
    good = headers_of(delivery)
    bad_headers = {
        "no signature": {k: v for k, v in good.items() if "Signature" not in k},
        "wrong signature": good | {"X-Hub-Signature-256": "sha256=" + "0" * 64},
        "the secret as signature": good | {"X-Hub-Signature-256": f"sha256={SECRET}"},
        "no event": {k: v for k, v in good.items() if k != "X-GitHub-Event"},
        "a GUID with a space": good | {"X-GitHub-Delivery": "not one"},
    }
    paths = ["/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/", "/webhook", "/nowhere?x=%00"]
    paths += ["/api/v1/repos/example-lab-0/compiler/pulls/1/decision", "/api/v1/repos/octocat/none/pulls/1/decision"]
    async with aiohttp.ClientSession(place.bot.url) as session:
        for name, headers in bad_headers.items():
            async with session.post("/webhook", data=delivery.payload, headers=headers) as answer:
                assert 400 <= answer.status < 500, name
                outputs[name] = f"{answer.headers} {await answer.text()}"
        for path in paths:
            async with session.get(path) as answer:
                outputs[path] = f"{answer.headers} {await answer.text()}"
    return outputs


async def commands(place: Place, guid: str) -> Outputs:
    """Return what the commands print, both where they succeed and where they cannot start."""
    config = ("--config", str(place.bot.config))
    outputs: Outputs = {}
    for arguments in (
        ("deliveries",),
        ("deliveries", "--failed"),
        ("deliveries", "--json"),
        ("replay", guid, "--dry-run", *config),
        ("replay", guid, "--json", *config),
        ("serve", "--port", str(place.bot.port), *config),
        ("check-config", "--json", str(place.bot.config)),
    ):
        _, stdout, stderr = await place.replica().run(*arguments)
        outputs[" ".join(arguments[:2])] = stdout + stderr
    for name, value in (
        ("DATABASE_URL", f"postgresql://nightjar:{quote(PASSWORD, safe='')}@127.0.0.1:9/nightjar"),
        ("DATABASE_URL", f"postgresql://nightjar:{PASSWORD}@127.0.0.1:9/nightjar"),
        ("GITHUB_PRIVATE_KEY", place.app.private_key[:-200]),
        ("GITHUB_API_URL", f"http://{quote(PASSWORD, safe='')}@127.0.0.1:9"),
        ("JENKINS_USER", ""),
    ):
        replica = place.replica()
        replica.environment[name] = value
        code, stdout, stderr = await replica.run("serve", *config, "--port", "0")
        assert code == 1, (name, stdout, stderr)
        assert "Traceback" not in stderr
        outputs[f"serve with another {name}"] = stdout + stderr
    return outputs


def stored(url: str) -> str:
    """Return all contents of the database."""
    if url.startswith("sqlite:"):
        file = Path(url.removeprefix("sqlite:///"))
        return "".join(path.read_bytes().decode("latin-1") for path in file.parent.glob(f"{file.name}*"))
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        rows = [connection.execute(f'SELECT t::text FROM "{name}" AS t'.encode()).fetchall() for (name,) in tables]
    return "\n".join(text for table in rows for (text,) in table)


async def eventful_run(place: Place) -> str:
    """Let much go wrong during conversations, with kills and restarts; return the GUID of a failed delivery."""
    faults = place.github.faults
    side_by_side = SideBySide(place, {kind.__name__: kind for kind in (*CONVERSATIONS, NightlyRuns)})
    assert place.gate is not None
    for trouble in ({"status": 403, "message": "SignatureDoesNotMatch"}, {"status": 503}, {"drop": "before"}):
        place.gate.faults.add("GET", re.compile("list-type="), **trouble)
        place.gate.faults.add("POST", re.compile("."), **trouble)
    place.gate.faults.add("GET", re.compile("manifest.json"), status=503)
    faults.add("POST", "/app/installations/{installation_id}/access_tokens", status=500)
    faults.add("POST", "/app/installations/{installation_id}/access_tokens", drop="after")
    faults.add("GET", f"{REPOS}/pulls/{{pull_number}}/reviews", status=401)
    faults.add("GET", f"{REPOS}/commits/{{ref}}/status", drop="before")
    faults.add("POST", f"{REPOS}/statuses/{{sha}}", status=502, when="after")
    faults.add("POST", f"{REPOS}/issues/{{issue_number}}/comments", drop="after")
    faults.add("GET", f"{REPOS}/actions/runs", status=429, headers={"Retry-After": "1"})
    for drop in ("before", "after"):
        place.jenkins.faults.add("POST", re.compile("/build"), drop=drop)
    place.jenkins.faults.add("GET", re.compile("/crumbIssuer/"), status=503)
    await place.start()
    side_by_side.begin()
    await side_by_side.finish()
    # A token that GitHub no longer accepts, a CI that rejects its credentials, and a fault of ours from GitHub's
    # answer.
    rerun = side_by_side.conversations["SlowTests"]
    place.github.tokens.expire_all()
    assert rerun.job is not None
    rerun.job.builds[-1].finish("FAILURE")
    rerun.job.status = 401
    await rerun.done(rerun.pull.comment("hubot", "@ci rerun"), "confused")
    place.github.webhooks.hold()
    pull = rerun.repository.open_pull_request("hubot", "Faster", "@ci help")
    delivery = place.github.webhooks.find("pull_request", "opened")[-1]
    without(delivery, "pull_request.id")
    place.github.webhooks.release()
    await place.quiet()
    await place.bot.kill()
    place.bot.launch = launch  # from scratch: the test searches the process's arguments, and a fork has its parent's
    await place.start()
    pull.comment("hubot", "@ci help")
    await place.quiet()
    return delivery.guid


async def read_pages(place: Place) -> Outputs:
    """Have an eventful run, and return everything that the bot wrote."""
    guid = await eventful_run(place)
    outputs = await answers(place) | await commands(place, guid)
    outputs["argv"] = await asyncio.to_thread(Path(f"/proc/{place.bot.pid}/cmdline").read_text)
    assert await place.bot.stop() == 0
    outputs["log"] = "\n".join(place.bot.output)
    outputs["database"] = stored(place.bot.environment["DATABASE_URL"])
    outputs["comments"] = "\n".join(pull.conversation() for r in place.github.repositories.values() for pull in r.pulls)
    # The search covers the intended files.
    for source in ("log", "database", "deliveries", "deliveries --failed", "replay " + guid):
        assert guid in outputs[source], source
    assert "serve" in outputs["argv"]
    assert "nightjar_" in outputs["/metrics"]
    assert "cannot receive from queue" in outputs["log"]
    return outputs


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the environment variables that the bot gets besides the usual ones."""
    return {"GITHUB_WEBHOOK_SECRET": f"{SECRET} {OLD_SECRET}", **OTHER_SECRETS, **TALKATIVE}


async def test_no_secret_leaks_on_sqlite(
    environment: dict[str, str], tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    async with open_place(tmp_path, sqlite_url, environment=environment, bucket=aws_world) as place:
        outputs = await read_pages(place)
        assert list(leaks(place, outputs)) == []


@pytest.mark.exhaustive
async def test_no_secret_leaks_on_postgresql_which_goes_down_meanwhile(
    environment: dict[str, str], tmp_path: Path, postgres_url: str, postgres_server: PostgresServer, aws_world: World
) -> None:
    url = postgres_url.replace("@", f":{quote(PASSWORD, safe='')}@")
    async with open_place(tmp_path, url, environment=environment, bucket=aws_world) as place:
        place.configure([place.add_repository("octocat").full_name])
        await place.start()
        postgres_server.restart_immediately()
        await place.bot.kill()
        outputs = await read_pages(place)
        assert list(leaks(place, outputs)) == []
