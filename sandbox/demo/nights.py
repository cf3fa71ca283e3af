"""What a hardware lab and maintainers see: a branch that moves, two nights, a broken lab, and a tested pull request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandbox.checks import CheckRun
from sandbox.demo.lab import CHECK, LAB
from sandbox.demo.narrator import NIGHTLY, STATE
from sandbox.demo.reports import test_files
from sandbox.demo.stage import BUCKET, CI, NIGHTLY_FILE, REPOSITORY, Stage
from sandbox.pulls import PullRequest

TIMER = ("timer", "run", "nightly")
RED = "Fuse what must not be fused"
FIRST = "First run, nothing to compare with, 20 failing · 438 passed, 1 skipped"
SECOND = "9 new failures, 13 fixed"
"""What the reports come to, counted by another reader (tests/results/test_nights.py)."""
FAILURE = ("tests/python/te/test_te_verify_compute.py", 54)
"""Where the one test fails that the pull request breaks, as the lab's traceback says."""
TITLE = "[TE] Take back the changes of 0.26"
BODY = """\
Since the last night, three tests of `te` take their process down with them. This takes `te` back to what it was.
"""
WAITS = "The bot has nothing to compare with, so it waits until it is quiet; it looks every 15 seconds."
WAITS_AGAIN = "There are fewer suites than last time: more may come, so the bot waits until it is quiet."


