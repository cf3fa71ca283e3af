"""A lab's part of the demo: what two weeks of nightly runs left behind, and a pull request that the lab tests."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bot.core.page_paths import view_path
from sandbox.demo import two_weeks as story
from sandbox.demo.lab import save_run
from sandbox.demo.narrator import NIGHTLY, STATE
from sandbox.demo.past import CI
from sandbox.demo.stage import BUCKET, REPOSITORY, DemoStage
from sandbox.model.checks import CheckRun

TIMER = ("timer", "run", "nightly")
NIGHTLY_FILE = f"results/{REPOSITORY}/nightly.json"
TITLE = "[TIR] Normalize layers in one pass"
BODY = "One pass over the input instead of two."


class NightlyRuns:
    """The scripted lab, and what the bot must report about its uploads."""

    def __init__(self, demo: DemoStage) -> None:
        self.on = demo

    async def act(self) -> None:
        """Check what the two weeks left, and play a tested pull request up to a failure that a maintainer ignores."""
        await self._check_two_weeks()
        await self._ignore_failure(await self.test_pull_request())
        await self.on.github.delivered()
        self.on.narrator.update()

    async def _check_two_weeks(self) -> None:
        demo, newest = self.on, self.on.repo.refs[NIGHTLY]
        run = self._checks(newest, story.LAB, story.TARGET)[-1]
        demo.expect("the newest nightly run says what is new", holds="2 new failures" in (run.title or ""))
        one_sided = "Passes on the simulator, fails on the device: 2 new failures."
        demo.expect("and that both pass on the simulator of the device", holds=one_sided in (run.summary or ""))
        demo.expect("and cannot block a merge", holds=run.conclusion == "neutral")
        files = demo.repo.git.commits[newest].files
        placed_annotations = [annotation for annotation in run.annotations if annotation["path"] in files]
        demo.expect("each new failure has an annotation in an existing file", holds=len(placed_annotations) == 2)
        details = await demo.page(run.details_url or "")
        demo.expect("its Details lead to the run on the dashboard", holds="2 new failures" in details)
        gpu_check = f"hardware/{story.LAB}/{story.GPU}"
        checks = [check for suite in demo.repo.suites for check in suite.runs if check.name == gpu_check]
        broken = [check for check in checks if "Lab setup problem" in (check.title or "")]
        demo.expect("a broken lab is reported as a lab setup problem", holds=len(broken) == 1)
        demo.expect("without annotations", holds=broken[0].annotations == [])
        async with demo.http.get(f"{demo.bot.url}/api/v1/repos/{REPOSITORY}/nightly") as answer:
            nightly = await answer.json()
        demo.expect("the nightly branch is at the newest green commit", holds=nightly["sha"] == newest)
        skipped = [(commit["title"], commit["blockers"]) for commit in nightly["why_not_newer"][:1]]
        expected = [(story.RED_TITLE, [{"name": CI, "state": "red"}])]
        demo.expect("and the API says why it skipped a newer one", holds=skipped == expected)
        for measurement, test, night in (
            ("delegated_nodes", story.LOST, story.LOST_AT),
            ("latency", story.SLOWER, story.SLOWER_SINCE),
        ):
            start = f"{measurement} of {story.KERNEL_FILE}::{test} got worse on {story.LAB}/{story.TARGET} since "
            titles = [issue.title for issue in demo.repo.issues.values() if issue.title.startswith(start)]
            tested = [
                commit.sha for commit in demo.repo.git.commits.values() if commit.message == story.tested_title(night)
            ]
            is_right = titles == [f"{start}{sha[:7]}" for sha in tested]
            demo.expect(f"one issue says since which commit {measurement} of {test} is worse", holds=is_right)
        for view, words in story.VIEWS.items():
            text = await demo.page(f"{demo.bot.url}{view_path(REPOSITORY, view)}")
            demo.expect(f"{view or 'the grid'} shows {words}", holds=words in text)

    async def test_pull_request(self) -> CheckRun:
        """Open a pull request, and let the lab test it; return the check run that reports one new failure."""
        demo = self.on
        files = {"src/tir/layer_norm.cc": "// One pass.\n"}
        pull = demo.repo.open_pull_request("hubot", TITLE, BODY, branch="one-pass", files=files)
        sha = pull.head_sha
        demo.narrator.say(f"{story.LAB} tests #{pull.number}")
        with tempfile.TemporaryDirectory(prefix="nightjar-demo-lab-") as folder:
            report, log = save_run(Path(folder), story.report_of_pull_request(story.TARGET))
            await demo.lab.upload_report(
                sha, story.TARGET, story.OPERATORS, report, log, demo.narrator.say, status=1, pull_request=pull.number
            )
        await demo.check("a pull request is compared with the last nightly run", self._says(sha, "1 new failure"))
        run = self._newest(sha)
        lines = [annotation["start_line"] for annotation in run.annotations]
        demo.expect("the new failure has an annotation at its line", holds=lines == [story.ASSERTED_AT])
        return run

    async def _ignore_failure(self, run: CheckRun) -> None:
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
        narrator.say(next((line.strip() for line in stdout.splitlines() if ": planned: " in line), ""))
        narrator.update()
        nightly_file = json.loads(await self.on.lab.read(BUCKET, NIGHTLY_FILE))
        narrator.say(f"{story.LAB} reads s3://{BUCKET}/{NIGHTLY_FILE}\n{json.dumps(nightly_file)}")
        return str(nightly_file["sha"])

    def _checks(self, sha: str, lab: str, target: str) -> Sequence[CheckRun]:
        """Return every check run of a target on a commit, oldest first."""
        suites = [suite for suite in self.on.repo.suites if suite.head_sha == sha]
        return [run for suite in suites for run in suite.runs if run.name == f"hardware/{lab}/{target}"]

    def _newest(self, sha: str) -> CheckRun:
        return self._checks(sha, story.LAB, story.TARGET)[-1]

    def _says(self, sha: str, words: str) -> Callable[[], bool]:
        return lambda: any(words in (run.title or "") for run in self._checks(sha, story.LAB, story.TARGET)[-1:])
