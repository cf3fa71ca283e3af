"""Is this pull request ready to be merged? Every reason at once why it is not. Pure.

Nothing here knows GitHub: `handlers.merge.snapshot` reads how a pull request stands at one moment.

- Reviews are collapsed: of each person the latest that approves or requests changes counts; a comment changes nothing
  about it, and one that was dismissed counts no more.
- An approval is of a commit: one of an earlier head does not count, for nobody has looked at what came after it.
- A request for changes stands through pushes, until who made it approves or somebody dismisses it: to push something
  does not answer it.
- Only people who may write count, and never the author, whose word on their own work is no review.
- Of required checks nothing is known but what the branch's rules and app.yaml say; no name of a job is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.core.urls import linkable
from bot.github.markdown import code, truncate
from bot.github.required import SETTLED_SECONDS, Expected, Signal, State, blockers
from handlers.merge import texts

if TYPE_CHECKING:
    from bot.config.merge import Merge
    from bot.core.events import PullRequest

APPROVED, CHANGES_REQUESTED, DISMISSED = "APPROVED", "CHANGES_REQUESTED", "DISMISSED"
OPINIONS = frozenset({APPROVED, CHANGES_REQUESTED, DISMISSED})

MOST_LISTED = 10
"""Reasons of one kind that a text lists; the rest are counted."""
EVERYTHING = "*"
"""The pattern that every context and name matches."""
LONGEST_NAME = 100
"""Characters of a name that are shown."""
SETTLED_HOURS = SETTLED_SECONDS // 3600


class BlockerKind(StrEnum):
    """What a reason is about, in the order in which texts list the reasons."""

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
"""What is over without a push by people: a check ends or is run again, somebody approves, `update` is asked for.

For everything else somebody has to change the pull request: then they know best whether it is still to be merged.
"""


@dataclass(frozen=True, slots=True)
class MergeBlocker:
    """Why a pull request cannot be merged: one short sentence of Markdown, with what to do about it."""

    kind: BlockerKind
    text: str

    @property
    def can_resolve(self) -> bool:
        """Whether it is worth waiting until it is over."""
        return self.kind in RESOLVED_BY_WAITING


@dataclass(frozen=True, slots=True)
class PullReview:
    """A review as GitHub lists it.

    `by_id` 0: whose account was deleted; `sha` empty: GitHub does not say about what.
    """

    by_id: int
    by: str
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
    """What a branch requires of a merge, as far as an App may read it. `methods` empty: its rules allow any."""

    required: tuple[RequiredCheck, ...] = ()
    approvals: int = 0
    methods: tuple[str, ...] = ()
    queue: bool = False


@dataclass(frozen=True, slots=True)
class MergeState:
    """How a pull request stands at one moment; `mergeable` None: GitHub has not found out yet whether it conflicts.

    `blocked`: it does not, but GitHub says that something is missing that the branch requires, and not what. `behind`:
    it lacks commits of the base, and the branch's rules require them.
    `expected` is what patterns of `merge: required:` stand for, `own_contexts` are our own statuses, in small letters.
    `reviews` are in the order in which they were submitted. Of one that is closed nothing else is known.
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

    `restart` is None, and `update`, the command that merges the base, empty where the text names no such command. What
    GitHub has not computed yet is no reason: call `undecided` as well.
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


def undecided(merge_state: MergeState, found: Sequence[MergeBlocker]) -> bool:
    """Say whether it hangs on GitHub alone, which still finds out whether there are conflicts."""
    return not found and merge_state.mergeable is None


def latest(reviews: Iterable[PullReview]) -> list[PullReview]:
    """Return of each person the latest review that says yes or no; none of those that were dismissed."""
    opinions: dict[int, PullReview] = {}
    for review in reviews:
        if review.state in OPINIONS and review.by_id:
            opinions[review.by_id] = review
    # Dropped only now: who dismisses a review does not bring back the one before it.
    return [review for review in opinions.values() if review.state != DISMISSED]


def listed_blockers(found: Iterable[MergeBlocker]) -> str:
    """Write reasons as a list, of each kind the first few."""
    lines: list[str] = []
    by_kind: dict[BlockerKind, list[MergeBlocker]] = {}
    for reason in found:
        by_kind.setdefault(reason.kind, []).append(reason)
    for same in by_kind.values():
        lines += [f"- {reason.text}" for reason in same[:MOST_LISTED]]
        if (more := len(same) - MOST_LISTED) > 0:
            lines.append(f"- {texts.MORE.format(count=more)}")
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
    how = text.format(command=code(update), base=base)
    return [MergeBlocker(BlockerKind.BEHIND, texts.BEHIND.format(base=base, how=how))]


def _holds(labels: Sequence[str], holding: Sequence[str]) -> list[MergeBlocker]:
    held = {name.casefold() for name in holding}
    return [
        MergeBlocker(BlockerKind.HELD, texts.HELD.format(label=code(name)))
        for name in labels
        if name.casefold() in held
    ]


