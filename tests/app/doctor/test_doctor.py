"""`nightjar doctor` against a GitHub, a bucket and a Jenkins with each fault in turn: one line with a remedy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.app.doctor.findings import Check
from bot.app.load import load_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.cli.doctor import examine, line_of
from bot.config.environment import Settings
from bot.engine.service import Engine
from sandbox import App, GitHubSandbox
from sandbox.bucket import BucketServer
from sandbox.jenkins import JenkinsSandbox
from sandbox.model.apps import Installation, new_private_key
from tests.app.doctor.listener import refusing
from tests.running import Finished, run

SECRET = "only-the-tests-know-this-secret"
CONFIG = """
public_url: https://ci.example.org
repositories:
  octocat/compiler:
    rerun: {{jenkins: [{{url: "{jenkins}"}}]}}
    results: {{bucket: device-results, labs: {{example-lab: {{targets: [adreno]}}}}}}
"""
pytestmark = pytest.mark.one_clock
ALL = [
    "database",
    "clock",
    "app",
    "key",
    "permissions",
    "events",
    "hook",
    "repositories",
    "bucket",
    "jenkins",
    "sign-in",
]


@dataclass
class Clinic:
    """Everything that is checked, and an operator in a folder with app.yaml."""

    github: GitHubSandbox
    app: App
    installation: Installation
    bucket: BucketServer
    jenkins: JenkinsSandbox
    folder: Path
    env: dict[str, str]

    async def doctor(self, *options: str) -> Finished:
        return await run("doctor", *options, env=self.env, cwd=self.folder)

    async def failures(self) -> dict[str, str]:
        """Return the lines that report failures, by the check's name."""
        config = load_config(self.folder / "app.yaml")
        findings = await examine(config, Settings.from_environment(self.env))
        lines = [line_of(finding).split(maxsplit=2) for finding in findings]
        return {line[1]: line[2] for line in lines if line[0] == "FAILED"}


@pytest.fixture(scope="module")
def bucket_server() -> Iterator[BucketServer]:
    with BucketServer() as server:
        server.create_bucket("device-results")
        yield server


@pytest.fixture
async def clinic(tmp_path: Path, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clinic]:
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    github, jenkins = GitHubSandbox(), JenkinsSandbox()
    async with github.serve() as api_url, jenkins.serve() as jenkins_url:
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
        installation = app.install(github.create_repository("octocat/compiler"))
        app.webhook_url = "https://ci.example.org/webhook"
        (tmp_path / "app.yaml").write_text(CONFIG.format(jenkins=jenkins_url))
        env = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": api_url,
            "DATABASE_URL": f"sqlite:///{tmp_path}/nightjar.db",
            "JENKINS_USER": jenkins.user,
            "JENKINS_TOKEN": jenkins.token,
            **bucket_server.environment,
        }
        async with Engine(env["DATABASE_URL"]):
            pass
        yield Clinic(github, app, installation, bucket_server, jenkins, tmp_path, env)
        assert not github.violations, github.violations


async def test_if_all_is_well_every_check_has_a_line(clinic: Clinic) -> None:
    done = await clinic.doctor()
    assert done.status == 0, done.out + done.err
    assert [line.split()[:2] for line in done.out.splitlines()] == [["ok", name] for name in ALL]
    report = json.loads((await clinic.doctor("--json")).out)
    assert [(one["check"], one["ok"], one["remedy"]) for one in report] == [(name, True, "") for name in ALL]


async def test_a_fault_is_reported_to_programs_as_well(clinic: Clinic) -> None:
    clinic.app.hook_content_type = "form"
    done = await clinic.doctor("--json")
    assert done.status == 1
    assert [one for one in json.loads(done.out) if not one["ok"]] == [
        {
            "check": "hook",
            "ok": False,
            "text": "GitHub sends webhooks as form data",
            "remedy": "set the webhook's content type to application/json on the App's page on GitHub",
        }
    ]


def without(name: str) -> dict[str, str]:
    return {key: level for key, level in PERMISSIONS.items() if key != name}


def wrong_app_id(clinic: Clinic) -> None:
    clinic.env["GITHUB_APP_ID"] = "99999"


def wrong_key(clinic: Clinic) -> None:
    clinic.env["GITHUB_PRIVATE_KEY"] = new_private_key(4711)


def suspended(clinic: Clinic) -> None:
    clinic.installation.suspend()


def suspended_by_github(clinic: Clinic) -> None:
    clinic.installation.suspend()
    clinic.installation.suspended_by = None


def not_installed(clinic: Clinic) -> None:
    clinic.installation.delete()


def missing_permission(clinic: Clinic) -> None:
    clinic.app.permissions = without("statuses")


def permission_not_accepted(clinic: Clinic) -> None:
    clinic.installation.accepted = without("checks")


