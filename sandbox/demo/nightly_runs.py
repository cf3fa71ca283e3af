"""A lab's part of the demo: a moving branch, two nightly runs, a broken lab, and a tested pull request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandbox.demo.lab import CHECK, LAB
from sandbox.demo.narrator import NIGHTLY, STATE
from sandbox.demo.reports import test_files
from sandbox.demo.stage import BUCKET, CI, NIGHTLY_FILE, REPOSITORY, DemoStage
from sandbox.model.checks import CheckRun
from sandbox.model.pulls import PullRequest

TIMER = ("timer", "run", "nightly")
RED = "Fuse everything"
FIRST = "First run, nothing to compare with, 20 failing · 438 passed, 1 skipped"
SECOND = "9 new failures, 13 fixed"
"""The totals of the reports, counted by another reader in tests/results/."""
FAILURE = ("tests/python/te/test_te_verify_compute.py", 54)
"""The place of the one failure that the pull request causes, from the lab's traceback."""
TITLE = "[TE] Revert the changes of 0.26"
BODY = """\
Since the last nightly run, three tests of `te` crash their process. This reverts `te` to 0.25.
"""
WAITS = "There is no earlier run, so the bot waits for more suites. It checks every 15 seconds."
WAITS_AGAIN = "There are fewer suites than last time, so the bot waits for more."


