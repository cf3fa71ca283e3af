"""Conversations that together use every kind of effect, and the visible result of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from bot.config.shared import PATH
from bot.effects.texts import CANNOT_MOVE
from handlers.repository_file.report import NAME as CONFIG
from sandbox import PullRequest, Repository
from sandbox.jenkins import JenkinsJob
from sandbox.model.issues import Comment, Issue
from sandbox.model.workflows import WorkflowRun
from tests.robustness.place import BOT, Place, plain
from tests.waiting import DEADLINE

SLOW_TESTS = "ci/slow-tests"
BRANCH = "nightly"
STICKY = "I couldn't request a review from"


class Conversation:
    """People talking with the bot on a pull request, in a repository of their own."""

    BODY: ClassVar[str] = ""
    KEYS: ClassVar[Mapping[str, Any]] = {}
    """Keys of app.yaml that its repository has besides those of `Place.configure`."""
    REFUSED: ClassVar[str] = ""
    """A part of the texts of expected failures; there must be no others at the end."""

    def __init__(self, place: Place, repository: Repository) -> None:
        self.place = place
        self.repository = repository
        self.pull: PullRequest
        self.job: JenkinsJob | None = None

    async def hold(self) -> None:
        """Hold the whole conversation; each step begins when the previous one is done."""
        self.pull = self.repository.open_pull_request("hubot", "Faster", self.BODY)
        await self.until(lambda: self.repository.status(self.pull.head_sha, SLOW_TESTS))
        await self.talk()

    async def talk(self) -> None:
        """Hold the conversation on the open pull request."""
        raise AssertionError("subclasses override this")

    async def done(self, comment: Comment, reaction: str = "+1") -> None:
        """Wait for the reaction that ends a comment's commands."""
        await self.until(lambda: reaction in self.pull.reactions(comment, by=BOT))

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        await self.place.github.until(condition, timeout=DEADLINE, what=self.repository.full_name)

    def add_failures(self) -> WorkflowRun:
        """Let a workflow and a Jenkins job fail on the head."""
        run = self.repository.add_workflow_run(
            self.pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"}, by="hubot"
        )
        name = f"{self.repository.owner.login}/PR-{self.pull.number}"
        self.job = self.place.jenkins.add_job(name, pull=self.pull, context="gpu/pr-head")
        self.job.trigger()
        self.job.builds[-1].finish("FAILURE")
        return run

    def let_ci_end(self) -> None:
        """Make all running workflows and jobs fail."""
        for run in self.repository.workflow_runs:
            if run.status != "completed":
                run.finish("failure")
        for build in self.job.builds if self.job else ():
            if build.result is None:
                build.finish("FAILURE")

    def seen(self) -> dict[str, Any]:
        """Return what people see and how often the bot did each thing, without what differs between repositories."""
        pull, repository = self.pull, self.repository
        return {
            "comments": [
                (comment.user.login, plain(comment.body, repository), sorted(pull.reactions(comment)))
                for comment in pull.comments
            ],
            "statuses": [
                (status.context, status.state, plain(status.description or "", repository))
                for commit in pull.commits
                # The statuses of one context are in order; the order between contexts means nothing.
                for status in sorted(repository.all_statuses(commit.sha), key=lambda status: status.context)
            ],
            "reviewers": [user.login for user in pull.requested_reviewers],
            "runs": [
                (run.name, run.attempt, [(job.name, job.attempt) for job in run.jobs])
                for run in repository.workflow_runs
            ],
            "builds": len(self.job.builds) if self.job else 0,
            "checks": [
                (run.name, run.conclusion, run.title, len(run.annotations))
                for suite in repository.suites
                for run in suite.runs
                if run.app is self.place.app
            ],
            "action_counts": dict(self.action_counts),
        }

    @property
    def action_counts(self) -> Counter[str]:
        """Count the bot's actions for which GitHub sends webhooks."""
        deliveries = [d for d in self.place.github.webhooks.deliveries if d.repository_id == self.repository.id]
        deliveries_by_guid = {d.guid: d for d in deliveries if d.target is self.place.app}
        return Counter(
            f"{delivery.event}.{delivery.action}"
            for delivery in deliveries_by_guid.values()
            if delivery.body["sender"]["login"] == BOT
        )


