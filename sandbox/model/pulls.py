"""Pull requests: head and base, draft, reviews and review requests, merging."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sandbox.git import Change, Commit, changes
from sandbox.model.home import Home
from sandbox.model.issues import Issue
from sandbox.model.reactions import Reaction
from sandbox.users import By, Team, User, node_id

ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]


@dataclass(frozen=True)
class Push:
    """A push to the head branch after the pull request was opened."""

    id: int
    actor: User
    sha: str
    forced: bool
    pushed_at: datetime


@dataclass(eq=False)
class Review:
    """A review; `commit_id` is the head that was reviewed."""

    id: int
    pull: PullRequest
    user: User
    body: str
    state: ReviewState
    commit_id: str
    submitted_at: datetime
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id; reviews take reactions through GraphQL only."""
        return node_id("PRR", self.id)


@dataclass(eq=False)
class ReviewComment:
    """A comment on a line of the diff."""

    id: int
    pull: PullRequest
    user: User
    body: str
    path: str
    line: int
    commit_id: str
    created_at: datetime
    updated_at: datetime
    review: Review | None = None
    in_reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("PRRC", self.id)


@dataclass(eq=False)
class QueueEntry:
    """A pull request in a merge queue: the head that was added, and who added it."""

    pull: PullRequest
    head_sha: str
    enqueuer: User


