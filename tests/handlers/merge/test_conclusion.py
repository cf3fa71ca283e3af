"""What follows from the outcome of a merge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.events import Person
from bot.effects.comments import Reply
from bot.engine.processor import EffectState
from bot.plan.effect import Effect
from bot.plan.outcome import EffectOutcome
from handlers.merge.conclusion import decide_after_command, decide_after_wait
from handlers.merge.effects import MergeEnd, MergePull, MergeResult
from handlers.merge.pending_effects import EndPendingMerge, StorePendingMerge
from handlers.merge.records import PendingMerge

NUMBER, ASKED = 7, "2026-11-20T05:00:00Z"
PENDING = PendingMerge("a" * 40, "main", Person(2, "hubot", False), "https://github.example/c/1", ASKED)
MERGE = MergePull(NUMBER, PENDING)
REPLY = (
    "GitHub doesn't merge `aaaaaaa` yet: `2 approvals are required`. I'll try again after each review or check. A new "
    "push cancels this."
)
WAITS = MergeResult(MergeEnd.WAITS, "2 approvals are required")


@pytest.mark.parametrize(
    ("merge", "result", "effects"),
    [
        (MERGE, MergeResult(MergeEnd.MERGED), [StorePendingMerge(NUMBER, said_at=ASKED)]),
        (MERGE, MergeResult(MergeEnd.QUEUED), [StorePendingMerge(NUMBER, replace(PENDING, queued=True))]),
        (
            MERGE,
            WAITS,
            [Reply(NUMBER, REPLY, since=ASKED), StorePendingMerge(NUMBER, replace(PENDING, refused=True))],
        ),
        (MergePull(NUMBER, replace(PENDING, refused=True)), WAITS, []),
        (MERGE, MergeResult(MergeEnd.CALLED_OFF), []),
        (MERGE, None, []),
    ],
)
def test_a_merge_that_did_not_fail_changes_what_is_pending_and_says_once_that_github_waits(
    merge: MergePull, result: MergeResult | None, effects: list[Effect]
) -> None:
    outcome = EffectOutcome(merge, EffectState.APPLIED, "", result and {"end": result.end, "message": result.message})
    assert list(decide_after_wait(outcome)) == effects
    assert list(decide_after_command([outcome])) == effects


def test_a_failed_merge_ends_with_its_reason_if_it_was_pending_and_the_answer_to_a_command_says_it_otherwise() -> None:
    outcome = EffectOutcome(MERGE, EffectState.REFUSED, "`gpu` failed.", {"end": "merged"})
    text = "I won't merge `aaaaaaa`, which `hubot` [asked for](https://github.example/c/1). `gpu` failed."
    ended = [Reply(NUMBER, text, since=ASKED), EndPendingMerge(NUMBER, PENDING)]
    assert list(decide_after_wait(outcome)) == ended
    assert decide_after_command([outcome]) == ()


def test_outcomes_of_other_effects_have_no_consequence() -> None:
    reply = Reply(NUMBER, "Done.", since=ASKED)
    for state in (EffectState.APPLIED, EffectState.FAILED):
        assert decide_after_wait(EffectOutcome(reply, state, "", {"end": "merged"})) == ()


def test_a_dry_run_assumes_that_the_merge_succeeds() -> None:
    outcome = EffectOutcome(MERGE, EffectState.APPLIED, "", simulated=True)
    assert decide_after_wait(outcome) == (StorePendingMerge(NUMBER, said_at=ASKED),)
