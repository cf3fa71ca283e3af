"""Why a pull request cannot be merged: tables of merge states and the answers that people get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.events import Person, PullRequest
from bot.github.commits.required import Expected, Signal, State
from handlers.merge.config import Merge
from handlers.merge.readiness import (
    APPROVED,
    CHANGES_REQUESTED,
    DISMISSED,
    MOST_LISTED,
    BlockerKind,
    BranchRules,
    MergeBlocker,
    MergeState,
    PullReview,
    RequiredCheck,
    RestartCommand,
    is_undecided,
    latest_opinions,
    listed_blockers,
    merge_blockers,
)

HEAD, OLD = "a" * 40, "b" * 40
AUTHOR, HUBOT, MONA = Person(1, "octocat", False), Person(2, "hubot", False), Person(3, "mona", False)
RESTART = RestartCommand("@ci rerun", frozenset({"cpu/pr-head"}))
PULL = PullRequest(
    number=12, head_sha=HEAD, base_ref="main", author=AUTHOR, title="Faster", body="", draft=False, is_open=True,
    updated_at="2026-11-20T05:00:00Z",
)  # fmt: skip


def review(author: Person = HUBOT, state: str = APPROVED, sha: str = HEAD, *, may_write: bool = True) -> PullReview:
    return PullReview(author.id, author.login, state, sha, f"https://github.example/r/{author.login}", may_write)


UNIT = Signal("unit", State.GREEN)
READY = MergeState(PULL, merged=False, mergeable=True, reviews=(review(),), signals=(UNIT,))


def green(name: str, **fields: Any) -> Signal:
    return Signal(name, State.GREEN, **fields)


def why(merge_state: MergeState, **keys: Any) -> list[str]:
    return [reason.text for reason in merge_blockers(merge_state, Merge(**keys), RESTART)]


def kinds(merge_state: MergeState, **keys: Any) -> list[str]:
    return [reason.kind for reason in merge_blockers(merge_state, Merge(**keys), RESTART)]


def test_an_approved_pull_request_without_other_requirements_is_ready() -> None:
    assert why(READY) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"merged": True, "pull": replace(PULL, is_open=False)}, "It is already merged."),
        ({"pull": replace(PULL, is_open=False)}, "It is closed. Reopen it first."),
        ({"pull": replace(PULL, draft=True)}, "It is a draft. Mark it as ready for review."),
        (
            {"mergeable": False},
            "It conflicts with `main`. Merge `main` into it or rebase it, then ask for a new review.",
        ),
        (
            {"behind": True},
            "It is behind `main`, and the rules of `main` require it to be up to date. Merge `main` into it, then "
            "ask for a new review.",
        ),
        ({"labels": ("docs", "Hold")}, "It has the label `Hold`. Remove the label first."),
        ({"reviews": ()}, "`aaaaaaa` has no approval by someone with write access other than the author."),
        (
            {"rules": BranchRules(methods=("merge", "rebase"))},
            "The rules of `main` don't allow the merge method `squash`. Set `merge: method:` in `app.yaml` to one of "
            "`merge`, `rebase`.",
        ),
        (
            {"rules": BranchRules(approvals=2)},
            "The rules of `main` require 2 approvals by people with write access. It has 1.",
        ),
    ],
)
def test_each_blocker_is_one_sentence_with_what_to_do(change: dict[str, Any], expected: str) -> None:
    """TVM's bot ignored drafts, and answered a closed pull request with 👍 and nothing else."""
    assert why(replace(READY, **change)) == [expected]


def test_if_a_command_updates_the_branch_it_is_named() -> None:
    text = (
        "It is behind `main`, and the rules of `main` require it to be up to date. Comment `@ci update`, then ask for "
        "a new review."
    )
    blockers = merge_blockers(replace(READY, behind=True), Merge(), RESTART, "@ci update")
    assert blockers == [MergeBlocker(BlockerKind.BEHIND, text)]


def test_all_blockers_are_listed_and_those_that_need_a_person_come_first() -> None:
    merge_state = MergeState(
        replace(PULL, draft=True),
        merged=False,
        mergeable=False,
        labels=("hold", "wip"),
        rules=BranchRules(required=(RequiredCheck("gpu/pr-head"),), methods=("rebase",)),
        signals=(Signal("cpu/pr-head", State.RED),),
        reviews=(review(state=CHANGES_REQUESTED),),
    )
    reasons = kinds(merge_state, required=("*/pr-head",), hold_labels=("hold", "wip"))
    assert reasons == ["method", "draft", "conflicts", "held", "held", "objection", "check", "check", "approval"]


def test_a_closed_pull_request_has_no_other_blocker() -> None:
    assert kinds(MergeState(replace(PULL, is_open=False, draft=True), merged=False, mergeable=None)) == [
        BlockerKind.CLOSED
    ]


