"""A contributor's conversation with the bot: review requests, commands, an answer to a typo, a rerun, a merge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from nightjar_formats.items import first_of

from sandbox.demo.stage import REPOSITORY, DemoStage
from sandbox.demo.two_weeks import LAB, TARGET
from sandbox.model.pulls import PullRequest
from sandbox.model.repository import Repository

BOT = "nightjar[bot]"
TITLE = "[TIR] Vectorize the inner loop of matmul"
BODY = """\
Loads of the innermost loop become vector loads, on targets that have them.

cc @octocat and @octo-friend
"""
BRANCH = "vectorize-matmul"
FILES = {"src/transform/vectorize_loop.cc": "// The innermost loop of a matmul is vectorized.\n"}


class Conversation:
    """The scripted contributor, and what the bot must do."""

    def __init__(self, demo: DemoStage) -> None:
        self.on = demo
        self.pull = demo.repo.open_pull_request("hubot", TITLE, BODY, branch=BRANCH, files=FILES)

    async def act(self) -> None:
        """Play it from the first push to the merge."""
        await self.talk()
        await self._title_tag()
        await self._merge()
        await self._revert()
        await self.on.github.delivered()
        self.on.narrator.update()

    async def talk(self) -> None:
        """Play everything before the merge."""
        await self._opening()
        await self._slow_tests()
        await self._typo()
        await self._rerun()

    async def _opening(self) -> None:
        pull, repo = self.pull, self.on.repo
        await self.on.check("the bot requests a review from octocat", lambda: _asked(pull) == ["octocat"])
        await self.on.check(
            "it names people whose review the bot could not request", lambda: _answers(pull, "octo-friend")
        )
        await self.on.check("slow tests are off at first", lambda: _status(repo, pull).startswith("Off"))

    async def _slow_tests(self) -> None:
        pull, repo = self.pull, self.on.repo
        comment = pull.comment("hubot", "@ci run slow tests")
        await self.on.check("the command runs", lambda: _reactions(pull, comment) == ["eyes", "+1"])
        await self.on.check("slow tests are on", lambda: _status(repo, pull).startswith("On: requested by hubot"))
        decision = await self._decision()
        self.on.narrator.say(f"CI asks what to run; the bot answers\n{decision}")
        answer = decision["run_slow_tests"]
        runs_slow_tests = isinstance(answer, dict) and answer["value"] is True
        await self.on.check("CI runs the slow tests", lambda: runs_slow_tests)

    async def _decision(self) -> dict[str, object]:
        """Ask the bot what CI should run, as a CI step does."""
        url = f"{self.on.bot.url}/api/v1/repos/{REPOSITORY}/pulls/{self.pull.number}/decision"
        async with self.on.http.get(url) as answer:
            body: dict[str, object] = await answer.json()
            return body

    async def _typo(self) -> None:
        pull = self.pull
        comment = pull.comment("hubot", "@ci rerunn failed")
        await self.on.check("the bot answers a typo", lambda: _reactions(pull, comment) == ["eyes", "confused"])
        await self.on.check("and suggests the correct command", lambda: _answers(pull, "`@ci rerun failed`"))

    async def _rerun(self) -> None:
        pull, repo = self.pull, self.on.repo
        run = repo.add_workflow_run(pull.head_sha, "CI", jobs={"lint": None, "unit tests (hexagon)": None})
        job = self.on.jenkins.add_job(f"compiler-gpu/PR-{pull.number}", pull=pull, context="gpu/pr-head")
        job.trigger()
        run.finish("failure", {"lint": "success", "unit tests (hexagon)": "failure"})
        job.builds[-1].finish("FAILURE")
        comment = pull.comment("hubot", "@ci rerun")
        await self.on.check("the failed Actions job runs again", lambda: run.attempt == 2)
        await self.on.check("the failed Jenkins job runs again", lambda: len(job.builds) == 2)
        await self.on.check("the rerun gets an answer", lambda: _reactions(pull, comment) == ["eyes", "+1"])
        rerun_jobs = [job.name for job in run.jobs if job.attempt == 2]
        await self.on.check("green jobs do not run again", lambda: rerun_jobs == ["unit tests (hexagon)"])
        run.start()
        run.finish("success")
        job.builds[-1].finish("SUCCESS")

    async def _merge(self) -> None:
        pull = self.pull
        comment = pull.comment("hubot", "@ci merge")
        await self.on.check("the bot refuses to merge without an approval", lambda: _answers(pull, "approv"))
        await self.on.check("and says so", lambda: _reactions(pull, comment) == ["eyes", "confused"])
        pending = pull.comment("octocat", "@ci merge when green")
        await self.on.check("a merge can wait for the approval", lambda: _reactions(pull, pending) == ["eyes", "+1"])
        self.on.narrator.say("@octocat approves")
        pull.review("octocat", "Thank you!", "APPROVED")
        await self.on.check("and happens after the approval", lambda: str(pull.merged_by) == f"@{BOT}")
        message = self.on.repo.git.commits[pull.merge_commit_sha or ""].message
        self.on.narrator.say(f"@{BOT} merges, with the message\n{message}")

    async def _title_tag(self) -> None:
        """Request a device test by a tag in the title, and cancel it again; in between, the target is paused."""
        pull, repo = self.pull, self.on.repo
        pull.edit("hubot", title=f"[{TARGET}] {TITLE}")
        name = f"hardware/{LAB}/{TARGET}"

        def check_states() -> list[str]:
            suites = [suite for suite in repo.suites if suite.head_sha == pull.head_sha]
            return [run.status for suite in suites for run in suite.runs if run.name == name]

        await self.on.check("a tag in the title requests a device test", lambda: check_states() == ["queued"])
        pull.edit("hubot", title=TITLE)
        await self.on.check("and without the tag it is cancelled", lambda: check_states() == ["completed"])
        until = (datetime.now(UTC) + timedelta(days=7)).date()
        pull.comment("octocat", f"@ci lab pause {TARGET} until {until} because the board moves")
        await self.on.check("a target can be paused", lambda: _answers(pull, "is paused until"))
        pull.comment("octocat", f"@ci lab resume {TARGET}")
        await self.on.check("and resumed", lambda: _answers(pull, "accepts requests again"))

    async def _revert(self) -> None:
        """Revert what was merged: the draft has slow tests, and then those of a later level."""
        self.pull.comment("hubot", "@ci revert")
        title, repo = f'Revert "{TITLE}"', self.on.repo
        await self.on.check("a revert is one command", lambda: self._drafts(title))
        draft = first_of(self._drafts(title))
        await self.on.check("and has slow tests", lambda: _status(repo, draft).startswith("On: requested by hubot"))
        draft.comment("hubot", "@ci run level nightly")
        await self.on.check(
            "one can ask for a later level", lambda: _status(repo, draft).startswith("On, level nightly")
        )

    def _drafts(self, title: str) -> list[PullRequest]:
        return [pull for pull in self.on.repo.pulls if pull.title == title and pull.draft]


def _asked(pull: PullRequest) -> list[str]:
    return [user.login for user in pull.requested_reviewers]


def _answers(pull: PullRequest, text: str) -> bool:
    return any(text in comment.body for comment in pull.comments_by(BOT))


def _status(repo: Repository, pull: PullRequest) -> str:
    status = repo.status(pull.head_sha, "ci/slow-tests")
    return status.description or "" if status else ""


def _reactions(pull: PullRequest, comment: object) -> list[str]:
    return pull.reactions(comment, by=BOT)  # type: ignore[arg-type]
