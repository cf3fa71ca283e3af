"""News of several targets that waits, is posted together, and survives interruptions."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.app.features import CODEC
from bot.app.load import parse_config
from bot.core.events import Delivery, Payload, Repository
from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.engine.processor import PlannedEffects
from bot.news.effects import PostMessage
from bot.plan.effect import Effect
from bot.plan.handler import joined
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.store.failures.failures import FailureEnd
from bot.results.store.write.pending_checks import announced, scheduled_checks
from handlers.regressions import nightly_news, target_news
from handlers.regressions.audiences import Audience
from handlers.regressions.effects import StoreReports
from handlers.regressions.groups import is_time_to_post
from handlers.regressions.nightly_news import NIGHTLY_NEWS, NightlyNews, decide_nightly_news
from handlers.regressions.records import REGRESSION_GROUP, REGRESSIONS, WAITING_NEWS, GroupMember, RegressionGroup
from sandbox.model.issues import Issue
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import MATMUL, TILE, Labs, a_lab
from tests.results.reported import ABOUT, AT

ADRENO, HEXAGON = "adreno", "hexagon-v73"
REFUSE_NEWS = """
CREATE TRIGGER tests_refuse BEFORE INSERT ON nightjar_records WHEN NEW.key LIKE 'regression-news:%'
BEGIN SELECT RAISE(ABORT, 'not now'); END
"""


@pytest.fixture
async def labs(tmp_path: Path) -> AsyncIterator[Labs]:
    """Return a lab with two targets in a world where only regressions are reported."""
    keys = {
        "results": {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ADRENO, HEXAGON]}}},
        "regressions": {"to": ["issue", "slack"]},
    }
    config = parse_config(json.dumps({"repositories": {FULL_NAME: keys}}).encode(), "app.yaml")
    router = joined([target_news.router, nightly_news.router])
    async with a_lab(tmp_path) as labs:
        labs.world.configure(config, router)
        yield labs


def repository(labs: Labs) -> Repository:
    return Repository(labs.world.repository.id, FULL_NAME, None)


async def planned(labs: Labs, target: str, sha: str) -> PlannedEffects:
    """Return the plan of evaluating a target at a commit."""
    event = CheckEvent(ABOUT.lab, target, sha, revision=1, over=True)
    delivery = Delivery("check:1", CHECK_EVENT.name, Payload(CHECK_EVENT.body(repository(labs), event)), AT)
    return await labs.world.pipeline.plan(delivery, target_news.NAME, f"check:{target}:{sha}")


async def evaluated(labs: Labs, target: str, sha: str) -> PlannedEffects:
    """Evaluate a target at a commit, and apply the plan."""
    plan = await planned(labs, target, sha)
    await apply(labs, decoded(plan))
    return plan


async def posted(labs: Labs, request_id: str = "1") -> list[Effect]:
    """Return the effects that post the waiting news."""
    body = NIGHTLY_NEWS.body(repository(labs), NightlyNews(AT + 1800, request_id))
    delivery = Delivery(f"nightly-news:{request_id}", NIGHTLY_NEWS.name, Payload(body), AT)
    return decoded(await labs.world.pipeline.plan(delivery, nightly_news.NAME, request_id))


def decoded(plan: PlannedEffects) -> list[Effect]:
    return [CODEC.decode(planned_effect.effect) for planned_effect in plan.effects]


async def apply(labs: Labs, effects: Sequence[Effect]) -> dict[str, str]:
    """Apply effects, and return the titles of messages by their keys: each key is posted once."""
    for effect in effects:
        await labs.world.apply_alone(effect)
    return {effect.key: effect.news.title for effect in effects if isinstance(effect, PostMessage)}


def uploaded(labs: Labs, failed: dict[str, Sequence[str]], sha: str = "") -> str:
    """Let both targets test a commit."""
    sha = sha or labs.commit()
    for target, tests in failed.items():
        labs.upload(sha, *tests, target=target)
    for pending in labs.store.read(scheduled_checks, FULL_NAME, 1e12, 0.0, 1e11):
        labs.store.write(announced, pending)
    return sha


async def nightly_run(labs: Labs, failed: dict[str, Sequence[str]], sha: str = "") -> str:
    """Let both targets test a commit, and evaluate them."""
    sha = uploaded(labs, failed, sha)
    for target in failed:
        await evaluated(labs, target, sha)
    return sha


async def failing_twice(labs: Labs, adreno: Sequence[str], hexagon: Sequence[str]) -> None:
    """Let these tests fail in two nightly runs after a good one."""
    await nightly_run(labs, {ADRENO: (), HEXAGON: ()})
    for _ in range(2):
        await nightly_run(labs, {ADRENO: adreno, HEXAGON: hexagon})


async def is_posted_now(labs: Labs) -> bool:
    """Return whether the timer would post waiting news now."""
    records, repository_id = labs.world.records, labs.world.repository.id
    news = await records.under(WAITING_NEWS, repository_id)
    runs = await records.under(REGRESSIONS, repository_id)
    return is_time_to_post(news.values(), (), runs, AT + 1, 1800.0)


async def waiting(labs: Labs) -> int:
    return len(await labs.world.records.under(WAITING_NEWS, labs.world.repository.id))


def issues(labs: Labs) -> list[tuple[str, str]]:
    return [(issue.title, issue.state) for issue in labs.world.repository.issues.values()]


def listed(issue: Issue) -> set[tuple[str, int, str]]:
    """Return the targets that an issue lists: how many tests failed, and the commit at which they recovered."""
    pattern = rf"- `{ABOUT.lab}/(\S+)`: (\d+) tests?, since `\w{{7}}`(?:; recovered at `(\w{{7}})`)?"
    matches = [re.fullmatch(pattern, line) for line in (issue.body or "").splitlines() if f"`{ABOUT.lab}/" in line]
    shas = {"": "", **{sha[:7]: sha for sha in issue.repository.git.commits}}
    return {(match[1], int(match[2]), shas[match[3] or ""]) for match in matches if match}


async def test_waiting_news_is_stored_with_the_reports_before_anything_is_posted(labs: Labs) -> None:
    await nightly_run(labs, {ADRENO: (), HEXAGON: ()})
    await nightly_run(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    sha = uploaded(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    plan = await evaluated(labs, ADRENO, sha)
    (reports,) = decoded(plan)
    assert isinstance(reports, StoreReports)
    assert [record.key.partition(":")[0] for record in reports.then] == ["regression-news", "regressions"]
    news = f"1 test began to fail on example-lab/{ADRENO} at nightly commit {sha[:7]}"
    assert plan.why == f"{news}; waiting for the results of other targets"
    assert (issues(labs), await waiting(labs)) == ([], 1)


async def test_news_of_one_target_waits_while_effects_of_another_are_half_applied(labs: Labs) -> None:
    """The timer may run at that moment: while a killed bot restarts, or while the database is busy."""
    await nightly_run(labs, {ADRENO: (), HEXAGON: ()})
    await nightly_run(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    sha = uploaded(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    await evaluated(labs, ADRENO, sha)
    effects = decoded(await planned(labs, HEXAGON, sha))
    for effect in effects:
        assert not await is_posted_now(labs)
        await labs.world.apply_alone(effect)
    assert (await is_posted_now(labs), await waiting(labs)) == (True, 2)


async def test_the_timer_waits_for_news_that_the_database_refuses_for_now(labs: Labs, tmp_path: Path) -> None:
    """A failed effect is tried again after those that follow it."""
    await nightly_run(labs, {ADRENO: (), HEXAGON: ()})
    await nightly_run(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    sha = uploaded(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    await evaluated(labs, ADRENO, sha)
    effects = decoded(await planned(labs, HEXAGON, sha))
    with closing(sqlite3.connect(tmp_path / "nightjar.db", isolation_level=None)) as database:
        database.execute(REFUSE_NEWS)
        failed = []
        for effect in effects:
            try:
                await labs.world.apply_alone(effect)
            except Exception:
                failed.append(effect)
        database.execute("DROP TRIGGER tests_refuse")
    assert len(failed) == 1
    assert not await is_posted_now(labs)
    await apply(labs, failed)
    assert (await is_posted_now(labs), await waiting(labs)) == (True, 2)


async def test_a_recovery_before_the_group_is_stored_closes_the_issue_that_was_just_opened(labs: Labs) -> None:
    await failing_twice(labs, [TILE], [TILE])
    effects = await posted(labs)
    (group_record,) = (
        index
        for index, effect in enumerate(effects)
        if isinstance(effect, StoreRecord) and effect.key.startswith("regression-group")
    )
    await apply(labs, effects[:group_record])
    await nightly_run(labs, {ADRENO: [], HEXAGON: []})
    await apply(labs, effects[group_record:])
    assert [state for _, state in issues(labs)] == ["open"]
    await apply(labs, await posted(labs, "2"))
    assert [state for _, state in issues(labs)] == ["closed"]
    assert await labs.world.records.under(REGRESSION_GROUP, labs.world.repository.id) == {}


async def test_tests_that_recover_while_their_news_waits_get_both_messages_in_order_and_no_issue(labs: Labs) -> None:
    await failing_twice(labs, [TILE], [TILE])
    sha = await nightly_run(labs, {ADRENO: [], HEXAGON: []})
    assert await waiting(labs) == 4
    messages = await apply(labs, await posted(labs))
    began, *ended = messages.values()
    assert began.startswith("1 test failing on 2 targets since ")
    assert sorted(ended) == [
        f"1 test recovered on example-lab/{target} at nightly commit {sha[:7]}" for target in (ADRENO, HEXAGON)
    ]
    assert issues(labs) == []
    assert await labs.world.records.under(REGRESSION_GROUP, labs.world.repository.id) == {}


@pytest.mark.no_cover
@pytest.mark.parametrize("applied", range(8))
async def test_a_kill_after_any_effect_loses_and_repeats_nothing(labs: Labs, applied: int) -> None:
    await failing_twice(labs, [TILE], [TILE])
    assert await waiting(labs) == 2
    effects = await posted(labs)
    assert len(effects) == 7
    messages = await apply(labs, effects[:applied])
    if applied <= 5:
        # As long as everything waits, the same plan is made again.
        messages |= await apply(labs, await posted(labs, "2"))
    messages |= await apply(labs, effects)
    assert [state for _, state in issues(labs)] == ["open"]
    (title,) = messages.values()
    assert title.startswith("1 test failing on 2 targets since ")
    assert await waiting(labs) == 0
    assert await posted(labs, "3") == []


async def test_other_failures_of_a_target_get_their_own_message_and_issue(labs: Labs) -> None:
    await failing_twice(labs, [TILE], [TILE])
    await apply(labs, await posted(labs))
    for _ in range(2):
        sha = await nightly_run(labs, {ADRENO: [TILE, MATMUL], HEXAGON: [TILE]})
    messages = await apply(labs, await posted(labs, "2"))
    assert [*messages.values()] == [f"1 test began to fail on example-lab/{ADRENO} at nightly commit {sha[:7]}"]
    group_issue, own_issue = labs.world.repository.issues.values()
    assert own_issue.title == f"Regressions on example-lab/{ADRENO}"
    assert (MATMUL in (own_issue.body or ""), TILE in (own_issue.body or "")) == (True, False)
    assert (MATMUL in (group_issue.body or ""), TILE in (group_issue.body or "")) == (False, True)


@pytest.mark.no_cover
async def test_the_issue_closes_when_no_target_fails_and_a_test_that_fails_again_is_news_of_its_target(
    labs: Labs,
) -> None:
    await failing_twice(labs, [TILE], [TILE])
    await apply(labs, await posted(labs))
    await nightly_run(labs, {ADRENO: [], HEXAGON: [TILE]})
    await apply(labs, await posted(labs, "2"))
    (issue,) = labs.world.repository.issues.values()
    assert issue.state == "open"
    for _ in range(2):
        await nightly_run(labs, {ADRENO: [TILE], HEXAGON: [TILE]})
    await apply(labs, await posted(labs, "3"))
    assert [title for title, _ in issues(labs)][1:] == [f"Regressions on example-lab/{ADRENO}"]
    await nightly_run(labs, {ADRENO: [], HEXAGON: []})
    await apply(labs, await posted(labs, "4"))
    assert {state for _, state in issues(labs)} == {"closed"}
    assert await labs.world.records.under(REGRESSION_GROUP, labs.world.repository.id) == {}


async def test_the_issue_says_when_each_target_recovered(labs: Labs) -> None:
    await failing_twice(labs, [TILE, MATMUL], [TILE])
    await apply(labs, await posted(labs))
    (issue,) = labs.world.repository.issues.values()
    first = await nightly_run(labs, {ADRENO: [MATMUL], HEXAGON: [TILE]})
    await apply(labs, await posted(labs, "2"))
    assert listed(issue) == {(HEXAGON, 1, ""), (ADRENO, 1, ""), (ADRENO, 1, first)}
    second = await nightly_run(labs, {ADRENO: [], HEXAGON: [TILE]})
    await apply(labs, await posted(labs, "3"))
    assert listed(issue) == {(HEXAGON, 1, ""), (ADRENO, 1, first), (ADRENO, 1, second)}
    third = await nightly_run(labs, {ADRENO: [], HEXAGON: []})
    await apply(labs, await posted(labs, "4"))
    assert listed(issue) == {(HEXAGON, 1, third), (ADRENO, 1, first), (ADRENO, 1, second)}
    assert (issue.state, issue.comments) == ("closed", [])
    assert all(f"`{test}`" in (issue.body or "") for test in (TILE, MATMUL))


async def test_a_recovery_whose_news_is_not_stored_yet_is_in_the_issue_once(labs: Labs) -> None:
    """News of another target may be posted in between and close the issue: while a killed bot restarts."""
    await failing_twice(labs, [TILE], [TILE])
    await apply(labs, await posted(labs))
    sha = uploaded(labs, {ADRENO: [], HEXAGON: []})
    reports, *messages = decoded(await planned(labs, ADRENO, sha))
    assert isinstance(reports, StoreReports)
    await apply(labs, [replace(reports, then=())])
    await evaluated(labs, HEXAGON, sha)
    await apply(labs, await posted(labs, "2"))
    await apply(labs, [reports, *messages])
    await apply(labs, await posted(labs, "3"))
    (issue,) = labs.world.repository.issues.values()
    assert (issue.state, listed(issue)) == ("closed", {(ADRENO, 1, sha), (HEXAGON, 1, sha)})


@pytest.mark.parametrize(
    ("tests", "good", "has_comment"),
    [(("x",), 1, False), (("x",), 2, True), (("x", "y"), 1, True)],
    ids=["the same", "a smaller range", "more tests"],
)
def test_a_target_that_joins_causes_a_comment_only_if_it_adds_something(
    tests: tuple[str, ...], good: int, has_comment: bool
) -> None:
    first, second = (GroupMember("lab", name, "operators", "c" * 40, 3.0, "a" * 40, 1.0, ("x",)) for name in "ab")
    joining = GroupMember("lab", "c", "operators", "c" * 40, 3.0, f"{good}" * 40, float(good), tests)
    if good == 1:
        joining = replace(joining, good="a" * 40)
    group = RegressionGroup.of([first, second], "", AT)
    lasts = {(joining.full_name, failure): FailureEnd("", "") for failure in joining.failures}
    audiences = [Audience(("issue", "slack"))]
    plan = decide_nightly_news(5, audiences, AT + 60, {}, [group], {group.name: [joining]}, [], lasts)
    issue, message, stored = plan.effects
    assert isinstance(issue, EnsureIssue)
    assert isinstance(message, PostMessage)
    assert isinstance(stored, StoreRecord)
    assert (bool(issue.news), issue.key) == (has_comment, f"regression-group:{group.name}")
    assert message.news.title.startswith("1 more target fails in the same tests")


async def test_a_range_that_contradicts_the_history_is_not_reported(labs: Labs) -> None:
    """The last pass on one target is not an ancestor of the first failure on the other."""
    base = labs.commit()
    for target in (ADRENO, HEXAGON):
        labs.upload(base, target=target)
    await nightly_run(labs, {HEXAGON: ()}, base)
    side = labs.commit(onto=base)
    labs.upload(side, target=ADRENO)
    for _ in range(2):
        sha = labs.commit(onto=side)
        side = sha
        labs.upload(sha, TILE, target=ADRENO)
    await nightly_run(labs, {ADRENO: [TILE]}, sha)
    for _ in range(2):
        await nightly_run(labs, {HEXAGON: [TILE]})
    effects = await posted(labs)
    assert not any(isinstance(effect, EnsureIssue) and effect.key.startswith("regression-group") for effect in effects)
    titles = [effect.news.title for effect in effects if isinstance(effect, PostMessage)]
    assert sorted(title.partition(" at ")[0] for title in titles) == [
        f"1 test began to fail on example-lab/{ADRENO}",
        f"1 test began to fail on example-lab/{HEXAGON}",
    ]