@pytest.mark.parametrize("kind", BlockerKind)
def test_only_checks_approvals_and_updates_can_resolve_without_a_push_by_people(kind: BlockerKind) -> None:
    assert MergeBlocker(kind, "").can_resolve is (kind in {BlockerKind.CHECK, BlockerKind.APPROVAL, BlockerKind.BEHIND})


def test_an_unknown_mergeable_state_matters_only_without_other_blockers() -> None:
    unknown = replace(READY, mergeable=None)
    assert is_undecided(unknown, merge_blockers(unknown, Merge()))
    assert not is_undecided(READY, merge_blockers(READY, Merge()))
    draft = replace(unknown, pull=replace(PULL, draft=True))
    assert not is_undecided(draft, merge_blockers(draft, Merge()))


# Reviews


@pytest.mark.parametrize(
    ("reviews", "expected"),
    [
        ([review()], []),
        ([review(may_write=False)], ["approval"]),
        ([review(AUTHOR)], ["approval"]),
        ([review(sha=OLD)], ["approval"]),
        ([review(sha="")], ["approval"]),
        ([review(sha=OLD), review()], []),
        ([review(), review(state="COMMENTED", sha=HEAD)], []),
        ([review(sha=OLD), review(state="COMMENTED")], ["approval"]),
        ([review(), review(state="PENDING")], []),
        ([review(), review(state=DISMISSED)], ["approval"]),
        ([review(state=CHANGES_REQUESTED)], ["objection", "approval"]),
        ([review(state=CHANGES_REQUESTED), review()], []),
        ([review(), review(state=CHANGES_REQUESTED)], ["objection", "approval"]),
        ([review(state=CHANGES_REQUESTED), review(state="COMMENTED")], ["objection", "approval"]),
        ([review(state=CHANGES_REQUESTED), review(state=DISMISSED), review(MONA)], []),
        ([review(state=CHANGES_REQUESTED, sha=OLD), review(MONA)], ["objection"]),
        ([review(MONA, CHANGES_REQUESTED, may_write=False), review()], []),
        ([replace(review(), author_id=0)], ["approval"]),
        ([replace(review(state=CHANGES_REQUESTED), author_id=0), review(MONA)], []),
    ],
)
def test_the_latest_review_of_each_person_counts(reviews: list[PullReview], expected: list[str]) -> None:
    """TVM's bot counted every review separately:

    somebody who had requested changes and then approved still blocked. It also let an author with write access approve
    their own work.
    """
    assert kinds(replace(READY, reviews=tuple(reviews))) == expected


def test_an_author_is_recognized_by_id_whatever_their_login() -> None:
    renamed = replace(review(), author_id=AUTHOR.id, author="formerly-octocat")
    namesake = replace(review(), author=AUTHOR.login)
    assert kinds(replace(READY, reviews=(renamed,))) == ["approval"]
    assert kinds(replace(READY, reviews=(namesake,))) == []


def test_an_approval_of_an_older_head_is_named_and_linked() -> None:
    assert why(replace(READY, reviews=(review(sha=OLD),))) == [
        "`aaaaaaa` has no approval by someone with write access other than the author. [The approval by "
        "`hubot`](https://github.example/r/hubot) is for `bbbbbbb`, an older commit."
    ]


def test_a_person_who_requests_changes_is_named_and_their_review_linked() -> None:
    assert why(replace(READY, reviews=(review(), review(MONA, CHANGES_REQUESTED)))) == [
        "`mona` [requested changes](https://github.example/r/mona). They must approve, or someone must dismiss the "
        "review."
    ]


def test_approvals_of_older_heads_count_toward_the_required_number_but_one_must_be_of_the_head() -> None:
    two = BranchRules(approvals=2)
    assert kinds(replace(READY, rules=two, reviews=(review(MONA, sha=OLD), review()))) == []
    assert kinds(replace(READY, rules=two, reviews=(review(MONA, sha=OLD), review(sha=OLD)))) == ["approval"]


def test_reviews_are_in_the_order_of_each_persons_first_one() -> None:
    reviews = [review(MONA, CHANGES_REQUESTED), review(), review(MONA)]
    assert [(opinion.author, opinion.state) for opinion in latest_opinions(reviews)] == [
        ("mona", APPROVED),
        ("hubot", APPROVED),
    ]


# Checks

CPU, RED = "cpu/pr-head", State.RED