class NightlyRuns:
    """The scripted lab, and what the bot must report about its uploads."""

    def __init__(self, demo: DemoStage) -> None:
        self.on = demo
        self.commits: list[str] = []

    async def act(self) -> None:
        """Play it from the first nightly run to the failure that a maintainer ignores."""
        await self._ignored(await self.test_pull_request())
        await self.on.github.delivered()
        self.on.narrator.update()

    async def test_pull_request(self) -> CheckRun:
        """Play everything before somebody ignores the failure; return the check run that reports it."""
        await self._first_run()
        await self._second_run()
        sha = (await self._broken_lab_and_pull_request()).head_sha
        await self.on.check("a pull request is compared with the last nightly run", self._says(sha, "1 new failure"))
        run = self._newest(sha)
        place = [(annotation["path"], annotation["start_line"]) for annotation in run.annotations]
        await self.on.check("the new failure has an annotation at its line", lambda: place == [FAILURE])
        return run

    async def _first_run(self) -> None:
        green = self.push("Add the tests of 0.25", {})
        sha = await self.move()
        await self.on.check("the bot creates the nightly branch at a green commit", lambda: self._head == green)
        await self.on.check("the lab reads the commit in its bucket", lambda: sha == green)
        await self._upload(f"{LAB} uploads its first run", sha, "night-1")
        self.on.narrator.say(WAITS)
        await self.on.check("the first run becomes a check run", self._says(sha, FIRST))

    async def _second_run(self) -> None:
        green = self.push("Add the tests of 0.26, ten weeks later", test_files("night-2"))
        sha = await self.move()
        await self.on.check("the nightly branch moves", lambda: self._head == sha == green)
        await self._upload(f"{LAB} uploads its second run", sha, "night-2")
        await self.on.check("the lab tests the new commit", lambda: bool(self._checks(self._head)))
        await self.on.check("the second run shows what is new", self._says(sha, SECOND))
        first, second = self._checks(self.commits[0]), self._checks(sha)
        await self.on.check("and names the baseline", lambda: self.commits[0] in (second[-1].summary or ""))
        await self.on.check("all suites share one check run", lambda: len(first) == len(second) == 1)
        files, annotations = self.on.repo.git.commits[sha].files, second[-1].annotations
        placed = [annotation for annotation in annotations if annotation["path"] in files]
        await self.on.check("each new failure has an annotation in an existing file", lambda: len(placed) == 9)
        details = await self.page(second[-1].details_url or "")
        await self.on.check("its Details lead to the run on the dashboard", lambda: SECOND in details)
        await self.on.check("the check run cannot block a merge", lambda: second[-1].conclusion == "neutral")

    async def _broken_lab_and_pull_request(self) -> PullRequest:
        green = self.push("Describe targets", {"docs/targets.md": "# Targets\n"})
        red = self.push(RED, {"src/transform/fuse_ops.cc": "// Fuses everything.\n"}, "failure")
        sha = await self.move()
        await self.on.check("the nightly branch moves to the newest green commit", lambda: self._head == sha == green)
        newest = await self._newest_skipped()
        self.on.narrator.say(f"The API says why a newer commit was skipped\n{json.dumps(newest)}")
        expected = {"sha": red, "title": RED, "blockers": [{"name": CI, "state": "red"}]}
        await self.on.check("and the API says why it skipped a newer one", lambda: newest == expected)
        await self._upload(f"{LAB} is broken, and uploads its third run", sha, "broken-lab", status=2)
        pull = self._pull_request()
        self.on.narrator.update()
        await self._upload(f"{LAB} tests #{pull.number}", pull.head_sha, "night-1", only="te", number=pull.number)
        self.on.narrator.say(WAITS_AGAIN)
        await self.on.check("a broken lab is reported as a lab setup problem", self._says(sha, "Lab setup problem"))
        broken = self._checks(sha)[-1]
        await self.on.check("without annotations", lambda: broken.annotations == [])
        return pull

    async def _ignored(self, run: CheckRun) -> None:
        demo, sha = self.on, run.head_sha
        demo.narrator.say("@octo-friend, without write access, presses “Ignore for this PR”")
        run.press("octo-friend", "ignore")
        await demo.check(
            "a person without write access gets a refusal", lambda: "octo-friend" in (self._newest(sha).summary or "")
        )
        await demo.check("and the failure still counts", lambda: self._newest(sha).conclusion == "neutral")
        demo.narrator.say("@octocat presses “Ignore for this PR”")
        self._newest(sha).press("octocat", "ignore")
        await demo.check("a maintainer can ignore it, and is named", self._says(sha, "ignored by octocat"))
        await demo.check("then the check run is green", lambda: self._newest(sha).conclusion == "success")

    def push(self, message: str, files: Mapping[str, str], ci: str = "success") -> str:
        """Push to main, and let CI end; return the commit."""
        self.on.github.clock.advance(seconds=1)  # commits are ordered by their time
        sha = self.on.repo.push("main", files or None, by="octocat", message=message).sha
        self.on.repo.set_status("hubot", sha, CI, ci)
        self.on.narrator.say(f"@octocat pushes {sha[:7]} to main: {message}; CI says {STATE[ci]} {CI}")
        return sha

    async def move(self) -> str:
        """Move the branch, and let the lab read the commit to test; return what it reads."""
        narrator, bot = self.on.narrator, self.on.bot
        narrator.say(f"$ nightjar {' '.join(TIMER)}")
        code, stdout, err = await bot.run(*TIMER, "--config", str(bot.config))
        assert code == 0, f"nightjar {' '.join(TIMER)} ended with {code}:\n{stdout}{err}"
        narrator.say(next(line.strip() for line in stdout.splitlines() if ": planned: " in line))
        narrator.update()
        read = json.loads(await self.on.lab.read(BUCKET, NIGHTLY_FILE))
        narrator.say(f"{LAB} reads s3://{BUCKET}/{NIGHTLY_FILE}\n{json.dumps(read)}")
        self.commits.append(str(read["sha"]))
        return self.commits[-1]

    async def _newest_skipped(self) -> dict[str, Any]:
        """Return what the API says about the newest commit that was skipped."""
        async with self.on.http.get(f"{self.on.bot.url}/api/v1/repos/{REPOSITORY}/nightly") as answer:
            newest: dict[str, Any] = (await answer.json())["why_not_newer"][0]
            return {name: newest[name] for name in ("sha", "title", "blockers")}

    async def page(self, url: str) -> str:
        """Return a page of the dashboard."""
        async with self.on.http.get(url, headers={"Accept": "text/html"}) as answer:
            return await answer.text()

    @property
    def _head(self) -> str:
        return self.on.repo.refs.get(NIGHTLY, "")

    def _pull_request(self) -> PullRequest:
        self.on.github.clock.advance(seconds=1)
        files = {path: text for path, text in test_files("night-1").items() if "/te/" in path}
        return self.on.repo.open_pull_request("hubot", TITLE, BODY, branch="te-of-0.25", files=files)

    def _checks(self, sha: str) -> Sequence[CheckRun]:
        """Return every check run of the lab on a commit, oldest first."""
        suites = [suite for suite in self.on.repo.suites if suite.head_sha == sha]
        return [run for suite in suites for run in suite.runs if run.name == CHECK]

    def _newest(self, sha: str) -> CheckRun:
        return self._checks(sha)[-1]

    def _says(self, sha: str, words: str) -> Callable[[], bool]:
        return lambda: any(words in (run.title or "") for run in self._checks(sha)[-1:])

    async def _upload(
        self, announcement: str, sha: str, nightly_run: str, *, only: str = "", status: int = 1, number: int = 0
    ) -> None:
        narrator = self.on.narrator
        narrator.say(announcement)

        def report(text: str) -> None:
            narrator.update()
            narrator.say(text)

        await self.on.lab.upload(sha, nightly_run, report, only=only, status=status, pull_request=number or None)
