"""`nightjar results ingest`, `rebuild`, `runs` and `search` as operators run them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.app.registration import EVENTS, PERMISSIONS
from bot.results.store.store import ResultsStore
from handlers.searches.records import SearchRequest
from sandbox import GitHubSandbox, Repository
from sandbox.bot_process import BotProcess
from tests.bucket import World
from tests.fork_server import launch
from tests.results.snapshot import snapshot_of
from tests.running import Finished, run

SECRET = "only-the-tests-know-this-secret"
JUNIT = (
    b'<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"><properties>'
    b'<property name="measurement.latency" value="1.5 ms lower"/></properties></testcase></testsuite>'
)
APP_YAML = """
repositories:
  octocat/compiler:
    results:
      bucket: {bucket}
      labs: {{example-lab: {{targets: [adreno], runs_per_day: 1}}}}
"""
HARDWARE = "hardware/example-lab/adreno"


@dataclass(frozen=True)
class Operator:
    """Somebody with a shell where the bot runs, and a folder of uploads."""

    folder: Path
    env: dict[str, str]
    repo: Repository
    bucket: World

    async def nightjar(self, *arguments: str, database: str = "nightjar.db") -> Finished:
        env = {**self.env, "DATABASE_URL": f"sqlite:///{self.folder}/{database}"}
        return await run("results", *arguments, env=env, cwd=self.folder)

    def snapshot(self, database: str) -> dict[str, object]:
        """Return all data about the repository in a database."""
        store = ResultsStore(f"sqlite:///{self.folder}/{database}")
        store.open()
        try:
            return store.read(snapshot_of, "octocat/compiler")
        finally:
            store.close()

    def run(self, sha: str, run_id: str, content: bytes = JUNIT, target: str = "adreno") -> dict[str, bytes]:
        """Return a run's objects by their keys."""
        folder = f"results/octocat/compiler/example-lab/{target}/{sha}/{run_id}/"
        entry = {"name": "ops.xml", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        manifest = json.dumps({"schema": 1, "sha": sha, "suite": "ops", "files": [entry]}).encode()
        return {f"{folder}ops.xml": content, f"{folder}manifest.json": manifest}

    def lay(self, objects: dict[str, bytes]) -> None:
        """Write a run to the folder `uploads`."""
        for key, content in objects.items():
            path = self.folder / "uploads" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def upload(self, objects: dict[str, bytes]) -> None:
        """Write a run to the bucket."""
        for key, content in objects.items():
            self.bucket.put(key, content)


@pytest.fixture
async def operator(tmp_path: Path, aws_world: World) -> AsyncIterator[Operator]:
    github = GitHubSandbox()
    async with github.serve() as api_url:
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
        repo = github.create_repository("octocat/compiler", people={"hubot": "write"})
        app.install(repo)
        (tmp_path / "app.yaml").write_text(APP_YAML.format(bucket=aws_world.name))
        env = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": api_url,
            "DATABASE_URL": f"sqlite:///{tmp_path}/nightjar.db",
            **aws_world.server.environment,
        }
        yield Operator(tmp_path, env, repo, aws_world)
        assert not github.violations, github.violations


def nightly_run(operator: Operator, number: int) -> str:
    return operator.repo.push("nightly", {"nightly-run.txt": f"{number}\n"}, by="octocat").sha


async def test_a_folder_is_ingested_and_the_running_server_writes_the_check_runs(operator: Operator) -> None:
    shas = [nightly_run(operator, number) for number in range(2)]
    for sha in shas:
        operator.lay(operator.run(sha, "run-1"))
    alone = await operator.nightjar("ingest", "uploads")
    assert alone.status == 0, alone
    assert [line.split(": ")[1] for line in alone.out.splitlines()[:-1]] == ["stored", "stored"]
    assert alone.out.splitlines()[-1] == "2 stored"
    assert "a server on this database will write the check runs" in alone.err
    assert operator.repo.check_runs(shas[0], HARDWARE) == []

    bot = BotProcess(operator.env, config=operator.folder / "app.yaml", launch=launch)
    await bot.start()
    try:
        third = nightly_run(operator, 3)
        operator.lay(operator.run(third, "run-1"))
        beside = await operator.nightjar("ingest", "uploads", "--json")
    finally:
        await bot.stop()
    assert beside.status == 0, beside
    assert sorted(run["state"] for run in json.loads(beside.out)) == ["known", "known", "stored"]
    assert "the check runs are written" in beside.err
    conclusions = [[check.conclusion for check in operator.repo.check_runs(sha, HARDWARE)] for sha in (*shas, third)]
    assert conclusions == [["success"]] * 3