@pytest.mark.parametrize(
    ("required", "patterns", "signals", "expected"),
    [
        ((RequiredCheck(CPU),), (), [green(CPU), Signal("anything", RED)], []),
        ((RequiredCheck(CPU),), (), [green(CPU)], []),
        ((RequiredCheck(CPU),), (), [green("CPU/PR-head")], []),
        ((RequiredCheck(CPU),), (), [Signal(CPU, RED)], ["`cpu/pr-head` failed"]),
        ((RequiredCheck(CPU),), (), [Signal(CPU, State.PENDING)], ["`cpu/pr-head` is still running"]),
        ((RequiredCheck(CPU),), (), [], ["`cpu/pr-head` hasn't started"]),
        ((RequiredCheck(CPU),), (), [green(CPU), Signal(CPU, RED, app=9)], ["`cpu/pr-head` failed"]),
        ((RequiredCheck(CPU, 7),), (), [green(CPU, app=7), Signal(CPU, RED, app=9), Signal(CPU, RED)], []),
        ((RequiredCheck(CPU, 7),), (), [green(CPU, app=9), green(CPU)], ["`cpu/pr-head` hasn't started"]),
        ((), ("*/pr-head",), [green(CPU), green("gpu/pr-head"), Signal("lint", RED)], []),
        ((), ("*/pr-head",), [green(CPU), Signal("gpu/pr-head", RED)], ["`gpu/pr-head` failed"]),
        ((), ("*/pr-head",), [green("lint")], ["Nothing on `aaaaaaa` matches `*/pr-head`"]),
        ((RequiredCheck(CPU),), (CPU,), [], ["`cpu/pr-head` hasn't started"]),
        ((RequiredCheck(CPU),), ("*/pr-head",), [Signal(CPU, RED)], ["`cpu/pr-head` failed"]),
        (
            (RequiredCheck("b"), RequiredCheck("a"), RequiredCheck("c")),
            (),
            [Signal("a", State.PENDING), Signal("c", RED)],
            ["`c` failed", "`a` is still running", "`b` hasn't started"],
        ),
    ],
)
def test_required_checks_must_be_green_and_no_others_matter(
    required: tuple[RequiredCheck, ...], patterns: tuple[str, ...], signals: list[Signal], expected: list[str]
) -> None:
    """The branch and app.yaml say what is required.

    TVM #18780, #14618: lists of jobs in the code became outdated. Since December 2022 a job that no longer ran was
    expected, so nothing could be merged.
    """
    reasons = why(replace(READY, rules=BranchRules(required=required), signals=tuple(signals)), required=patterns)
    assert len(reasons) == len(expected), reasons
    assert all(text.startswith(start) for text, start in zip(reasons, expected, strict=True)), reasons


def test_a_check_that_never_starts_is_named_with_who_requires_it() -> None:
    """TVM #18780, #14618: people can see that a removed job is still required, and where to change that."""
    merge_state = replace(
        READY, rules=BranchRules(required=(RequiredCheck("tvm-ci/pr-head"), RequiredCheck("lint", 15368)))
    )
    assert why(merge_state, required=("docs/*",)) == [
        "Nothing on `aaaaaaa` matches `docs/*` yet. `merge: required` in `app.yaml` requires it. If nothing ever "
        "reports this name, fix `merge: required`.",
        "`lint` hasn't started on `aaaaaaa` yet. The rules of `main` require it from the app with ID 15368. If "
        "nothing ever reports this name, fix those rules.",
        "`tvm-ci/pr-head` hasn't started on `aaaaaaa` yet. The rules of `main` require it. If nothing ever reports "
        "this name, fix those rules.",
    ]


@pytest.mark.parametrize(
    ("required", "signals", "expected"),
    [
        ((), [], ["No CI has reported on `aaaaaaa` yet."]),
        ((), [green("ci/skip", ours=True)], ["No CI has reported"]),
        ((), [green("unit")], []),
        ((), [green("unit"), Signal("gpu", State.PENDING)], ["`gpu` is still running"]),
        ((), [green("unit"), Signal("gpu", RED)], ["`gpu` failed"]),
        ((), [green("unit"), Signal("nightjar/lint", RED, ours=True)], []),
        ((RequiredCheck("CI/Skip"),), [green("ci/skip", ours=True)], ["No CI has reported"]),
        ((RequiredCheck("nightjar/lint", 7),), [green("nightjar/lint", ours=True, app=7)], ["No CI has reported"]),
        ((RequiredCheck("unit"),), [green("unit"), Signal("gpu", RED)], []),
    ],
)
def test_if_no_reported_check_is_required_all_must_be_green_and_at_least_one_must_exist(
    required: tuple[RequiredCheck, ...], signals: list[Signal], expected: list[str]
) -> None:
    merge_state = replace(
        READY,
        rules=BranchRules(required=required),
        signals=tuple(signals),
        own_contexts=frozenset({"ci/skip"}),
    )
    reasons = why(merge_state)
    assert len(reasons) == len(expected), reasons
    assert all(text.startswith(start) for text, start in zip(reasons, expected, strict=True)), reasons


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ([green(CPU)], ["`gpu/pr-head` hasn't started"]),
        ([green(CPU), green("gpu/pr-head", ours=True)], ["`gpu/pr-head` hasn't started"]),
        ([green(CPU), green("gpu/pr-head")], []),
        ([green(CPU), green("gpu/pr-head"), Signal("new/pr-head", RED)], ["`new/pr-head` failed"]),
    ],
)
def test_a_pattern_needs_all_names_that_it_stands_for(signals: list[Signal], expected: list[str]) -> None:
    seen_before = (Expected("*/pr-head", (CPU, "gpu/pr-head"), OLD),)
    reasons = why(replace(READY, signals=tuple(signals), expected=seen_before), required=("*/pr-head",))
    assert len(reasons) == len(expected), reasons
    assert all(text.startswith(start) for text, start in zip(reasons, expected, strict=True)), reasons


