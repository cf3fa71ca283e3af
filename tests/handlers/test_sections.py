"""Sections of the sticky comment about a commit: when each is written, and how a push marks them."""

from __future__ import annotations

import json

import pytest

from bot.app.features import CODEC, SECTIONS
from bot.core.errors import TryAgain
from bot.core.events import Delivery, Payload, Repository
from bot.effects.section_handlers import NAME, SHOW_NAME
from bot.effects.section_state import SECTION_TEXT, SectionText
from bot.effects.sections import MarkOutOfDate, ShowSection
from bot.effects.texts import OUT_OF_DATE
from bot.github.text import sticky
from sandbox import PullRequest
from tests.handlers.driver import FULL_NAME, World

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
ONE = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
BOT = "nightjar[bot]"
DOCS, SKIPPED = "docs-link", "skipped-tests"


@pytest.fixture
async def pull(world: World) -> PullRequest:
    pull = world.open()
    await world.happen()
    world.github.requests.clear()
    return pull


def of(pull: PullRequest, text: str, as_of: float = 1.0, section: str = DOCS) -> ShowSection:
    return ShowSection(section, pull.number, pull.head_sha, text, as_of)


async def shown(world: World, effect: ShowSection | MarkOutOfDate) -> bool:
    """Apply an effect; return whether it changed anything."""
    return (await world.apply_alone(effect)).changed


def sections(pull: PullRequest) -> dict[str, str]:
    comments = pull.comments_by(BOT)
    assert len(comments) <= 1
    return sticky.sections_of(comments[0].body) if comments else {}


def requests(world: World) -> list[str]:
    """Return the requests since the previous call."""
    made = [f"{r.method} {r.route}" for r in world.github.requests.of_installation]
    world.github.requests.clear()
    return made


async def test_the_first_section_creates_the_sticky_comment(world: World, pull: PullRequest) -> None:
    assert await shown(world, of(pull, "Built."))
    assert sections(pull) == {DOCS: "Built."}
    assert requests(world) == [f"GET {COMMENTS}", f"POST {COMMENTS}"]


async def test_an_unchanged_section_costs_no_request(world: World, pull: PullRequest) -> None:
    """TVM #12902: the comment's bot used 75 % of an organization's quota."""
    await shown(world, of(pull, "Built."))
    requests(world)
    assert not await shown(world, of(pull, "Built.", as_of=2.0))
    assert not await shown(world, of(pull, "Built.", as_of=0.5))
    assert requests(world) == []


async def test_an_empty_section_costs_no_request_if_there_was_none(world: World, pull: PullRequest) -> None:
    assert not await shown(world, of(pull, ""))
    assert requests(world) == []
    await shown(world, of(pull, "Slow."))
    assert await shown(world, of(pull, "", as_of=2.0))
    assert pull.comments == []
    requests(world)
    assert not await shown(world, of(pull, "", as_of=3.0))
    assert requests(world) == []


async def test_a_late_write_replaces_nothing_newer(world: World, pull: PullRequest) -> None:
    await shown(world, of(pull, "Build 4.", as_of=4.0))
    assert not await shown(world, of(pull, "Build 3.", as_of=3.0))
    assert sections(pull) == {DOCS: "Build 4."}


async def test_nothing_is_written_about_a_commit_that_is_no_longer_the_head(world: World, pull: PullRequest) -> None:
    late = of(pull, "Built.")
    pull.push()
    await world.happen()
    assert not await shown(world, late)
    assert pull.comments == []


async def test_a_section_is_written_even_if_no_payload_named_the_pull_request(world: World) -> None:
    """The bot may have been installed after the last push."""
    pull = world.open()
    world.github.webhooks.held.clear()
    assert await shown(world, of(pull, "Built."))
    assert sections(pull) == {DOCS: "Built."}
    pull.push()
    assert not await shown(world, MarkOutOfDate(pull.number, SECTIONS))


async def test_a_write_missing_in_our_record_is_not_repeated(world: World, pull: PullRequest) -> None:
    """A crash between GitHub's write and our record of it."""
    pull.comment(BOT, sticky.render({DOCS: "Built."}))
    assert await shown(world, of(pull, "Built."))
    assert requests(world) == [f"GET {COMMENTS}"]


async def test_a_failing_section_does_not_stop_the_others(world: World, pull: PullRequest) -> None:
    """TVM #12824: one failing section failed the whole comment."""
    world.github.faults.add("POST", COMMENTS, status=502, times=1)
    with pytest.raises(TryAgain):
        await shown(world, of(pull, "Built."))
    await shown(world, of(pull, "Nothing differs.", section=SKIPPED))
    await shown(world, of(pull, "Built."))
    assert sections(pull) == {SKIPPED: "Nothing differs.", DOCS: "Built."}


async def test_a_name_that_could_not_be_parsed_again_is_refused() -> None:
    """TVM #12802: a section whose key contained `_` was written and never found again."""
    with pytest.raises(ValueError, match="hyphens"):
        sticky.with_section({}, "ci_runtime", "12 min")


async def test_bold_text_at_the_beginning_stays_bold(world: World, pull: PullRequest) -> None:
    """TVM took the asterisks at a section's beginning for those of its list."""
    for number in range(3):
        await shown(world, of(pull, "**Docs:** built."))
        await shown(world, of(pull, f"* {number}", section=SKIPPED, as_of=float(number)))
    assert sections(pull)[DOCS] == "**Docs:** built."


