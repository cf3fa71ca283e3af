"""The page of an issue or pull request: its conversation and its checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from html import escape

from sandbox.model.issues import Issue
from sandbox.model.pulls import PullRequest, Push, Review, ReviewComment
from sandbox.model.reactions import Reaction
from sandbox.model.statuses import CommitStatus
from sandbox.users import User

from .check import check_run
from .layout import choose_person, frame, icon, moment, person, reactions, state_badge
from .markdown import rendered

VERDICTS = {
    "APPROVED": ("approved these changes", "good"),
    "CHANGES_REQUESTED": ("requested changes", "bad"),
    "COMMENTED": ("reviewed", "calm"),
    "DISMISSED": ("reviewed; the review was dismissed", "calm"),
    "PENDING": ("began a review", "calm"),
}
Entry = tuple[datetime, int, str]


def issue_page(issue: Issue) -> str:
    """Return the page of an issue or pull request."""
    repository = issue.repository
    crumbs = [(repository.full_name, f"/{repository.full_name}"), (f"#{issue.number}", "")]
    heading = f'<h1>{escape(issue.title)} <span class="number">#{issue.number}</span></h1>{_subtitle(issue)}'
    conversation = "".join(html for _, _, html in sorted(_entries(issue)))
    merge_box = _merge_box(issue) if isinstance(issue, PullRequest) else ""
    main_column = f"<section>{conversation}{merge_box}{_new_comment(issue)}</section>"
    content = f'{heading}<div class="columns">{main_column}{_sidebar(issue)}</div>'
    return frame(f"{issue.title} · #{issue.number}", crumbs, content)


def _subtitle(issue: Issue) -> str:
    text = f"{state_badge(issue)} {person(issue.user)} "
    if isinstance(issue, PullRequest):
        head = f"{issue.head_repository.owner.login}:{issue.head_ref}"
        commits = len(issue.commits)
        text += f"wants to merge {commits} commit{'s' * (commits != 1)} into <code>{escape(issue.base_ref)}</code>"
        text += f" from <code>{escape(head)}</code>"
    else:
        text += f"opened this issue at {moment(issue.created_at)}"
    return f'<p class="subtitle">{text}</p>'


def _entries(issue: Issue) -> Iterator[Entry]:
    """Yield each item of the conversation with its sort key."""
    body = issue.body or "_No description provided._"
    yield issue.created_at, issue.id, _box(issue.user, issue.created_at, body, issue.reactions_to_body)
    for comment in issue.comments:
        edited = " · edited" if comment.updated_at != comment.created_at else ""
        html = _box(
            comment.user,
            comment.created_at,
            comment.body,
            comment.reactions,
            suffix=edited,
            anchor=f"issuecomment-{comment.id}",
        )
        yield comment.created_at, comment.id, html
    if not isinstance(issue, PullRequest):
        return
    for review in issue.reviews:
        yield review.submitted_at, review.id, _review(review)
    for inline in issue.review_comments:
        yield inline.created_at, inline.id, _review_comment(inline)
    for push in issue.pushes:
        yield push.pushed_at, push.id, _push(issue, push)
    if issue.merged_at and issue.merged_by:
        line = f"{person(issue.merged_by)} merged commit <code>{(issue.merge_commit_sha or '')[:7]}</code>"
        yield issue.merged_at, sys.maxsize, f'<p class="event merged">{line}</p>'


def _box(
    account: User,
    time: datetime,
    text: str,
    given_reactions: list[Reaction],
    *,
    verb: str = "commented",
    suffix: str = "",
    anchor: str = "",
) -> str:
    body = f'<div class="markdown">{rendered(text)}</div>' if text else ""
    kind = "comment from-bot" if account.type == "Bot" else "comment"
    return (
        f'<article class="{kind}" id="{anchor}"><img class="avatar" alt="" src="/avatars/{account.id}">'
        f'<div class="bubble"><h3>{person(account)} {verb} {moment(time)}{suffix}</h3>'
        f"{body}{reactions(given_reactions)}</div></article>"
    )


def _push(pull: PullRequest, push: Push) -> str:
    commit = pull.repository.git.commits[push.sha]
    verb = "force-pushed" if push.forced else "pushed"
    link = f'<a href="/{pull.repository.full_name}/commit/{push.sha}"><code>{push.sha[:7]}</code></a>'
    return f'<p class="event">{person(push.actor)} {verb} {link} {escape(commit.message.splitlines()[0])}</p>'


def _review(review: Review) -> str:
    words, kind = VERDICTS[review.state]
    verb = f'<span class="{kind}">{words}</span>'
    anchor = f"pullrequestreview-{review.id}"
    return _box(review.user, review.submitted_at, review.body, review.reactions, verb=verb, anchor=anchor)


def _review_comment(comment: ReviewComment) -> str:
    verb = f"commented on <code>{escape(comment.path)}:{comment.line}</code>"
    anchor = f"discussion_r{comment.id}"
    return _box(comment.user, comment.created_at, comment.body, comment.reactions, verb=verb, anchor=anchor)


def _new_comment(issue: Issue) -> str:
    return (
        '<form class="new-comment" method="post"><label>Comment'
        '<textarea name="body" rows="3" required placeholder="@ci help"></textarea></label>'
        f"<p>{choose_person(issue.repository)} <button>Comment</button></p></form>"
    )


def _merge_box(pull: PullRequest) -> str:
    """Return the statuses of the head commit, then its check runs with their output."""
    statuses = pull.repository.statuses(pull.head_sha)
    runs = pull.repository.check_runs(pull.head_sha)
    if not statuses and not runs:
        return ""
    lines = [_status(status) for status in sorted(statuses, key=lambda s: s.context)]
    lines += [check_run(run) for run in sorted(runs, key=lambda r: r.name)]
    title = f"Checks on <code>{pull.head_sha[:7]}</code>"
    return f'<section class="checks"><h2>{title}</h2>{"".join(lines)}</section>'


def _status(status: CommitStatus) -> str:
    details = f'<a href="{escape(status.target_url)}">Details</a>' if status.target_url else ""
    text = f" — {escape(status.description)}" if status.description else ""
    return (
        f'<div class="check">{icon(status.state)} <img class="avatar small" alt="" src="/avatars/{status.creator.id}">'
        f"<p><b>{escape(status.context)}</b>{text}</p>{details}</div>"
    )


def _sidebar(issue: Issue) -> str:
    parts = []
    if isinstance(issue, PullRequest):
        files = [
            f"<li><code>{escape(file.path)}</code> <i>+{file.additions} &minus;{file.deletions}</i></li>"
            for file in issue.files
        ]
        parts.append(f"<h4>Reviewers</h4><ul>{_reviewers(issue)}</ul>")
        parts.append(f"<h4>Files changed</h4><ul>{''.join(files)}</ul>")
    labels = [f'<span class="label">{escape(label.name)}</span>' for label in issue.labels]
    parts.append(f"<h4>Labels</h4>{' '.join(labels) or '<p class=quiet>none</p>'}")
    return f"<aside>{''.join(parts)}</aside>"


def _reviewers(pull: PullRequest) -> str:
    verdicts = {review.user: review.state for review in pull.reviews if review.user is not pull.user}
    signs = {"APPROVED": "success", "CHANGES_REQUESTED": "failure"}
    people = [
        f"<li>{person(account, avatar=True)} {icon(signs.get(state, 'neutral'))}</li>"
        for account, state in verdicts.items()
    ]
    people += [f"<li>{person(account, avatar=True)} {icon('pending')}</li>" for account in pull.requested_reviewers]
    teams = [f"{team.organization.login}/{team.slug}" for team in pull.requested_teams]
    people += [f"<li>{escape(team)} {icon('pending')}</li>" for team in teams]
    return "".join(people) or "<li class=quiet>nobody yet</li>"