def test_a_failure_is_linked_and_the_rerun_command_is_named_if_it_works() -> None:
    merge_state = replace(READY, signals=(Signal(CPU, RED, url="https://ci.example.org/job/cpu?a=(b)"),))
    linked = "[`cpu/pr-head`](<https://ci.example.org/job/cpu?a=%28b%29>) failed on `aaaaaaa`"
    assert why(merge_state, required=(CPU,)) == [f"{linked}. Restart it with `@ci rerun`."]
    assert [reason.text for reason in merge_blockers(merge_state, Merge(required=(CPU,)))] == [f"{linked}."]
    by_rule = replace(merge_state, rules=BranchRules(required=(RequiredCheck(CPU),)))
    assert why(by_rule) == why(by_rule, required=(CPU,)) == [f"{linked}. Restart it with `@ci rerun`."]


def test_text_from_outside_is_shown_as_code_and_links_nowhere_else() -> None:
    hostile = Signal("x](https://evil.example) @octocat `", RED, url="javascript:alert(1)")
    merge_state = replace(READY, labels=("@octocat",), signals=(hostile,))
    reasons = why(merge_state, required=("*",), hold_labels=("@octocat",))
    assert reasons == [
        "It has the label `@octocat`. Remove the label first.",
        "`` x](https://evil.example) @octocat ` `` failed on `aaaaaaa`. I can't restart it: it comes from a CI that "
        "I don't control.",
    ]


def test_a_long_list_is_truncated_and_the_rest_counted() -> None:
    many = tuple(Signal(f"job-{n:02}", RED) for n in range(MOST_LISTED + 3))
    blockers = merge_blockers(replace(READY, reviews=(), signals=many), Merge(required=("job-*",)))
    lines = listed_blockers(blockers).splitlines()
    assert len(lines) == MOST_LISTED + 2
    assert lines[-2:] == [
        "- And 3 more.",
        "- `aaaaaaa` has no approval by someone with write access other than the author.",
    ]


@pytest.mark.parametrize(
    ("count", "last"), [(MOST_LISTED - 1, "job-08"), (MOST_LISTED, "job-09"), (MOST_LISTED + 1, "And 1 more")]
)
def test_the_rest_is_counted_from_one_more_than_are_listed(count: int, last: str) -> None:
    many = tuple(Signal(f"job-{n:02}", RED) for n in range(count))
    lines = listed_blockers(merge_blockers(replace(READY, signals=many), Merge(required=("job-*",)))).splitlines()
    assert last in lines[-1]
    assert len(lines) == count


@pytest.mark.parametrize(
    ("rules", "ready"),
    [
        (BranchRules(methods=("rebase",)), False),
        (BranchRules(methods=("rebase",), queue=True), True),
        (BranchRules(methods=("squash",)), True),
        (BranchRules(methods=("squash",), queue=True), True),
        (BranchRules(), True),
    ],
)
def test_a_forbidden_merge_method_blocks_unless_a_queue_chooses_its_own(rules: BranchRules, ready: bool) -> None:
    assert (kinds(replace(READY, rules=rules), method="squash") == []) is ready


@pytest.mark.parametrize(("needed", "ready"), [(0, True), (1, True), (2, True), (3, False)])
def test_as_many_approvals_as_the_rules_require_are_enough(needed: int, ready: bool) -> None:
    merge_state = replace(READY, reviews=(review(), review(MONA)), rules=BranchRules(approvals=needed))
    blockers = merge_blockers(merge_state, Merge())
    assert [reason.kind for reason in blockers] == ([] if ready else [BlockerKind.APPROVAL])


def test_a_failed_check_that_rerun_cannot_restart_is_reported_as_such() -> None:
    """`@ci merge` used to suggest `@ci rerun` for checks that `@ci rerun` could not restart."""
    merge_state = replace(READY, signals=(Signal(CPU, RED), Signal("cla", RED)))
    assert why(merge_state, required=("*",)) == [
        "`cla` failed on `aaaaaaa`. I can't restart it: it comes from a CI that I don't control.",
        "`cpu/pr-head` failed on `aaaaaaa`. Restart it with `@ci rerun`.",
    ]
