"""Decide whether a pull request is ready to be merged, and list every reason why it is not. Pure.

`handlers.merge.snapshot` reads the merge state from GitHub.

- Of each person, the latest review that approves or requests changes counts. Comments don't change it, and dismissed
  reviews don't count.
- An approval is for a commit. One for an earlier head does not count, because nobody has reviewed the later commits.
- A request for changes stays in force through pushes, until its author approves or somebody dismisses it: a push alone
  does not resolve it.
- Only reviews by people with write access count, and never the pull request author's own.
- The branch's rules and app.yaml say which checks are required; the code names no job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.core.urls import linkable
from bot.github.commits.required import SETTLED_SECONDS, Expected, Signal, State, blockers
from bot.github.text.markdown import code, truncate
from handlers.merge import texts

if TYPE_CHECKING:
    from bot.core.events import PullRequest
    from handlers.merge.config import Merge

APPROVED, CHANGES_REQUESTED, DISMISSED = "APPROVED", "CHANGES_REQUESTED", "DISMISSED"
OPINIONS = frozenset({APPROVED, CHANGES_REQUESTED, DISMISSED})

MOST_LISTED = 10
"""The most reasons of one kind that a text lists; it counts the rest."""
EVERYTHING = "*"
"""The pattern that every context and name matches."""
LONGEST_NAME = 100
"""The most characters of a name that a text shows."""
SETTLED_HOURS = SETTLED_SECONDS // 3600


class BlockerKind(StrEnum):
    """The kinds of reasons, in the order in which texts list them."""

    CLOSED = "closed"
    METHOD = "method"
    DRAFT = "draft"
    CONFLICTS = "conflicts"
    BEHIND = "behind"
    HELD = "held"
    OBJECTION = "objection"
    CHECK = "check"
    APPROVAL = "approval"


RESOLVED_BY_WAITING = frozenset({BlockerKind.CHECK, BlockerKind.APPROVAL, BlockerKind.BEHIND})
"""Reasons that resolve without a push by people: a check ends or is rerun, somebody approves, or uses `update`.

For all others, somebody has to change the pull request, and can then decide whether it should still be merged.
"""


@dataclass(frozen=True, slots=True)
class MergeBlocker:
    """Why a pull request cannot be merged: one short sentence of Markdown, with what to do about it."""

    kind: BlockerKind
    text: str

    @property
    def can_resolve(self) -> bool:
        """Say whether the reason can resolve without a change of the pull request."""
        return self.kind in RESOLVED_BY_WAITING


@dataclass(frozen=True, slots=True)
class PullReview:
    """A review as GitHub lists it.

    `author_id` is 0 if the account was deleted; `sha` is empty if GitHub does not name the commit.
    """

    author_id: int
    author: str
    state: str
    sha: str
    url: str
    may_write: bool = False


@dataclass(frozen=True, slots=True)
class RequiredCheck:
    """A status or check that a branch's rules require, from the App of this number; 0: from anybody."""

    name: str
    app: int = 0


@dataclass(frozen=True, slots=True)
class BranchRules:
    """The requirements of a branch for a merge, as far as an App may read them. Empty `methods` allow any method."""

    required: tuple[RequiredCheck, ...] = ()
    approvals: int = 0
    methods: tuple[str, ...] = ()
    queue: bool = False


@dataclass(frozen=True, slots=True)
class MergeState:
    """The merge state of a pull request; `mergeable` is None while GitHub computes whether there are conflicts.

    `blocked`: there are none, but GitHub says that something required is missing, without naming it. `behind`: the head
    lacks commits of the base, and the branch's rules require them. `expected` are the names that patterns of
    `merge: required:` stand for; `own_contexts` are our own statuses, in lower case. `reviews` are in the order of
    submission. Of a closed pull request, rules, signals and reviews are not read.
    """

    pull: PullRequest
    merged: bool
    mergeable: bool | None
    labels: tuple[str, ...] = ()
    rules: BranchRules = BranchRules()
    signals: tuple[Signal, ...] = ()
    reviews: tuple[PullReview, ...] = ()
    blocked: bool = False
    behind: bool = False
    expected: tuple[Expected, ...] = ()
    own_contexts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RestartCommand:
    """The command that restarts failed runs, and the names of those that it can restart."""

    text: str
    names: frozenset[str]