def missing_event(clinic: Clinic) -> None:
    clinic.app.events = tuple(event for event in EVENTS if event != "issue_comment")


def form_data(clinic: Clinic) -> None:
    clinic.app.hook_content_type = "form"


def no_secret(clinic: Clinic) -> None:
    clinic.app.webhook_secret = None


def no_tls(clinic: Clinic) -> None:
    clinic.app.hook_insecure_ssl = "1"


def no_webhook(clinic: Clinic) -> None:
    clinic.app.webhook_url = None


def other_webhook(clinic: Clinic) -> None:
    clinic.app.webhook_url = "https://old.example.org/webhook"


def clock_ahead(clinic: Clinic) -> None:
    clinic.github.clock.advance(seconds=-90)


def clock_behind(clinic: Clinic) -> None:
    clinic.github.clock.advance(days=1)


def github_away(clinic: Clinic) -> None:
    clinic.github.faults.add("*", "*", status=502, times=None)


def database_away(clinic: Clinic) -> None:
    clinic.env["DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/nightjar"


def no_bucket(clinic: Clinic) -> None:
    config = clinic.folder / "app.yaml"
    config.write_text(config.read_text().replace("device-results", "no-such-results"))


def listen_to(clinic: Clinic, queue: str) -> None:
    """Make app.yaml name a queue."""
    config = clinic.folder / "app.yaml"
    config.write_text(config.read_text().replace("bucket: device-results", f'bucket: device-results, queue: "{queue}"'))


def no_queue(clinic: Clinic) -> None:
    listen_to(clinic, f"{clinic.bucket.url}/123456789012/no-such-queue")


def wrong_jenkins_token(clinic: Clinic) -> None:
    clinic.env["JENKINS_TOKEN"] = "wrong"


def no_jenkins_user(clinic: Clinic) -> None:
    del clinic.env["JENKINS_USER"], clinic.env["JENKINS_TOKEN"]


def no_jenkins_there(clinic: Clinic) -> None:
    config = clinic.folder / "app.yaml"
    config.write_text(config.read_text().replace(clinic.jenkins.url, "http://127.0.0.1:9"))


def may_sign_in(clinic: Clinic) -> None:
    clinic.env["GITHUB_CLIENT_ID"], clinic.env["SESSION_SECRET"] = clinic.app.client_id, "s" * 32
    clinic.env["GITHUB_CLIENT_SECRET"] = clinic.app.client_secret


def wrong_client_secret(clinic: Clinic) -> None:
    may_sign_in(clinic)
    clinic.env["GITHUB_CLIENT_SECRET"] = "wrong"


def pages_without_encryption(clinic: Clinic) -> None:
    may_sign_in(clinic)
    config = clinic.folder / "app.yaml"
    config.write_text(config.read_text().replace("https://ci.example.org", "http://ci.example.org"))
    clinic.app.webhook_url = "http://ci.example.org/webhook"


def operators_who_cannot_sign_in(clinic: Clinic) -> None:
    config = clinic.folder / "app.yaml"
    config.write_text(f"operators: ['583231']\n{config.read_text()}")


def renamed(clinic: Clinic) -> None:
    clinic.github.repositories["octocat/compiler"].rename("octocat", "compiler-next")


def archived(clinic: Clinic) -> None:
    clinic.github.repositories["octocat/compiler"].archive("octocat")


FAULTS: list[tuple[Callable[[Clinic], None], str, str, str]] = [
    (wrong_app_id, "app", "there is no App with the ID 99999 on this GitHub", "set GITHUB_APP_ID to the ID"),
    (wrong_key, "key", "A JSON web token could not be decoded", "of the same App"),
    (suspended, "repositories", "suspended by octocat, so its jobs wait", "with the REST API"),
    (suspended_by_github, "repositories", "is suspended, so its jobs wait", "contact GitHub Support"),
    (not_installed, "repositories", "octocat/compiler: the App is not installed on it", "install the App on it"),
    (wrong_client_secret, "sign-in", "GitHub refuses GITHUB_CLIENT_ID or GITHUB_CLIENT_SECRET", "a new client secret"),
    (pages_without_encryption, "sign-in", "public_url is http://ci.example.org", "over https"),
    (operators_who_cannot_sign_in, "sign-in", "nobody can sign in", "set GITHUB_CLIENT_ID"),
    (renamed, "repositories", "octocat/compiler: it is now called octocat/compiler-next on GitHub", "change its name"),
    (archived, "repositories", "octocat/compiler: it is archived on GitHub", "remove it from app.yaml"),
    (missing_permission, "permissions", "the App lacks the permissions Commit statuses: write", "add them"),
    (permission_not_accepted, "permissions", "octocat/compiler: its owner has not accepted", "accept them"),
    (missing_event, "events", "the App is not subscribed to Issue comment", "Subscribe to events"),
    (form_data, "hook", "GitHub sends webhooks as form data", "application/json"),
    (no_secret, "hook", "the webhook has no secret", "to the value of GITHUB_WEBHOOK_SECRET"),
    (no_tls, "hook", "does not verify the certificate", "enable SSL verification"),
    (no_webhook, "hook", "the App has no webhook URL", "https://YOUR-HOST/webhook"),
    (other_webhook, "hook", "https://old.example.org/webhook, but public_url", "correct the webhook URL"),
    (clock_ahead, "clock", "s ahead of GitHub's", "NTP"),
    (clock_behind, "clock", "s behind GitHub's", "NTP"),
    (github_away, "app", "could not ask GitHub: GET /app: GitHub answered 502", "check GITHUB_API_URL"),
    (database_away, "database", "", "correct DATABASE_URL"),
    (no_bucket, "bucket", "bucket no-such-results does not exist", "docs/hardware-results.md"),
    (no_queue, "bucket", "/123456789012/no-such-queue does not exist", "docs/hardware-results.md"),
    (wrong_jenkins_token, "jenkins", "refuses JENKINS_USER (401)", "JENKINS_TOKEN to a valid API token"),
    (no_jenkins_user, "jenkins", "JENKINS_USER and JENKINS_TOKEN are not set", "set them to a Jenkins user"),
    (no_jenkins_there, "jenkins", "http://127.0.0.1:9 does not answer", "check the address in app.yaml"),
]


@pytest.mark.parametrize(("fault", "check", "text", "remedy"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
async def test_a_fault_is_one_line_with_its_remedy(
    clinic: Clinic, fault: Callable[[Clinic], None], check: str, text: str, remedy: str
) -> None:
    fault(clinic)
    failures = await clinic.failures()
    assert list(failures) == [check]
    said, _, to_do = failures[check].partition(". Remedy: ")
    assert text in said
    assert remedy in to_do


async def test_two_faults_of_one_check_are_two_lines_each_with_its_own_remedy(clinic: Clinic) -> None:
    form_data(clinic)
    no_secret(clinic)
    no_jenkins_there(clinic)
    done = await clinic.doctor()
    assert done.status == 1
    faults = [line.split(maxsplit=1)[1] for line in done.out.splitlines() if line.startswith("FAILED")]
    assert [(line.split()[0], line.count(". Remedy: ")) for line in faults] == [
        ("hook", 1),
        ("hook", 1),
        ("jenkins", 1),
    ]
    assert "application/json" in faults[0].partition("Remedy:")[2]
    assert "GITHUB_WEBHOOK_SECRET" in faults[1].partition("Remedy:")[2]


async def test_reading_a_queue_takes_nothing_away_from_its_listener(clinic: Clinic) -> None:
    queue = clinic.bucket.create_queue("device-results", "arrivals")
    sqs = clinic.bucket.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    listen_to(clinic, queue)
    config = load_config(clinic.folder / "app.yaml")
    findings = {one.check: one for one in await examine(config, Settings.from_environment(clinic.env))}
    assert findings[Check.BUCKET].text == f"device-results can be listed; {queue} can be read"
    assert findings[Check.BUCKET].ok
    assert len(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=0)["Messages"]) == 1


async def test_a_wrong_secret_shows_in_the_newest_delivery(clinic: Clinic) -> None:
    async with refusing(401) as url:
        clinic.app.webhook_url = f"{url}/webhook"
        config = clinic.folder / "app.yaml"
        config.write_text(config.read_text().replace("public_url: https://ci.example.org", ""))
        clinic.github.repositories["octocat/compiler"].push("main", by="octocat")
        await clinic.github.delivered()
        failures = await clinic.failures()
    assert "its signature does not match GITHUB_WEBHOOK_SECRET" in failures["hook"]


async def test_a_missing_database_is_not_created(clinic: Clinic) -> None:
    (clinic.folder / "nightjar.db").unlink()
    assert await clinic.failures() == {}
    assert not (clinic.folder / "nightjar.db").exists()


async def test_no_secret_is_shown(clinic: Clinic) -> None:
    clinic.env["JENKINS_TOKEN"] = "sesame-of-jenkins"
    wrong_key(clinic)
    done = await clinic.doctor("--json")
    for secret in ("sesame-of-jenkins", SECRET, "PRIVATE KEY-----", "ghs_"):
        assert secret not in done.out + done.err


async def test_sign_in_is_checked_with_the_apps_client(clinic: Clinic) -> None:
    may_sign_in(clinic)
    done = await clinic.doctor()
    assert done.status == 0, done.out
    assert (
        "GitHub accepts the client ID and secret; sign-in returns to https://ci.example.org/login/callback" in done.out
    )
