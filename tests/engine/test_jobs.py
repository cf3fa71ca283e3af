"""The keys that make jobs unique."""

from __future__ import annotations

import pytest

from bot.core.events import Repository
from bot.engine.jobs.definitions import (
    LONGEST_KEY,
    Origin,
    conclusion_jobs,
    delivery_job,
    effect_jobs,
    key_of,
    plan_job,
    replay_job,
)
from bot.engine.processor import PlannedEffect, PlannedEffects

ORIGIN = Origin("guid-1", "rerun", "issue_comment:created:5:2026", 3, 1.5, 0, "pr:1#7")
REPOSITORY = Repository(id=1, full_name="octocat/compiler", installation_id=None)


def effect_keys(origin: Origin) -> list[str]:
    planned = PlannedEffects((PlannedEffect("status", {"kind": "SetStatus"}),), conclusion_basis={})
    return [job.key for job in effect_jobs(origin, 4, REPOSITORY, planned)]


def test_keys_depend_on_the_intent_and_not_on_the_delivery() -> None:
    second_delivery = Origin("guid-2", "rerun", ORIGIN.intent, 9, 2.5, 0, "pr:1#7")
    assert plan_job(ORIGIN).key == plan_job(second_delivery).key == "plan:rerun:issue_comment:created:5:2026"
    assert effect_keys(ORIGIN) == effect_keys(second_delivery)


def test_a_replay_plans_again_but_keeps_the_keys_of_its_effects() -> None:
    replay = Origin("guid-1", "rerun", ORIGIN.intent, 3, 1.5, 2, "pr:1#7")
    assert plan_job(replay).key != plan_job(ORIGIN).key
    assert effect_keys(replay) == effect_keys(ORIGIN)
    keys = {delivery_job("g", "push", 0, "repo:1").key, *(replay_job("g", n, 1, 0, None).key for n in (1, 2))}
    assert len(keys) == 3


def test_reports_of_an_interim_and_of_the_last_failure_have_other_keys_than_each_other_and_than_the_effect() -> None:
    answers = [ORIGIN.answer("It failed.", interim=interim) for interim in (True, False)]
    assert len({plan_job(origin).key for origin in (ORIGIN, *answers)}) == 3
    keys = [key for origin in (ORIGIN, *answers) for key in effect_keys(origin)]
    assert len(set(keys)) == len(keys)


def test_an_origin_is_read_as_it_was_written() -> None:
    for origin in (ORIGIN, ORIGIN.answer("It failed.", interim=True), ORIGIN.answer("It failed.", interim=False)):
        assert Origin.read(origin.args, origin.lock) == origin


def test_fresh_effects_run_before_plans_and_conclusions_after_them() -> None:
    planned = PlannedEffects((PlannedEffect("a", {}),), conclusion_basis={})
    effect, conclude = effect_jobs(ORIGIN, 4, REPOSITORY, planned)
    assert effect.priority > plan_job(ORIGIN).priority > conclude.priority > 0


def test_each_conclusion_has_its_own_effects_and_no_conclusion() -> None:
    planned = PlannedEffects((PlannedEffect("a", {}),))
    first, second = (conclusion_jobs(ORIGIN, 5, number, REPOSITORY, planned)[0].key for number in (1, 2))
    assert len({first, second, *(job.key for job in effect_jobs(ORIGIN, 4, REPOSITORY, planned))}) == 3
    with pytest.raises(ValueError, match="rerun: a conclusion has no conclude stage"):
        conclusion_jobs(ORIGIN, 5, 1, REPOSITORY, PlannedEffects(conclusion_basis={}))


def test_a_very_long_key_is_shortened_and_stays_unique() -> None:
    first, second = key_of("effect", "x" * 5000), key_of("effect", "x" * 4999 + "y")
    assert first != second
    assert len(first) == len(second) <= LONGEST_KEY + 65
    assert key_of("effect", "\ud800" * 600)