def _objections(merge_state: MergeState) -> list[MergeBlocker]:
    return [
        MergeBlocker(BlockerKind.OBJECTION, texts.CHANGES_REQUESTED.format(who=code(review.by), url=review.url))
        for review in latest(merge_state.reviews)
        if review.state == CHANGES_REQUESTED and review.may_write
    ]


def _approvals(merge_state: MergeState) -> list[MergeBlocker]:
    pull = merge_state.pull
    approvals = [
        review
        for review in latest(merge_state.reviews)
        if review.state == APPROVED and review.may_write and review.by_id != pull.author.id
    ]
    if not any(review.sha == pull.head_sha for review in approvals):
        older = approvals[-1] if approvals else None
        where = {"who": code(older.by), "url": older.url, "sha": _short(older.sha)} if older else {}
        trigger = texts.OLDER_APPROVAL.format(**where) if older else ""
        said = texts.UNAPPROVED.format(sha=_short(pull.head_sha), older=trigger)
        return [MergeBlocker(BlockerKind.APPROVAL, said)]
    # GitHub counts approvals of older heads too, unless the branch dismisses stale ones:
    # https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches#require-pull-request-reviews-before-merging
    if len(approvals) < merge_state.rules.approvals:
        counted = {"needed": merge_state.rules.approvals, "there": len(approvals)}
        return [MergeBlocker(BlockerKind.APPROVAL, texts.TOO_FEW_APPROVALS.format(base=code(pull.base_ref), **counted))]
    return []


def _checks(merge_state: MergeState, patterns: Sequence[str], restart: RestartCommand | None) -> list[MergeBlocker]:
    """Return what the branch's rules miss, then what app.yaml does; what both miss, once."""
    names = {"sha": _short(merge_state.pull.head_sha), "base": code(merge_state.pull.base_ref)}
    found: dict[tuple[str, str], str] = {}
    for required in merge_state.rules.required:
        signals = [signal for signal in merge_state.signals if _is(signal, required)]
        for signal in signals:
            _note(found, signal, names, restart)
        if not signals:
            app = texts.FROM_APP.format(app=required.app) if required.app else ""
            text = texts.RULE_MISSING.format(**names, name=_shown(required.name), app=app)
            found[State.MISSING, required.name] = text
    for signal in blockers(patterns or _all_of(merge_state), merge_state.signals):
        if signal.state is State.MISSING:
            # A job that nobody runs any more still blocks, and the text says so: TVM's list of jobs went stale
            # unnoticed (TVM #14618, #18780).
            text = texts.PATTERN_MISSING if patterns else texts.NOTHING_REPORTED
            said = text.format(**names, name=_shown(signal.name))
            found.setdefault((State.MISSING, signal.name), said)
        else:
            _note(found, signal, names, restart)
    reported = {signal.name for signal in merge_state.signals if not signal.ours}
    for expected in merge_state.expected:
        more = {"pattern": _shown(expected.pattern), "seen": _short(expected.sha), "hours": SETTLED_HOURS}
        for name in expected.names:
            if name not in reported:
                found.setdefault((State.MISSING, name), texts.JOB_MISSING.format(**names, **more, name=_shown(name)))
    return [MergeBlocker(BlockerKind.CHECK, found[key]) for key in sorted(found, key=_worst_first)]


def _all_of(merge_state: MergeState) -> tuple[str, ...]:
    """Return the pattern for everything where no rule of the branch requires what CI reports.

    What the rules require of the bot itself says nothing about the commit.
    """
    own = merge_state.own_contexts | {signal.name.casefold() for signal in merge_state.signals if signal.ours}
    theirs = [one for one in merge_state.rules.required if one.name.casefold() not in own]
    return () if theirs else (EVERYTHING,)


def _worst_first(key: tuple[str, str]) -> tuple[int, str]:
    return list(State).index(State(key[0])), key[1]


def _is(signal: Signal, required: RequiredCheck) -> bool:
    # GitHub compares contexts without regard to upper and lower case.
    return signal.name.casefold() == required.name.casefold() and required.app in (0, signal.app)


def _note(
    found: dict[tuple[str, str], str], signal: Signal, names: dict[str, str], restart: RestartCommand | None
) -> None:
    if signal.state is State.RED:
        text = texts.CHECK_FAILED.format(**names, name=_linked(signal), remedy=_remedy(signal, restart))
        found[signal.state, signal.name] = text
    elif signal.state is not State.GREEN:
        found[signal.state, signal.name] = texts.CHECK_RUNNING.format(**names, name=_linked(signal))


def _remedy(signal: Signal, restart: RestartCommand | None) -> str:
    if restart is None:
        return ""
    can = signal.name in restart.names
    return texts.RESTART.format(command=code(restart.text)) if can else texts.CANNOT_RESTART


def _linked(signal: Signal) -> str:
    url = linkable(signal.url)
    return f"[{_shown(signal.name)}](<{url}>)" if url else _shown(signal.name)


def _shown(name: str) -> str:
    return code(truncate(name, LONGEST_NAME))


def _short(sha: str) -> str:
    return code(sha[:7])