async def test_a_rebuild_reads_everything_from_the_bucket_whatever_the_quota(operator: Operator) -> None:
    for number in range(3):
        operator.upload(operator.run(nightly_run(operator, number), "run-1"))
    operator.upload(operator.run("f" * 40, "run-1"))
    first = await operator.nightjar("ingest", f"s3://{operator.bucket.name}/results/octocat/")
    assert first.status == 1, first  # one is refused
    rebuilt = await operator.nightjar("rebuild", database="another.db")
    assert rebuilt.status == 0, rebuilt
    assert rebuilt.out.splitlines()[-1] in ("3 stored, 1 refused", "1 refused, 3 stored")
    snapshot = operator.snapshot("another.db")
    assert snapshot == operator.snapshot("nightjar.db")
    assert "1.5" in str(snapshot), "measurements are rebuilt as well"
    listed = await operator.nightjar("runs")
    header, *rows = listed.out.splitlines()
    assert header.split()[:4] == ["RECEIVED", "REPOSITORY", "LAB", "TARGET"]
    assert len(rows) == 4
    refused = await operator.nightjar("runs", "--state", "refused", "--lab", "example-lab", "--json")
    assert [run["reason"] for run in json.loads(refused.out)] == [f"there is no commit {'f' * 40} in octocat/compiler"]


async def test_a_run_that_was_not_stored_is_reported_and_ends_with_1(operator: Operator) -> None:
    sha = nightly_run(operator, 1)
    operator.upload(operator.run(sha, "run-1", target="unknown"))
    finished = await operator.nightjar("ingest", f"s3://{operator.bucket.name}/results/")
    assert finished.status == 1
    assert "refused: app.yaml has no target unknown for the lab example-lab; available: adreno" in finished.out
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ingest", "."], "no run found in .: it has no manifest.json"),
        (["ingest", "s3:/device-results"], "s3:/device-results is not an S3 address; write s3://BUCKET/PREFIX"),
        (["rebuild", "--repository", "octocat/other"], "app.yaml has no results for octocat/other"),
    ],
)
async def test_without_runs_a_line_says_so(operator: Operator, arguments: list[str], words: str) -> None:
    finished = await operator.nightjar(*arguments)
    assert (finished.status, finished.out) == (1, "")
    assert finished.err == f"{words}\n"


async def test_an_operator_requests_a_search_by_hand(operator: Operator) -> None:
    (operator.folder / "app.yaml").write_text(
        APP_YAML.format(bucket=operator.bucket.name).replace("[adreno]", "{adreno: {tier: 2}, mali: nightly}")
    )
    request = ("te/a.py::test_a", "--suite", "ops", "--good", "a" * 40, "--bad", "b" * 40)
    unknown = await operator.nightjar("search", "start", *request, "--target", "mali")
    assert unknown.status == 1
    assert "no target that accepts requests is named mali" in unknown.err
    ids = []
    for target in ("example-lab/adreno", "adreno"):
        requested = await operator.nightjar("search", "start", *request, "--target", target, "--json")
        assert requested.status == 0, requested
        assert "the search begins when one does" in requested.err
        ids.append(json.loads(requested.out)["search"])
    assert ids[0] == ids[1], "the same request is searched once"
    measured = (*request, "--target", "adreno", "--measurement", "latency")
    requested = await operator.nightjar("search", "start", *measured, "--json")
    test, full_name = "te/a.py::test_a", "example-lab/adreno"
    search = SearchRequest("ops", (test,), (full_name,), "a" * 40, "b" * 40, "latency")
    assert json.loads(requested.out)["search"] == search.id != ids[0]
    refused = await operator.nightjar("search", "start", *measured, "te/a.py::test_b")
    assert (refused.status, refused.out) == (2, "")
    assert "a search for a measurement is for one test, and 2 are named" in refused.err