class PullRequest(Issue):
    """A pull request; `head_repository` is a fork unless the branch is in the repository itself."""

    event = "pull_request"

    def __init__(
        self,
        repository: Home,
        number: int,
        user: User,
        title: str,
        body: str | None,
        *,
        head: tuple[Home, str],
        base_ref: str,
        draft: bool,
    ) -> None:
        super().__init__(repository, number, user, title, body)
        self.head_repository, self.head_ref = head
        self.head_sha = self.head_repository.branch(self.head_ref)
        self.base_ref = base_ref
        self.base_sha = repository.branch(base_ref)
        self.draft = draft
        self.merged_at: datetime | None = None
        self.merged_by: User | None = None
        self.merge_commit_sha: str | None = None
        self.rebased_shas: list[str] = []
        """The commits on the base branch, if it was merged by a rebase."""
        self.maintainers_may_push = True
        """Whether the author of a pull request from a fork allows edits by maintainers."""
        self.undecided = 0
        """How many more times GitHub answers that it is still checking for conflicts."""
        self.pushes: list[Push] = []
        self.requested_reviewers: list[User] = []
        self.requested_teams: list[Team] = []
        self.reviews: list[Review] = []
        self.review_comments: list[ReviewComment] = []

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("PR", self.id)

    @property
    def commits(self) -> list[Commit]:
        """Return the pull request's own commits, oldest first."""
        return self.repository.git.between(self.base_sha, self.head_sha)

    @property
    def files(self) -> list[Change]:
        """Return the changes of the pull request since its merge base."""
        git = self.repository.git
        start = git.merge_base(self.head_sha, self.base_sha)
        return changes(start.files if start else {}, git.commits[self.head_sha].files)

    @property
    def mergeable(self) -> bool | None:
        """Return whether base and head changed different files since the merge base; None once closed."""
        if self.state != "open":
            return None
        git = self.repository.git
        tip = git.commits[self.repository.branch(self.base_ref)]
        start = git.merge_base(self.head_sha, tip.sha)
        files = git.commits[self.head_sha].files
        changed_in_base = {change.path for change in changes(start.files if start else {}, tip.files)}
        return not any(c.path in changed_in_base and files.get(c.path) != tip.files.get(c.path) for c in self.files)

    def push(
        self,
        files: Mapping[str, str | None] | None = None,
        *,
        by: By | None = None,
        message: str = "Address review comments",
        force: bool = False,
    ) -> Commit:
        """Push one more commit to the head branch; `force` replaces all earlier commits by this one."""
        start = self.repository.git.merge_base(self.head_sha, self.base_sha) if force else None
        return self.head_repository.push(
            self.head_ref, files, by=by or self.user, message=message, onto=start.sha if start else None
        )

    def synchronize(self, actor: User, sha: str) -> None:
        """Follow the head branch to a new commit."""
        old_sha, self.head_sha = self.head_sha, sha
        forced = not self.repository.git.contains(sha, old_sha)
        self.pushes.append(Push(self.github.new_id(), actor, sha, forced, self.github.clock.now()))
        self.base_sha = self.repository.branch(self.base_ref)
        self.announce("synchronize", actor, {"before": old_sha, "after": sha})
        if self.queued:
            self.dequeue(actor, "UNKNOWN_REMOVAL_REASON")

    def review(
        self,
        actor: By,
        body: str = "",
        state: ReviewState = "COMMENTED",
        comments: Iterable[tuple[str, int, str]] = (),
    ) -> Review:
        """Submit a review, with comments as (path, line, text); this completes the person's review request."""
        user, moment = self.github.user(actor), self.github.clock.now()
        made = Review(self.github.new_id(), self, user, body, state, self.head_sha, moment)
        self.reviews.append(made)
        if user in self.requested_reviewers:
            self.requested_reviewers.remove(user)
        self.touch()
        self.github.events.review("submitted", user, made)
        for path, line, text in comments:
            self.review_comment(user, text, path=path, line=line, review=made)
        return made

    def edit_review(self, review: Review, body: str) -> None:
        """Change a review's text, as its author."""
        old_body, review.body = review.body, body
        self.github.events.review("edited", review.user, review, {"changes": {"body": {"from": old_body}}})

    def dismiss_review(self, actor: By, review: Review) -> None:
        """Dismiss a review."""
        review.state = "DISMISSED"
        self.github.events.review("dismissed", self.github.user(actor), review)

    def review_comment(
        self,
        actor: By,
        body: str,
        *,
        path: str,
        line: int,
        review: Review | None = None,
        reply_to: ReviewComment | None = None,
    ) -> ReviewComment:
        """Comment on a line of the diff, alone or as part of a review."""
        moment = self.github.clock.now()
        made = ReviewComment(
            self.github.new_id(),
            self,
            self.github.user(actor),
            body,
            path,
            line,
            self.head_sha,
            moment,
            moment,
            review,
            reply_to.id if reply_to else None,
        )
        self.review_comments.append(made)
        self.touch()
        self.github.events.review_comment("created", made.user, made)
        return made

    def edit_review_comment(self, comment: ReviewComment, body: str) -> None:
        """Change a review comment's text, as its author."""
        old_body, comment.body = comment.body, body
        comment.updated_at = self.github.clock.now()
        members = {"changes": {"body": {"from": old_body}}}
        self.github.events.review_comment("edited", comment.user, comment, members)

    def request_review(self, actor: By, *names: str) -> None:
        """Request reviews from people (by login) and teams (as `owner/slug`) that were not requested yet."""
        for name in names:
            if "/" in name:
                team = self.repository.teams[name.partition("/")[2]]
                if team not in self.requested_teams:
                    self.requested_teams.append(team)
                    self.announce("review_requested", actor, {"requested_team": team})
                continue
            user = self.github.user(name)
            if user not in self.requested_reviewers:
                self.requested_reviewers.append(user)
                self.announce("review_requested", actor, {"requested_reviewer": user})

    def remove_review_request(self, actor: By, *names: str) -> None:
        """Withdraw review requests."""
        for name in names:
            if "/" in name:
                team = self.repository.teams[name.partition("/")[2]]
                self.requested_teams.remove(team)
                self.announce("review_request_removed", actor, {"requested_team": team})
                continue
            user = self.github.user(name)
            self.requested_reviewers.remove(user)
            self.announce("review_request_removed", actor, {"requested_reviewer": user})

    def ready_for_review(self, actor: By) -> None:
        """End the draft."""
        self.draft = False
        self.announce("ready_for_review", actor)

    def convert_to_draft(self, actor: By) -> None:
        """Make it a draft again."""
        self.draft = True
        self.announce("converted_to_draft", actor)

    def merge(self, actor: By, method: str = "merge", title: str | None = None, message: str | None = None) -> str:
        """Merge without checking permissions, and return the SHA of the commit on the base branch."""
        user, git = self.github.user(actor), self.repository.git
        tip = git.commits[self.repository.branch(self.base_ref)]
        if method == "rebase":
            return self._merged(user, self._replayed(tip))
        files: dict[str, str] = dict(tip.files)
        for change in self.files:
            files.pop(change.path, None)
            if change.status != "removed":
                files[change.path] = git.commits[self.head_sha].files[change.path]
        parents = (tip.sha, self.head_sha) if method == "merge" else (tip.sha,)
        text = "\n\n".join(part for part in (title or f"{self.title} (#{self.number})", message) if part)
        # GitHub names the person who opened the pull request as the author of a squashed commit.
        author = self.user if method == "squash" else user
        return self._merged(user, git.commit(parents, files, text, author, self.github.clock.now()))

    def _replayed(self, tip: Commit) -> Commit:
        """Recreate each of the pull request's commits on top of the base; return the last one."""
        git = self.repository.git
        for commit in self.commits:
            parent_files = git.commits[commit.parents[0]].files if commit.parents else {}
            files = dict(tip.files)
            for change in changes(parent_files, commit.files):
                files.pop(change.path, None)
                if change.status != "removed":
                    files[change.path] = commit.files[change.path]
            tip = git.commit((tip.sha,), files, commit.message, commit.author, commit.date)
            self.rebased_shas.append(tip.sha)
        return tip

    def _merged(self, user: User, merged: Commit) -> str:
        self.state, self.merged_by, self.merge_commit_sha = "closed", user, merged.sha
        self.merged_at = self.closed_at = self.github.clock.now()
        self.closed_by = user
        self.announce("closed", user)
        self.repository.move(f"refs/heads/{self.base_ref}", merged.sha, user)
        return merged.sha

    def update_branch(self, actor: By) -> str:
        """Merge the base into the head branch, as the button does; return the new head."""
        user, git = self.github.user(actor), self.repository.git
        tip = git.commits[self.repository.branch(self.base_ref)]
        files: dict[str, str] = dict(tip.files)
        for change in self.files:
            files.pop(change.path, None)
            if change.status != "removed":
                files[change.path] = git.commits[self.head_sha].files[change.path]
        text = f"Merge branch '{self.base_ref}' into {self.head_ref}"
        made = git.commit((self.head_sha, tip.sha), files, text, user, self.github.clock.now())
        self.head_repository.move(f"refs/heads/{self.head_ref}", made.sha, user)
        return made.sha

    def retarget(self, actor: By, base: str) -> None:
        """Change the base branch."""
        old_base = {"ref": {"from": self.base_ref}, "sha": {"from": self.base_sha}}
        self.base_ref, self.base_sha = base, self.repository.branch(base)
        self.announce("edited", actor, {"changes": {"base": old_base}})

    @property
    def queue(self) -> list[QueueEntry] | None:
        """Return the merge queue of the base branch, None if it has none."""
        return self.repository.queue(self.base_ref)

    @property
    def queued(self) -> QueueEntry | None:
        """Return the pull request's place in the merge queue, or None."""
        return next((entry for entry in self.queue or () if entry.pull is self), None)

    def enqueue(self, actor: By) -> QueueEntry:
        """Add it to the end of the merge queue."""
        assert self.queue is not None, f"{self.base_ref} has no merge queue"
        made = QueueEntry(self, self.head_sha, self.github.user(actor))
        self.queue.append(made)
        self.announce("enqueued", actor)
        return made

    def test_in_queue(self) -> str:
        """Let the queue test this pull request, as a group of its own; return the SHA of the group's commit.

        https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
        """
        assert self.queued is not None
        git, tip = self.repository.git, self.repository.branch(self.base_ref)
        files = {**git.commits[tip].files, **git.commits[self.head_sha].files}
        bot = self.github.user("github-merge-queue[bot]")
        bot.type = "Bot"
        made = git.commit((tip, self.head_sha), files, f"Merge #{self.number}", bot, self.github.clock.now())
        ref = f"refs/heads/gh-readonly-queue/{self.base_ref}/pr-{self.number}-{tip}"
        self.repository.move(ref, made.sha, bot)
        self.github.events.merge_group(bot, self.repository, ref, made, f"refs/heads/{self.base_ref}", tip)
        return made.sha

    def dequeue(self, actor: By, reason: str = "MANUAL") -> None:
        """Remove it from the merge queue."""
        assert self.queue is not None
        assert self.queued is not None
        self.queue.remove(self.queued)
        self.announce("dequeued", actor, {"reason": reason})

    def conversation(self) -> str:
        """Return the whole conversation as text, for failure messages and the demo."""
        lines = [f"{self.repository.full_name}#{self.number} {self.title!r} by {self.user} ({self.state})"]
        entries: list[tuple[datetime, int, str]] = [
            (c.created_at, c.id, f"{c.user} {self.reactions(c)}: {c.body}") for c in self.comments
        ]
        entries += [(r.submitted_at, r.id, f"{r.user} {r.state} {self.reactions(r)}: {r.body}") for r in self.reviews]
        entries += [
            (c.created_at, c.id, f"{c.user} on {c.path}:{c.line} {self.reactions(c)}: {c.body}")
            for c in self.review_comments
        ]
        lines += [text.replace("\n", "\n      ") for _, _, text in sorted(entries)]
        requested: list[Any] = [*self.requested_reviewers, *(team.slug for team in self.requested_teams)]
        lines += [f"asked: {requested}"] if requested else []
        lines += [f"{s.context}: {s.state}: {s.description}" for s in self.repository.statuses(self.head_sha)]
        lines += [f"{r.name}: {r.status} {r.conclusion}" for r in self.repository.check_runs(self.head_sha)]
        return "\n    ".join(lines)
