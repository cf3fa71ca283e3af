"""A lab tests two nightly runs and a pull request, with suites and shards; one run is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sandbox.model.checks import CheckRun
from tests.conversations.lab import FILES, junit
from tests.robustness.conversation import Conversation
from tests.robustness.place import LAB, TARGET, plain

CHECK = f"hardware/{LAB}/{TARGET}"
BREAKS = "AssertionError: 3 != 4"


class NightlyRuns(Conversation):
    """A lab uploads the results of two nightly runs and of a pull request whose failures somebody ignores.

    At the end, somebody reruns all checks.
    """

    async def hold(self) -> None:
        """Upload everything; each commit's results come after those of the previous commit were reported."""
        self.commits: dict[str, str] = {}
        self._nightly_run("the beginning", FILES)
        await self._first_run()
        await self._second_run()
        await self._pull_request()

    async def _first_run(self) -> None:
        sha = self._nightly_run("first", {"nightly_run": "1"})
        self.upload(sha, "a", {"a.xml": junit(test_add="passed")}, shard={"index": 1, "total": 2})
        self.upload(sha, "b", {"b.xml": junit(test_mul="passed")}, shard={"index": 2, "total": 2})
        self.upload(sha, "c", {"c.xml": junit(test_build="passed")}, suite="relax")
        self.upload(sha, "d", {"d.xml": junit(test_add="passed")}, target="unheard-of")
        await self.until(lambda: self._says(sha, "First run, nothing to compare with · 3 passed"))

    async def _second_run(self) -> None:
        sha = self._nightly_run("second", {"nightly_run": "2"})
        self.upload(sha, "a", {"a.xml": junit(test_add="passed")}, shard={"index": 1, "total": 2})
        self.upload(sha, "b", {"b.xml": junit(test_mul=BREAKS)}, shard={"index": 2, "total": 2})
        self.upload(sha, "c", {"c.xml": junit(test_build="passed")}, suite="relax")
        await self.until(lambda: self._says(sha, "1 new failure · 2 passed"))

    async def _pull_request(self) -> None:
        self.repository.push("main", onto=self.commits["second"], by="hubot")
        pull = self.pull = self.repository.open_pull_request("hubot", "Faster")
        self.commits["a head"] = sha = pull.head_sha
        files = {"a.xml": junit(test_add=BREAKS), "b.xml": junit(test_mul=BREAKS)}
        self.upload(sha, "a", files, pull_request=pull.number)
        self.upload(sha, "b", {"c.xml": junit(test_build="passed")}, suite="relax", pull_request=pull.number)
        await self.until(lambda: self._says(sha, "1 new failure, 1 still failing · 1 passed"))
        self._runs(sha)[-1].press("hubot", "ignore")
        await self.until(lambda: self._runs(sha)[-1].conclusion == "success")
        (check_run,) = self._runs(sha)
        check_run.suite.rerequest("hubot")
        await self.until(lambda: self._runs(sha)[-1].id > check_run.id)

    def _nightly_run(self, name: str, files: Mapping[str, str | None]) -> str:
        # Runs are ordered by the seconds of their commits, and no nightly branch moves twice in one second.
        self.place.github.clock.advance(seconds=1)
        self.commits[name] = self.repository.push("nightly", files, by="hubot").sha
        return self.commits[name]

    def upload(
        self,
        sha: str,
        run_id: str,
        files: Mapping[str, bytes],
        *,
        suite: str = "operators",
        target: str = TARGET,
        **claims: Any,
    ) -> None:
        """Upload a run as a lab does."""
        bucket = self.place.bucket
        assert bucket is not None
        folder = f"results/{self.repository.full_name}/{LAB}/{target}/{sha}/{run_id}/"
        for name, content in files.items():
            bucket.put(folder + name, content)
        entries = [
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ]
        document = {"schema": 1, "sha": sha, "suite": suite, "files": entries, **claims}
        bucket.put(f"{folder}manifest.json", json.dumps(document).encode())

    def _runs(self, sha: str) -> list[CheckRun]:
        return [run for run in self.repository.check_runs(sha) if run.app is self.place.app]

    def _says(self, sha: str, title: str) -> bool:
        return [run.title for run in self._runs(sha)] == [title]

    def seen(self) -> dict[str, Any]:
        """Return all check runs on each commit."""
        return {
            name: [
                (
                    *(run.name, run.status, run.conclusion, run.external_id, run.title),
                    *(self._plain(text or "") for text in (run.summary, run.text)),
                    len(run.annotations),
                )
                for run in self._runs(sha)
            ]
            for name, sha in self.commits.items()
        }

    def _plain(self, text: str) -> str:
        for name, sha in self.commits.items():
            text = text.replace(sha, name).replace(sha[:10], name)
        return plain(text, self.repository)
