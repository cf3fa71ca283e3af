"""A check run with a name on a commit: one write if it must change, none if it is up to date."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from gidgethub import BadRequest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.errors import TryAgain
from bot.effects.checks import CHECK_RUN, PutCheckRun, WrittenCheckRun
from bot.effects.statuses import SetStatus
from bot.github.check_runs import TITLE_LIMIT, Action, Annotation, CheckContent
from bot.github.errors import RateLimited
from bot.github.limits.ledger import Allowance
from sandbox.model.checks import CheckRun
from tests.handlers.driver import World, a_world

NAME = "hardware/example-lab/hexagon-v73"
CREATE = "/repos/{owner}/{repo}/check-runs"
UPDATE = "/repos/{owner}/{repo}/check-runs/{check_run_id}"
SCAN = "GET /repos/{owner}/{repo}/commits/{ref}/check-runs"
ANNOTATIONS = "GET /repos/{owner}/{repo}/check-runs/{check_run_id}/annotations"
FIRST, SECOND, THIRD = (
    Annotation("tests/test_tile.py", line, "New failure", f"test_{line}\nfailed", "text") for line in (1, 2, 3)
)
CONTENT = CheckContent("neutral", "1 new failure", "why", "more", (FIRST,), (Action("Re-check", "Again", "re-check"),))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.github.requests.clear()
        yield world


def check(world: World, content: CheckContent = CONTENT, *, as_of: float = 1.0, again: bool = False) -> PutCheckRun:
    return PutCheckRun(NAME, head(world), "night-2", content, as_of, again)


def head(world: World) -> str:
    return world.repository.refs["refs/heads/main"]


def runs(world: World) -> list[CheckRun]:
    """Return all check runs that ever existed, including superseded ones."""
    return [run for suite in world.repository.suites for run in suite.runs if run.name == NAME]


def asked(world: World) -> dict[str, int]:
    """Return the number of each request to GitHub about checks."""
    return {request: n for request, n in world.github.requests.counts().items() if "/check-runs" in request}


def writes(world: World) -> list[str]:
    return [request for request, n in asked(world).items() for _ in range(n) if request[:3] != "GET"]


async def test_the_first_write_costs_one_check_and_one_request(world: World) -> None:
    applied = await world.apply_alone(check(world))
    (run,) = runs(world)
    assert (run.status, run.conclusion, run.external_id) == ("completed", "neutral", "night-2")
    assert (run.title, run.summary, run.text) == ("1 new failure", "why", "more")
    assert run.annotations == [
        {
            "path": "tests/test_tile.py",
            "start_line": 1,
            "end_line": 1,
            "annotation_level": "warning",
            "title": "New failure",
            "message": "test_1\nfailed",
            "raw_details": "text",
        }
    ]
    assert run.actions == [{"label": "Re-check", "description": "Again", "identifier": "re-check"}]
    assert asked(world) == {SCAN: 1, f"POST {CREATE}": 1}
    assert applied.text == f"{NAME} on {head(world)[:7]}: 1 new failure"


async def test_an_unchanged_check_is_not_written_again(world: World) -> None:
    await world.apply_alone(check(world))
    applied = await world.apply_alone(check(world))
    assert (len(writes(world)), applied.changed) == (1, False)


@pytest.mark.parametrize(
    "changed",
    [
        replace(CONTENT, title="2 fixed"),
        replace(CONTENT, summary="other"),
        replace(CONTENT, text="other"),
        replace(CONTENT, conclusion="success"),
    ],
)
async def test_a_changed_check_is_updated_without_new_annotations(world: World, changed: CheckContent) -> None:
    await world.apply_alone(check(world))
    await world.apply_alone(check(world, changed))
    (run,) = runs(world)
    assert (run.conclusion, run.title, run.summary, run.text) == (
        changed.conclusion,
        changed.title,
        changed.summary,
        changed.text,
    )
    assert len(run.annotations) == 1
    assert writes(world) == [f"POST {CREATE}", f"PATCH {UPDATE}"]


async def test_a_newer_upload_with_the_same_content_is_written_for_its_id(world: World) -> None:
    await world.apply_alone(check(world))
    await world.apply_alone(replace(check(world), external_id="run-2b"))
    assert [run.external_id for run in runs(world)] == ["run-2b"]


async def test_details_link_our_page_once_there_is_one(world: World) -> None:
    await world.apply_alone(check(world))
    linked = replace(check(world), details_url="https://ci.example.org/r/octocat/compiler/pulls/1")
    for _ in range(2):
        await world.apply_alone(linked)
    await world.apply_alone(check(world))
    assert [run.details_url for run in runs(world)] == [linked.details_url]
    assert writes(world) == [f"POST {CREATE}", f"PATCH {UPDATE}"]


async def test_of_extended_annotations_only_the_new_ones_are_sent(world: World) -> None:
    """GitHub appends the annotations of an update to the existing ones."""
    await world.apply_alone(check(world))
    grown = replace(CONTENT, annotations=(SECOND, FIRST, THIRD))
    await world.apply_alone(check(world, grown))
    (run,) = runs(world)
    assert [sent["start_line"] for sent in run.annotations] == [1, 2, 3]
    applied = await world.apply_alone(check(world, grown))
    assert not applied.changed


async def test_outdated_annotations_are_superseded_with_their_run(world: World) -> None:
    await world.apply_alone(check(world, replace(CONTENT, annotations=(FIRST, SECOND))))
    fewer = replace(CONTENT, annotations=(SECOND,))
    await world.apply_alone(check(world, fewer))
    assert [len(run.annotations) for run in runs(world)] == [2, 1]
    (check_run,) = world.repository.check_runs(head(world), NAME)
    assert [sent["start_line"] for sent in check_run.annotations] == [2]
    assert not (await world.apply_alone(check(world, fewer))).changed


async def test_different_annotations_of_the_same_number_are_detected(world: World) -> None:
    await world.apply_alone(check(world))
    await world.apply_alone(check(world, replace(CONTENT, annotations=(SECOND,))))
    assert [run.annotations[0]["start_line"] for run in runs(world)] == [1, 2]


async def test_without_annotations_none_are_read(world: World) -> None:
    bare = replace(CONTENT, annotations=())
    await world.apply_alone(check(world, bare))
    await world.apply_alone(check(world, bare))
    assert ANNOTATIONS not in asked(world)


async def test_a_late_older_plan_changes_nothing(world: World) -> None:
    newer = replace(CONTENT, title="2 fixed")
    await world.apply_alone(check(world, newer, as_of=2.0))
    applied = await world.apply_alone(check(world, as_of=1.5))
    assert [run.title for run in runs(world)] == ["2 fixed"]
    assert (applied.text, applied.changed) == (f"{NAME} already shows a newer result", False)
    await world.apply_alone(check(world, as_of=2.5))
    assert [run.title for run in runs(world)] == ["1 new failure"]


async def test_a_rerun_check_is_written_even_if_it_says_the_same(world: World) -> None:
    """GitHub has reset the suite of a rerun check."""
    await world.apply_alone(check(world))
    pressed = check(world, as_of=2.0, again=True)
    await world.apply_alone(pressed)
    assert len(runs(world)) == 2
    assert not (await world.apply_alone(pressed)).changed
    await world.apply_alone(check(world, as_of=3.0, again=True))
    assert len(runs(world)) == 3


@pytest.mark.parametrize("fault", ["drop", "status"])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("existing_runs", [0, 1])
async def test_a_new_run_whose_answer_was_lost_is_not_created_twice(
    world: World, fault: str, again: bool, existing_runs: int
) -> None:
    if existing_runs:
        content = CONTENT if again else replace(CONTENT, annotations=(THIRD,))
        await world.apply_alone(check(world, content))
    effect = check(world, as_of=2.0, again=again)
    if fault == "drop":
        world.github.faults.add("POST", CREATE, drop="after")
    else:
        world.github.faults.add("POST", CREATE, status=502, when="after")
    with pytest.raises(TryAgain):
        await world.apply_alone(effect)
    await world.apply_alone(effect)
    assert len(runs(world)) == existing_runs + 1


async def test_a_new_run_that_was_not_created_is_created_at_the_next_try(world: World) -> None:
    await world.apply_alone(check(world))
    world.github.faults.add("POST", CREATE, status=502)
    pressed = check(world, as_of=2.0, again=True)
    with pytest.raises(TryAgain):
        await world.apply_alone(pressed)
    await world.apply_alone(pressed)
    assert len(runs(world)) == 2


async def test_an_update_whose_answer_was_lost_appends_its_annotations_once(world: World) -> None:
    await world.apply_alone(check(world))
    grown = check(world, replace(CONTENT, annotations=(FIRST, SECOND)))
    world.github.faults.add("PATCH", UPDATE, drop="after")
    with pytest.raises(TryAgain):
        await world.apply_alone(grown)
    await world.apply_alone(grown)
    (run,) = runs(world)
    assert [sent["start_line"] for sent in run.annotations] == [1, 2]


async def test_a_crash_between_the_write_and_its_record_repeats_nothing(world: World) -> None:
    await world.apply_alone(check(world, as_of=3.0))
    await world.records.put(CHECK_RUN.of(world.repository.id, head(world), NAME), WrittenCheckRun(2.0))
    assert not (await world.apply_alone(check(world, as_of=3.0))).changed
    assert len(writes(world)) == 1
    assert not (await world.apply_alone(check(world, as_of=2.5))).changed


async def test_another_apps_check_with_the_same_name_is_left_alone(world: World) -> None:
    other_app = world.github.create_app()
    other_app.install(world.repository)
    foreign_run = world.repository.add_check_run(other_app, head(world), NAME, conclusion="failure")
    await world.apply_alone(check(world))
    assert foreign_run.conclusion == "failure"
    assert len(runs(world)) == 2


@pytest.mark.parametrize(
    "values",
    [
        {"conclusion": "failure"},
        {"title": "x" * 256},
        {"summary": "é" * 32_768},
        {"text": "x" * 65_536},
        {"annotations": (FIRST,) * 51},
        {"actions": CONTENT.actions * 4},
    ],
)
def test_a_conclusion_that_blocks_merges_or_that_github_refuses_is_impossible(values: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        replace(CONTENT, **values)  # type: ignore[arg-type]


async def test_only_a_proved_failure_may_fail_with_annotations_that_say_where(world: World) -> None:
    fault = Annotation("app.yaml", 3, "key", "wrong", column=7, level="failure")
    await world.apply_alone(check(world, CheckContent("failure", "1 fault", "why", annotations=(fault,), certain=True)))
    (run,) = runs(world)
    assert run.conclusion == "failure"
    (sent,) = run.annotations
    assert (sent["start_column"], sent["end_column"], sent["annotation_level"]) == (7, 7, "failure")
    with pytest.raises(ValueError):
        CheckContent("action_required", "1 fault", "why", certain=True)


async def test_a_run_that_github_does_not_list_yet_is_updated_and_not_created_again(world: World) -> None:
    await world.apply_alone(check(world))
    world.github.lists_lag = 3600
    await world.apply_alone(check(world, replace(CONTENT, title="2 new failures"), as_of=2.0))
    (run,) = runs(world)
    assert run.title == "2 new failures"


async def test_check_runs_of_older_heads_wait_for_those_of_newer_ones(tmp_path: Path) -> None:
    async with a_world(tmp_path, allowance=Allowance(writes_per_minute=10, write_burst=1)) as world:
        for number in range(9):
            await world.apply_alone(replace(check(world), name=f"hardware/example-lab/{number}"))
        waits = {}
        for since in (2.0, 1.0, None):
            with pytest.raises(RateLimited) as limited:
                await world.apply_alone(replace(check(world), head_since=since))
            waits[since] = limited.value.retry_in or 0.0
        assert waits[1.0] > waits[2.0] == waits[None]


async def test_characters_that_github_refuses_in_annotations_are_replaced_there_and_stay_elsewhere(
    world: World,
) -> None:
    bug = "\N{BUG}"
    noted = Annotation("tests/test_tile.py", 1, f"New {bug}", f"test[{bug}]", f"assert {bug!r}")
    content = CheckContent("neutral", f"1 new {bug}", f"why {bug}", f"more {bug}", (noted,))
    await world.apply_alone(check(world, content))
    (run,) = runs(world)
    assert (run.title, run.summary, run.text) == (f"1 new {bug}", f"why {bug}", f"more {bug}")
    [annotation] = run.annotations
    assert (annotation["title"], annotation["message"]) == ("New \\U0001f41b", "test[\\U0001f41b]")
    assert annotation["raw_details"] == "assert '\\U0001f41b'"
    applied = await world.apply_alone(check(world, content, as_of=2.0))
    assert not applied.changed


@given(st.text(max_size=300))
def test_no_text_of_an_annotation_has_a_character_that_github_refuses(text: str) -> None:
    annotation = Annotation(text, 1, text, text, text)
    sent = annotation.path + annotation.title + annotation.message + annotation.details
    assert all(character <= "\uffff" for character in sent)
    assert len(annotation.title) <= TITLE_LIMIT
    assert Annotation(annotation.path, 1, annotation.title, annotation.message, annotation.details) == annotation


@pytest.mark.parametrize("exists", [False, True])
async def test_a_check_run_whose_annotations_github_refuses_is_written_without_them(world: World, exists: bool) -> None:
    if exists:
        await world.apply_alone(check(world, replace(CONTENT, title="pending", annotations=())))
    world.github.faults.add("PATCH" if exists else "POST", UPDATE if exists else CREATE, status=422)
    applied = await world.apply_alone(check(world, as_of=2.0))
    (run,) = runs(world)
    assert (run.title, run.annotations) == ("1 new failure", [])
    assert "without annotations, which GitHub refused: " in applied.text


async def test_a_check_run_that_github_refuses_also_without_annotations_fails(world: World) -> None:
    world.github.faults.add("POST", CREATE, status=422, times=2)
    with pytest.raises(BadRequest):
        await world.apply_alone(check(world))
    assert runs(world) == []


async def test_characters_that_github_refuses_in_a_status_are_replaced(world: World) -> None:
    status = SetStatus(head(world), "ci/skip", "success", f"Skipped: {'a' * 120} \N{BUG}\N{BUG}")
    await world.apply_alone(status)
    shown_status = world.repository.status(head(world), "ci/skip")
    assert shown_status is not None
    assert shown_status.description == f"Skipped: {'a' * 120} \\U0001f41"[:139] + "…"
    assert not (await world.apply_alone(status)).changed