class Nights:
    """The scripted lab, and what the bot promises to make of its uploads."""

    def __init__(self, on: Stage) -> None:
        self.on = on
        self.commits: list[str] = []

    async def act(self) -> None:
        """Play it from the first night to the failure that a maintainer chooses to ignore."""
        await self._first_night()
        await self._second_night()
        await self._broken_lab_and_pull_request()
        await self.on.github.delivered()
        self.on.narrator.look()

    async def _first_night(self) -> None:
        green = self._push("Night 1: the tests of 0.25", {})
        sha = await self._night()
        await self.on.promise("the nightly branch is made at a commit that is green", lambda: self._head == green)
        await self.on.promise("labs read in their bucket which one it is", lambda: sha == green)
        await self._upload(f"{LAB} uploads night 1", sha, "night-1")
        self.on.narrator.aside(WAITS)
        await self.on.promise("a lab's first night becomes a check run", self._says(sha, FIRST))

    async def _second_night(self) -> None:
        green = self._push("Night 2: the tests of 0.26, ten weeks later", test_files("night-2"))
        sha = await self._night()
        await self.on.promise("the nightly branch moves on the night after", lambda: self._head == sha == green)
        await self._upload(f"{LAB} uploads night 2", sha, "night-2")
        await self.on.promise("the lab tests that very commit", lambda: bool(self._checks(self._head)))
        await self.on.promise("the second night says what is new", self._says(sha, SECOND))
        first, second = self._checks(self.commits[0]), self._checks(sha)
        await self.on.promise("and with what it was compared", lambda: self.commits[0] in (second[-1].summary or ""))
        await self.on.promise("all suites of a night become one check run", lambda: len(first) == len(second) == 1)
        files, remarks = self.on.repo.git.commits[sha].files, second[-1].annotations
        placed = [remark for remark in remarks if remark["path"] in files]
        await self.on.promise("each new failure is annotated, in a file that is there", lambda: len(placed) == 9)
        await self.on.promise("it cannot block a merge", lambda: second[-1].conclusion == "neutral")

    async def _broken_lab_and_pull_request(self) -> None:
        green = self._push("Night 3: describe targets", {"docs/targets.md": "# Targets\n"})
        red = self._push(RED, {"src/transform/fuse_ops.cc": "// Fuses everything.\n"}, "failure")
        sha = await self._night()
        await self.on.promise(
            "the nightly branch moves to the newest commit that is fit", lambda: self._head == sha == green
        )
        newest = await self._newest_looked_at()
        self.on.narrator.aside(f"Why not newer? The bot's API tells\n{json.dumps(newest)}")
        why = {"sha": red, "title": RED, "blockers": [{"name": CI, "state": "red"}]}
        await self.on.promise("and says why it took no newer one", lambda: newest == why)
        await self._upload(f"{LAB} is broken, and uploads night 3", sha, "broken-lab", status=2)
        pull = self._pull_request()
        self.on.narrator.look()
        await self._upload(f"{LAB} tests #{pull.number}", pull.head_sha, "night-1", only="te", number=pull.number)
        self.on.narrator.aside(WAITS_AGAIN)
        await self.on.promise("a broken lab is told as the lab's", self._says(sha, "Lab setup problem"))
        broken = self._checks(sha)[-1]
        await self.on.promise("and annotates nothing", lambda: broken.annotations == [])
        await self._ignored(pull)

    async def _ignored(self, pull: PullRequest) -> None:
        on, sha = self.on, pull.head_sha
        await on.promise("a pull request is compared with the last night", self._says(sha, "1 new failure"))
        before = self._checks(sha)[-1]
        place = [(remark["path"], remark["start_line"]) for remark in before.annotations]
        await on.promise("its new failure is shown at the line where it happened", lambda: place == [FAILURE])
        on.narrator.aside("@octo-friend, a stranger, presses “Ignore for this PR”")
        before.press("octo-friend", "ignore")
        await on.promise("who may not ignore it is told so", lambda: "octo-friend" in (self._newest(sha).summary or ""))
        await on.promise("and nothing is ignored", lambda: self._newest(sha).conclusion == "neutral")
        on.narrator.aside("@octocat presses “Ignore for this PR”")
        self._newest(sha).press("octocat", "ignore")
        await on.promise("a maintainer may, and is named", self._says(sha, "ignored by octocat"))
        await on.promise("then the check is green", lambda: self._newest(sha).conclusion == "success")

    def _push(self, message: str, files: Mapping[str, str], ci: str = "success") -> str:
        """Push to main, and let CI end so; returns the commit."""
        self.on.github.clock.advance(seconds=1)  # commits are ordered by their time
        sha = self.on.repo.push("main", files or None, by="octocat", message=message).sha
        self.on.repo.set_status("hubot", sha, CI, ci)
        self.on.narrator.aside(f"@octocat pushes {sha[:7]} to main: {message}; CI says {STATE[ci]} {CI}")
        return sha

    async def _night(self) -> str:
        """Have the branch moved that labs test, and let the lab read which commit that is; returns what it reads."""
        narrator, bot = self.on.narrator, self.on.bot
        narrator.aside(f"$ nightjar {' '.join(TIMER)}")
        code, out, err = await bot.run(*TIMER, "--config", str(bot.config))
        assert code == 0, f"nightjar {' '.join(TIMER)} ended with {code}:\n{out}{err}"
        narrator.aside(next(line.strip() for line in out.splitlines() if ": planned: " in line))
        narrator.look()
        read = json.loads(await self.on.lab.read(BUCKET, NIGHTLY_FILE))
        narrator.aside(f"{LAB} reads s3://{BUCKET}/{NIGHTLY_FILE}\n{json.dumps(read)}")
        self.commits.append(str(read["sha"]))
        return self.commits[-1]

    async def _newest_looked_at(self) -> dict[str, Any]:
        """Return what the bot's API tells of the newest commit that the branch might have moved to."""
        async with self.on.http.get(f"{self.on.bot.url}/api/v1/repos/{REPOSITORY}/nightly") as answer:
            newest: dict[str, Any] = (await answer.json())["why_not_newer"][0]
            return {name: newest[name] for name in ("sha", "title", "blockers")}

    @property
    def _head(self) -> str:
        return self.on.repo.refs.get(NIGHTLY, "")

    def _pull_request(self) -> PullRequest:
        self.on.github.clock.advance(seconds=1)
        files = {path: text for path, text in test_files("night-1").items() if "/te/" in path}
        return self.on.repo.open_pull_request("hubot", TITLE, BODY, branch="te-of-0.25", files=files)

    def _checks(self, sha: str) -> Sequence[CheckRun]:
        """Return every check run of the lab that was ever made on a commit, the oldest first."""
        suites = [suite for suite in self.on.repo.suites if suite.head_sha == sha]
        return [run for suite in suites for run in suite.runs if run.name == CHECK]

    def _newest(self, sha: str) -> CheckRun:
        return self._checks(sha)[-1]

    def _says(self, sha: str, words: str) -> Callable[[], bool]:
        return lambda: any(words in (run.title or "") for run in self._checks(sha)[-1:])

    async def _upload(
        self, what: str, sha: str, night: str, *, only: str = "", status: int = 1, number: int = 0
    ) -> None:
        narrator = self.on.narrator
        narrator.aside(what)

        def tell(text: str) -> None:
            narrator.look()
            narrator.aside(text)

        await self.on.lab.upload(sha, night, tell, only=only, status=status, pull_request=number or None)