class Reviewers(Conversation):
    """A description names people; GitHub refuses some of them; it is edited; and two sticky comments become one."""

    BODY = "cc @triager, @reader and @stranger"

    async def talk(self) -> None:
        """Wait for the sticky comment, add a second one, and name another person, who GitHub refuses."""
        await self.until(lambda: len(self._sticky()) == 1)
        # A race between two replicas could leave this.
        self.pull.comment(self.place.app.bot, self._sticky()[0].body, app=self.place.app)
        self.pull.edit("hubot", body=f"{self.BODY}\n\ncc @nobody-here")
        await self.until(lambda: len(self._sticky()) == 1 and "nobody-here" in self._sticky()[0].body)

    def _sticky(self) -> list[Comment]:
        return [comment for comment in self.pull.comments_by(BOT) if STICKY in comment.body]


class SlowTests(Conversation):
    """Slow tests are switched on after CI has finished, so CI runs again in both systems."""

    async def talk(self) -> None:
        """Let CI fail, then ask for slow tests."""
        self.add_failures()
        await self.done(self.pull.comment("hubot", "@ci run slow tests"))


class Rerun(Conversation):
    """One job is restarted, a line with a typo is edited into a command, and somebody pushes invalid settings."""

    async def talk(self) -> None:
        """Let CI fail, push, ask for a rerun, and correct the typo."""
        self.repository.push("main", {PATH: "help: maybe\n"}, by="hubot", message="Set what holds here")
        await self.until(lambda: self.repository.check_runs(self.repository.branch("main"), CONFIG))
        self.add_failures()
        comment = self.pull.comment("hubot", "@ci rerun unit\n@ci reruun")
        await self.done(comment, "confused")
        self.pull.edit_comment(comment, "@ci rerun unit\n@ci help", "hubot")
        await self.until(lambda: "confused" not in self.pull.reactions(comment, by=BOT))


CONVERSATIONS: tuple[type[Conversation], ...] = (Reviewers, SlowTests, Rerun)


class NightlyMoves(Conversation):
    """The nightly branch is created, moves, fails to move, and moves again; somebody runs the timer each time."""

    REFUSED = CANNOT_MOVE.format(branch="nightly")

    async def hold(self) -> None:
        """Run the timer four times: before the third somebody pushes to the branch, before the fourth it is deleted."""
        await self._moves("first")
        await self._moves("second")
        self.repository.push(BRANCH, by="hubot", message="A stray commit")
        await self._nightly_run("third")
        await self.until(lambda: [issue.state for issue in self._issues()] == ["open"])
        self.repository.move(f"refs/heads/{BRANCH}", None, "octocat")
        await self._moves("fourth")
        await self.until(lambda: [issue.state for issue in self._issues()] == ["closed"])

    async def _moves(self, nightly_run: str) -> None:
        sha = await self._nightly_run(nightly_run)
        await self.until(partial(self.repository.status, sha, "nightly"))

    async def _nightly_run(self, nightly_run: str) -> str:
        sha = self.repository.push("main", by="hubot", message=f"Before the {nightly_run} nightly run").sha
        await self.place.run_timer(self.repository, "nightly", nightly_run)
        return sha

    def seen(self) -> dict[str, Any]:
        """Return the state of the branch, and how often the bot did each thing."""
        repository = self.repository
        commits = repository.git.ancestry(repository.branch("main"))
        return {
            "at the head": self._head == repository.branch("main"),
            "statuses": [sorted(s.context for s in repository.all_statuses(commit.sha)) for commit in commits],
            "issues": [(issue.title, issue.state) for issue in self._issues()],
            "action_counts": dict(self.action_counts),
            "what labs read": self._file().get("sha") == self._head,
        }

    @property
    def _head(self) -> str | None:
        return self.repository.refs.get(f"refs/heads/{BRANCH}")

    def _issues(self) -> list[Issue]:
        return [issue for issue in self.repository.issues.values() if issue.user.login == BOT]

    def _file(self) -> dict[str, Any]:
        """Return the bot's file in the bucket; empty without a file or a bucket."""
        key, bucket = f"results/{self.repository.full_name}/nightly.json", self.place.bucket
        if bucket is None or key not in bucket.keys(key):
            return {}
        document: dict[str, Any] = json.loads(bucket.s3.get_object(Bucket=bucket.name, Key=key)["Body"].read())
        return document
