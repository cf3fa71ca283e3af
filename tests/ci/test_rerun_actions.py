"""Which single rerun of a workflow replaces several simultaneous ones."""

from __future__ import annotations

import pytest

from bot.ci.rerun_actions import RerunJob, RerunWorkflow, merge_reruns_by_run
from bot.ci.restarts import PullOrigin
from bot.effects.remember import StoreRecord
from bot.plan.effect import Effect

ORIGIN = PullOrigin(12, 1, "main", 1, "fast")
WHOLE, FAILED = RerunWorkflow(7, 1, False, "CI", ORIGIN), RerunWorkflow(7, 1, True, "CI", ORIGIN)
UNIT, DOCS = RerunJob(70, 7, 1, "unit", ORIGIN, failed=True), RerunJob(71, 7, 1, "docs", ORIGIN, failed=True)
LINT = RerunJob(72, 7, 1, "lint", ORIGIN)


@pytest.mark.parametrize(
    ("reruns", "chosen"),
    [
        ([UNIT], UNIT),
        ([UNIT, UNIT], UNIT),
        ([UNIT, DOCS], RerunWorkflow(7, 1, True, "unit, docs", ORIGIN)),
        ([UNIT, LINT], RerunWorkflow(7, 1, False, "unit, lint", ORIGIN)),
        ([FAILED, UNIT], FAILED),
        ([LINT, FAILED], WHOLE),
        ([FAILED, WHOLE], WHOLE),
        ([WHOLE, FAILED], WHOLE),
        ([FAILED, FAILED], FAILED),
    ],
)
def test_the_smallest_rerun_that_covers_all_is_chosen(reruns: list[Effect], chosen: Effect) -> None:
    merged, replacing_keys = merge_reruns_by_run(reruns)
    assert merged == [chosen]
    assert {replacing_keys[effect.effect_key] for effect in reruns} == {chosen.effect_key}


def test_other_effects_and_other_runs_keep_their_places() -> None:
    record, other_run = StoreRecord("key", None), RerunWorkflow(8, 1, True, "Docs", ORIGIN)
    merged, replacing_keys = merge_reruns_by_run([record, UNIT, other_run, DOCS])
    assert merged == [record, RerunWorkflow(7, 1, True, "unit, docs", ORIGIN), other_run]
    assert replacing_keys == {
        "actions-job:70": "actions-run:7",
        "actions-job:71": "actions-run:7",
        "actions-run:8": "actions-run:8",
    }