def merge_blockers(
    merge_state: MergeState, config: Merge, restart: RestartCommand | None = None, update: str = ""
) -> list[MergeBlocker]:
    """Return everything that blocks a merge, in the order of `BlockerKind`; empty where nothing does.

    `restart` and `update` (the command that merges the base) are what the texts offer; None and empty: nothing. What
    GitHub has not computed yet is no reason: call `is_undecided` as well.
    """
    pull = merge_state.pull
    if not pull.is_open:
        return [MergeBlocker(BlockerKind.CLOSED, texts.MERGED_ALREADY if merge_state.merged else texts.CLOSED)]
    return [
        *_method(merge_state, config),
        *([MergeBlocker(BlockerKind.DRAFT, texts.DRAFT)] if pull.draft else []),
        *_conflicts(merge_state),
        *_behind(merge_state, update),
        *_holds(merge_state.labels, config.hold_labels),
        *_objections(merge_state),
        *_checks(merge_state, config.required, restart),
        *_approvals(merge_state),
    ]


def is_undecided(merge_state: MergeState, open_blockers: Sequence[MergeBlocker]) -> bool:
    """Return whether the only open question is whether there are conflicts, which GitHub is still computing."""
    return not open_blockers and merge_state.mergeable is None


def latest_opinions(reviews: Iterable[PullReview]) -> list[PullReview]:
    """Return the latest approval or request for changes of each person, without dismissed ones."""
    opinions: dict[int, PullReview] = {}
    for review in reviews:
        if review.state in OPINIONS and review.author_id:
            opinions[review.author_id] = review
    # Removed only now: dismissing a review does not bring back the earlier one.
    return [review for review in opinions.values() if review.state != DISMISSED]


def listed_blockers(reasons: Iterable[MergeBlocker]) -> str:
    """Write reasons as a list, with the first few of each kind."""
    lines: list[str] = []
    by_kind: dict[BlockerKind, list[MergeBlocker]] = {}
    for blocker in reasons:
        by_kind.setdefault(blocker.kind, []).append(blocker)
    for group in by_kind.values():
        lines += [f"- {blocker.text}" for blocker in group[:MOST_LISTED]]
        if (unlisted := len(group) - MOST_LISTED) > 0:
            lines.append(f"- {texts.MORE.format(count=unlisted)}")
    return "\n".join(lines)


def _method(merge_state: MergeState, config: Merge) -> list[MergeBlocker]:
    allowed = merge_state.rules.methods
    # A queue merges by its own method.
    if not allowed or config.method in allowed or merge_state.rules.queue:
        return []
    names = {"base": code(merge_state.pull.base_ref), "method": code(config.method)}
    return [MergeBlocker(BlockerKind.METHOD, texts.METHOD.format(**names, allowed=", ".join(map(code, allowed))))]


def _conflicts(merge_state: MergeState) -> list[MergeBlocker]:
    if merge_state.mergeable is not False:
        return []
    return [MergeBlocker(BlockerKind.CONFLICTS, texts.CONFLICTS.format(base=code(merge_state.pull.base_ref)))]


def _behind(merge_state: MergeState, update: str) -> list[MergeBlocker]:
    if not merge_state.behind:
        return []
    base = code(merge_state.pull.base_ref)
    text = texts.UPDATE_BY_COMMAND if update else texts.UPDATE_YOURSELF
    remedy = text.format(command=code(update), base=base)
    return [MergeBlocker(BlockerKind.BEHIND, texts.BEHIND.format(base=base, how=remedy))]


def _holds(labels: Sequence[str], holding: Sequence[str]) -> list[MergeBlocker]:
    hold_labels = {name.casefold() for name in holding}
    return [
        MergeBlocker(BlockerKind.HELD, texts.HELD.format(label=code(name)))
        for name in labels
        if name.casefold() in hold_labels
    ]


def _objections(merge_state: MergeState) -> list[MergeBlocker]:
    return [
        MergeBlocker(BlockerKind.OBJECTION, texts.CHANGES_REQUESTED.format(who=code(review.author), url=review.url))
        for review in latest_opinions(merge_state.reviews)
        if review.state == CHANGES_REQUESTED and review.may_write
    ]


