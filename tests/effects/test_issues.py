"""Issues as a channel:

opened once, each message posted once, closed by the bot, and left alone if a person closed one.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from gidgethub import BadRequest

from bot.effects.issues import ISSUE as OPEN_ISSUE
from bot.effects.issues import NEWS_MARKER, NEWS_STATE, EnsureIssue
from bot.github.errors import Vanished
from sandbox.model.issues import Issue
from tests.handlers.driver import World, a_world

BOT = "nightjar[bot]"
TITLE = "main is broken"
ISSUES = "/repos/{owner}/{repo}/issues"
COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


def broken(jobs: str, number: int) -> EnsureIssue:
    """Return the news of a failure, with the body of its issue."""
    return EnsureIssue("alarm:main", TITLE, f"These fail: {jobs}.", news=f"{jobs} fails", news_key=f"alarm:{number}")


def well(number: int) -> EnsureIssue:
    """Return the message that everything has recovered."""
    return EnsureIssue("alarm:main", news="All is well", news_key=f"alarm:{number}")


async def applied_text(world: World, effect: EnsureIssue) -> str:
    """Apply an effect; return its text in the audit record."""
    return (await world.apply_alone(effect)).text


def issues(world: World) -> list[Issue]:
    return [issue for issue in world.repository.issues.values() if issue.user.login == BOT]


def seen(issue: Issue) -> tuple[str, list[str], str]:
    """Return what people see of an issue: its body, its comments, and whether it is open."""
    comments = [shown(comment.body) for comment in issue.comments_by(BOT)]
    return shown(issue.body or ""), comments, issue.state


def shown(markdown: str) -> str:
    return "\n".join(line for line in markdown.splitlines() if not line.startswith("<!--"))


async def test_a_problem_from_beginning_to_end(world: World) -> None:
    assert await applied_text(world, broken("gpu", 1)) == "opened an issue"
    (issue,) = issues(world)
    assert (issue.title, *seen(issue)) == (TITLE, "These fail: gpu.", [], "open")
    assert await applied_text(world, broken("gpu, cpu", 2)) == f"updated the issue #{issue.number}"
    assert seen(issue) == ("These fail: gpu, cpu.", ["gpu, cpu fails"], "open")
    assert await applied_text(world, well(3)) == f"closed the issue #{issue.number}"
    assert seen(issue) == ("These fail: gpu, cpu.", ["gpu, cpu fails", "All is well"], "closed")
    assert await applied_text(world, broken("gpu", 4)) == "opened an issue"
    assert [issue.state for issue in issues(world)] == ["closed", "open"]


async def test_the_recorded_number_closes_the_issue_even_if_lists_omit_apps(world: World) -> None:
    """The filter `creator=` may find nothing by an App: the issue stayed open for ever, and another one was opened."""
    world.github.finds_apps_as_creators = False
    await applied_text(world, broken("gpu", 1))
    (issue,) = issues(world)
    assert await applied_text(world, broken("gpu, cpu", 2)) == f"updated the issue #{issue.number}"
    world.github.faults.add("PATCH", ISSUE, status=403, message="No")
    with pytest.raises(BadRequest):
        await applied_text(world, well(3))
    assert issue.state == "open"
    assert await applied_text(world, well(3)) == f"closed the issue #{issue.number}"
    assert [opened.state for opened in issues(world)] == ["closed"]


async def test_an_issue_whose_number_was_not_recorded_is_found_among_the_newest(world: World) -> None:
    world.github.finds_apps_as_creators = False
    await applied_text(world, broken("gpu", 1))
    await world.records.remove(OPEN_ISSUE.of(world.repository.id, "alarm:main"))
    await applied_text(world, broken("gpu, cpu", 2))
    assert [seen(opened)[0] for opened in issues(world)] == ["These fail: gpu, cpu."]


async def test_an_issue_that_github_temporarily_does_not_list_is_not_opened_twice(world: World) -> None:
    world.github.finds_apps_as_creators = False
    for number in (1, 2):
        await world.apply_alone(broken(f"gpu {number}", number))
    world.github.faults.add("GET", ISSUE, status=404, message="Not Found")
    with pytest.raises(Vanished):
        await world.apply_alone(broken("cpu", 3))
    await world.apply_alone(broken("cpu", 3))
    assert [seen(opened)[1:] for opened in issues(world)] == [(["gpu 2 fails", "cpu fails"], "open")]


async def test_a_deleted_recorded_issue_causes_no_error(world: World) -> None:
    await applied_text(world, broken("gpu", 1))
    (issue,) = issues(world)
    del world.repository.issues[issue.number]
    assert await applied_text(world, well(2)) == "there is no open issue to close"
    assert await applied_text(world, broken("gpu", 3)) == "opened an issue"


async def test_an_old_effect_does_not_repeat_or_revert_a_message(world: World) -> None:
    effects = [broken("gpu", 1), broken("cpu", 2), well(3)]
    for effect in effects:
        await applied_text(world, effect)
    written = len(world.github.requests.writes)
    assert [await applied_text(world, effect) for effect in effects] == ["an issue has already reported this"] * 3
    assert len(world.github.requests.writes) == written


@pytest.mark.parametrize("route", [("POST", ISSUES), ("PATCH", ISSUE), ("POST", COMMENTS)])
async def test_a_lost_answer_repeats_nothing(world: World, route: tuple[str, str]) -> None:
    """The write took effect but was not recorded, so the effect is applied again."""
    for effect in (broken("gpu", 1), broken("gpu, cpu", 2), well(3)):
        world.github.faults.clear()
        fault = world.github.faults.add(*route, status=502, when="after")
        try:
            await applied_text(world, effect)
        except Exception:
            assert fault.hits == 1
            await applied_text(world, effect)
    (issue,) = issues(world)
    assert seen(issue) == ("These fail: gpu, cpu.", ["gpu, cpu fails", "All is well"], "closed")


async def test_the_news_that_opened_an_issue_is_not_posted_as_a_comment_later(world: World) -> None:
    """A process was killed when the issue was opened; another one continues, and the effect is applied again later."""
    await applied_text(world, broken("gpu", 1))
    await applied_text(world, broken("cpu", 2))
    await world.records.remove(NEWS_STATE.of(world.repository.id, "issue", "alarm:1"))
    (issue,) = issues(world)
    assert (issue.body or "").count("<!--") == 2
    await applied_text(
        world, EnsureIssue("alarm:main", TITLE, "These fail: cpu.", news="gpu fails", news_key="alarm:1")
    )
    assert seen(issue) == ("These fail: cpu.", ["cpu fails"], "open")


async def test_a_message_is_not_posted_in_an_issue_that_a_person_closed(world: World) -> None:
    await applied_text(world, broken("gpu", 1))
    (issue,) = issues(world)
    issue.close("octocat")
    left_alone = f"somebody closed the issue #{issue.number}, so the bot left it alone"
    assert await applied_text(world, broken("cpu", 2)) == left_alone
    assert await applied_text(world, well(3)) == "there is no open issue to close"
    assert seen(issue) == ("These fail: gpu.", [], "closed")
    assert await applied_text(world, broken("gpu", 4)) == "opened an issue"
    assert seen(issues(world)[-1]) == ("These fail: gpu.", [], "open")


async def test_a_new_failure_after_a_person_closed_the_issue_gets_a_new_one(world: World) -> None:
    await applied_text(world, broken("gpu", 1))
    (first,) = issues(world)
    first.close("octocat")
    begins = replace(broken("gpu, cpu", 2), begins=True)
    assert await applied_text(world, begins) == "opened an issue"
    await world.records.remove(NEWS_STATE.of(world.repository.id, "issue", "alarm:2"))  # killed before it was recorded
    assert (await applied_text(world, begins)).endswith("is up to date")
    assert await applied_text(world, well(3)) == f"closed the issue #{issues(world)[-1].number}"
    assert [seen(issue) for issue in issues(world)] == [
        ("These fail: gpu.", [], "closed"),
        ("These fail: gpu, cpu.", ["All is well"], "closed"),
    ]


async def test_good_news_without_an_issue_is_not_posted(world: World) -> None:
    assert await applied_text(world, well(1)) == "there is no open issue to close"
    assert issues(world) == []


async def test_issues_and_comments_by_others_are_not_taken_for_ours(world: World) -> None:
    marker = "<!-- nightjar:issue:alarm:main -->"
    foreign_issue = world.repository.open_issue("hubot", "Look", f"{marker}\nmine")
    await applied_text(world, broken("gpu", 1))
    (issue,) = issues(world)
    await applied_text(world, broken("cpu", 2))
    digest = hashlib.sha256(b"alarm:3").hexdigest()[:24]
    issue.comment("hubot", f"{NEWS_MARKER.format(digest=digest)}\nmine")
    await applied_text(world, well(3))
    assert seen(issue)[1:] == (["cpu fails", "All is well"], "closed")
    assert foreign_issue.state == "open"


async def test_each_problem_has_its_own_issue(world: World) -> None:
    for key in ("alarm:main", "alarm:v1->v2 -->"):
        await applied_text(world, EnsureIssue(key, f"{key}: @octocat", "Broken.", news="broken", news_key=key))
    first, second = issues(world)
    assert second.title == "alarm:v1->v2 -->: @\u200boctocat"
    assert seen(second) == ("Broken.", [], "open")
    await applied_text(world, EnsureIssue("alarm:v1->v2 -->", news="well", news_key="well"))
    assert (first.state, second.state) == ("open", "closed")


async def test_an_issue_without_messages_is_opened_and_closed(world: World) -> None:
    assert await applied_text(world, EnsureIssue("nightly:nightly", "Stuck", "Why")) == "opened an issue"
    (issue,) = issues(world)
    assert issue.body == "<!-- nightjar:issue:nightly:nightly -->\nWhy"
    assert (
        await applied_text(world, EnsureIssue("nightly:nightly", "Stuck", "Why"))
        == f"the issue #{issue.number} is up to date"
    )
    assert await applied_text(world, EnsureIssue("nightly:nightly")) == f"closed the issue #{issue.number}"
    assert seen(issue) == ("Why", [], "closed")


async def test_an_issue_may_get_another_body_when_it_is_closed(world: World) -> None:
    await applied_text(world, broken("gpu", 1))
    (issue,) = issues(world)
    marked = (issue.body or "").removesuffix("These fail: gpu.")
    await applied_text(world, replace(well(2), news="", closing="The gpu recovered."))
    assert (issue.body, issue.state) == (f"{marked}The gpu recovered.", "closed")
    assert [request.method for request in world.github.requests.records].count("PATCH") == 1


async def test_a_message_older_than_the_last_one_is_not_posted(world: World) -> None:
    """Reporting a failure failed at first; somebody replays it after a recovery, or after something worse."""
    first_failure, second_failure, recovery = (
        replace(effect, as_of=as_of)
        for effect, as_of in ((broken("gpu", 1), 60.0), (broken("cpu", 2), 120.0), (well(3), 180.0))
    )
    outdated = "the issue of alarm:main already has newer content"
    assert await applied_text(world, recovery) == "there is no open issue to close"
    assert await applied_text(world, first_failure) == outdated
    assert issues(world) == []
    assert await applied_text(world, replace(second_failure, as_of=180.0)) == "opened an issue"
    (issue,) = issues(world)
    assert await applied_text(world, first_failure) == outdated
    assert seen(issue) == ("These fail: cpu.", [], "open")
    assert await applied_text(world, replace(first_failure, as_of=0.0)) == f"updated the issue #{issue.number}"


async def test_news_costs_few_requests(world: World) -> None:
    counts = []
    for effect in (broken("gpu", 1), broken("cpu", 2), well(3), well(3)):
        request_count = len(world.github.requests.records)
        await applied_text(world, effect)
        counts.append(len([r for r in world.github.requests.records[request_count:] if "/issues" in r.path]))
    # Two reads and an opening; read, update, read, comment; read, read, comment, close; nothing.
    assert counts == [3, 4, 4, 0]