@pytest.mark.no_cover
async def test_the_comment_is_found_behind_a_hundred_others_and_next_to_a_deleted_author(
    world: World, pull: PullRequest
) -> None:
    """TVM read the last hundred comments, and crashed if one of them no longer had an author."""
    for number in range(120):
        pull.comment("reader", f"Comment {number}")
    await shown(world, of(pull, "Built."))
    for number in range(120):
        pull.comment("reader", f"Comment {number}")
    world.github.user("reader").deleted = True
    await shown(world, of(pull, "Built again.", as_of=2.0))
    assert sections(pull) == {DOCS: "Built again."}


# Pushes


async def pushed(world: World, pull: PullRequest) -> None:
    """Push, and apply the effects that are planned for it."""
    requests(world)
    pull.push()
    await world.happen()


async def test_a_push_marks_all_sections_in_one_write(world: World, pull: PullRequest) -> None:
    old = pull.head_sha[:7]
    for section in SECTIONS:
        await shown(world, of(pull, f"Of {section}.", section=section))
    pull.comment(BOT, "something else")
    requests(world)
    pull.push()
    await world.happen()
    new = pull.head_sha[:7]
    comment = pull.comments_by(BOT)[0]
    mark = f"{OUT_OF_DATE}this is for `{old}`; the head is now `{new}`."
    expected = {section: f"{mark}\n\nOf {section}." for section in SECTIONS}
    assert sticky.sections_of(comment.body) == expected
    made = [request for request in requests(world) if "comments" in request]
    assert made == [f"GET {COMMENTS}", f"PATCH {ONE}"]


async def test_a_push_without_a_section_about_a_commit_costs_nothing(world: World, pull: PullRequest) -> None:
    pull.comment(BOT, sticky.render({"cc-reviewers": "Nobody could be asked."}))
    await pushed(world, pull)
    assert [request for request in requests(world) if "comments" in request] == []
    await shown(world, of(pull, ""))
    await pushed(world, pull)
    assert [request for request in requests(world) if "comments" in request] == []


async def test_a_second_push_updates_the_head_in_the_mark(world: World, pull: PullRequest) -> None:
    await shown(world, of(pull, "Built."))
    await pushed(world, pull)
    await pushed(world, pull)
    assert f"the head is now `{pull.head_sha[:7]}`" in sections(pull)[DOCS]
    assert sections(pull)[DOCS].count(OUT_OF_DATE) == 1


async def test_a_section_about_the_new_head_has_no_mark(world: World, pull: PullRequest) -> None:
    for section in (DOCS, SKIPPED):
        await shown(world, of(pull, "Of the first.", section=section))
    await pushed(world, pull)
    await shown(world, of(pull, "Of the second.", as_of=2.0))
    assert sections(pull)[DOCS] == "Of the second."
    assert sections(pull)[SKIPPED].startswith(OUT_OF_DATE)
    await shown(world, of(pull, "Of the first.", as_of=3.0, section=SKIPPED))
    assert sections(pull) == {DOCS: "Of the second.", SKIPPED: "Of the first."}


async def test_a_head_that_moves_back_makes_its_section_current_again(world: World, pull: PullRequest) -> None:
    first = pull.head_sha
    await shown(world, of(pull, "Built."))
    await pushed(world, pull)
    world.github.clock.advance(seconds=5)
    world.repository.move(f"refs/heads/{pull.head_ref}", first, "octocat")
    await world.happen()
    assert pull.head_sha == first
    assert sections(pull) == {DOCS: "Built."}


async def test_clearing_a_section_removes_its_mark(world: World, pull: PullRequest) -> None:
    await shown(world, of(pull, "Slow."))
    await pushed(world, pull)
    assert await shown(world, of(pull, "", as_of=2.0))
    assert pull.comments == []


async def test_a_comment_that_a_maintainer_deleted_is_not_created_again(world: World, pull: PullRequest) -> None:
    await shown(world, of(pull, "Built."))
    pull.delete_comment(pull.comments_by(BOT)[0], by="octocat")
    await pushed(world, pull)
    assert pull.comments == []
    assert not await shown(world, MarkOutOfDate(pull.number, SECTIONS))


async def test_a_late_mark_names_the_current_head(world: World, pull: PullRequest) -> None:
    """A retry may be overtaken: it uses what is known when it is applied."""
    await shown(world, of(pull, "Built."))
    pull.push()
    (section_text,) = [
        delivery
        for delivery in world.github.webhooks.held
        if (delivery.event, delivery.action) == ("pull_request", "synchronize")
    ]
    (late,) = await world.planned(section_text, NAME)
    await world.happen()
    await pushed(world, pull)
    sections_before = sections(pull)
    requests(world)
    await world.apply(section_text, NAME, late)
    assert (sections(pull), requests(world)) == (sections_before, [])
    assert f"the head is now `{pull.head_sha[:7]}`" in sections_before[DOCS]


async def test_a_text_announced_by_another_feature_is_written(world: World, pull: PullRequest) -> None:
    section_text = SectionText(DOCS, pull.number, pull.head_sha, "Built.", 1.0, "asked")
    announced = SECTION_TEXT.announcement(Repository(world.repository.id, FULL_NAME, None), section_text)
    delivery = Delivery(announced.guid, announced.event, Payload(json.loads(announced.body)), 0.0)
    assert (await world.pipeline.handlers_for(delivery)).handlers == (SHOW_NAME,)
    (effect,) = (await world.pipeline.plan(delivery, SHOW_NAME, announced.guid)).effects
    await world.apply_alone(CODEC.decode(effect.effect))
    assert sections(pull) == {DOCS: "Built."}