def _approvals(merge_state: MergeState) -> list[MergeBlocker]:
    pull = merge_state.pull
    approvals = [
        review
        for review in latest_opinions(merge_state.reviews)
        if review.state == APPROVED and review.may_write and review.author_id != pull.author.id
    ]
    if not any(review.sha == pull.head_sha for review in approvals):
        older = approvals[-1] if approvals else None
        values = {"who": code(older.author), "url": older.url, "sha": _short(older.sha)} if older else {}
        older_approval = texts.OLDER_APPROVAL.format(**values) if older else ""
        text = texts.UNAPPROVED.format(sha=_short(pull.head_sha), older=older_approval)
        return [MergeBlocker(BlockerKind.APPROVAL, text)]
    # GitHub counts approvals of older heads too, unless the branch dismisses stale ones:
    # https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches#require-pull-request-reviews-before-merging
    if len(approvals) < merge_state.rules.approvals:
        counts = {"needed": merge_state.rules.approvals, "there": len(approvals)}
        return [MergeBlocker(BlockerKind.APPROVAL, texts.TOO_FEW_APPROVALS.format(base=code(pull.base_ref), **counts))]
    return []


def _checks(merge_state: MergeState, patterns: Sequence[str], restart: RestartCommand | None) -> list[MergeBlocker]:
    """Return the checks that the branch's rules require and that are not green, then those of app.yaml, each once."""
    names = {"sha": _short(merge_state.pull.head_sha), "base": code(merge_state.pull.base_ref)}
    sentences: dict[tuple[str, str], str] = {}
    for required in merge_state.rules.required:
        signals = [signal for signal in merge_state.signals if _is_report_of(signal, required)]
        for signal in signals:
            _add_sentence(sentences, signal, names, restart)
        if not signals:
            app = texts.FROM_APP.format(app=required.app) if required.app else ""
            text = texts.RULE_MISSING.format(**names, name=_quoted(required.name), app=app)
            sentences[State.MISSING, required.name] = text
    for signal in blockers(patterns or _all_of(merge_state), merge_state.signals):
        if signal.state is State.MISSING:
            # A job that no longer exists still blocks, and the text says so: TVM's list of jobs became outdated
            # without anybody noticing (TVM #14618, #18780).
            text = texts.PATTERN_MISSING if patterns else texts.NOTHING_REPORTED
            sentence = text.format(**names, name=_quoted(signal.name))
            sentences.setdefault((State.MISSING, signal.name), sentence)
        else:
            _add_sentence(sentences, signal, names, restart)
    reported = {signal.name for signal in merge_state.signals if not (signal.ours or signal.is_workflow_run)}
    for expected in merge_state.expected:
        values = {"pattern": _quoted(expected.pattern), "seen": _short(expected.sha), "hours": SETTLED_HOURS}
        for name in expected.names:
            if name not in reported:
                sentences.setdefault(
                    (State.MISSING, name), texts.JOB_MISSING.format(**names, **values, name=_quoted(name))
                )
    return [MergeBlocker(BlockerKind.CHECK, sentences[key]) for key in sorted(sentences, key=_worst_first)]


def _all_of(merge_state: MergeState) -> tuple[str, ...]:
    """Return the pattern for everything if no rule of the branch requires a check of CI.

    Required checks of the bot itself say nothing about the commit.
    """
    own_names = merge_state.own_contexts | {signal.name.casefold() for signal in merge_state.signals if signal.ours}
    ci_checks = [check for check in merge_state.rules.required if check.name.casefold() not in own_names]
    return () if ci_checks else (EVERYTHING,)


def _worst_first(key: tuple[str, str]) -> tuple[int, str]:
    return list(State).index(State(key[0])), key[1]


def _is_report_of(signal: Signal, required: RequiredCheck) -> bool:
    # GitHub ignores upper and lower case in contexts.
    if signal.is_workflow_run:
        return False
    return signal.name.casefold() == required.name.casefold() and required.app in (0, signal.app)


def _add_sentence(
    sentences: dict[tuple[str, str], str], signal: Signal, names: dict[str, str], restart: RestartCommand | None
) -> None:
    if signal.state is State.RED:
        text = texts.CHECK_FAILED.format(**names, name=_linked(signal), remedy=_remedy(signal, restart))
        sentences[signal.state, signal.name] = text
    elif signal.state is not State.GREEN:
        sentences[signal.state, signal.name] = texts.CHECK_RUNNING.format(**names, name=_linked(signal))


def _remedy(signal: Signal, restart: RestartCommand | None) -> str:
    if restart is None:
        return ""
    can_restart = signal.name in restart.names
    return texts.RESTART.format(command=code(restart.text)) if can_restart else texts.CANNOT_RESTART


def _linked(signal: Signal) -> str:
    url = linkable(signal.url)
    return f"[{_quoted(signal.name)}](<{url}>)" if url else _quoted(signal.name)


def _quoted(name: str) -> str:
    return code(truncate(name, LONGEST_NAME))


def _short(sha: str) -> str:
    return code(sha[:7])
