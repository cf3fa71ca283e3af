"""Nobody can make the bot flood a pull request, and nobody can silence it for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import PullRequest
from tests.conversations.town import CONFIG, UNHURRIED, Town, town
from tests.waiting import until

LIMITED = f"commands: {{per_person: 2, per_pull_request: 3}}\n{CONFIG}"
WHO_MAY = "Only the pull request's author and people with triage access can do this."
NOTHING: list[str] = []


def writes(here: Town) -> int:
    """Return how often the bot wrote to GitHub."""
    return sum(request.method in {"POST", "PATCH", "PUT", "DELETE"} for request in here.github.requests.records)


async def test_sixty_comments_of_a_stranger_cost_six_writes_and_delay_nobody(here: Town) -> None:
    """A stranger's 60 comments used to silence the bot for everybody for more than a minute."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    spam = [pull.comment("stranger", "@ci rerun") for _ in range(60)]
    asked = pull.comment("triager", "@ci help")
    await here.quiet()
    assert pull.reactions(asked) == ["eyes", "+1"]
    message, reacted, silent = spam[0], spam[1:5], spam[5:]
    assert pull.reactions(message) == ["eyes", "confused"]
    assert [pull.reactions(comment) for comment in reacted] == [["confused"]] * 4
    assert [pull.reactions(comment) for comment in silent] == [NOTHING] * 55
    first, last = here.answers(pull)
    assert WHO_MAY in first
    assert "Put each command on its own line" in last


async def test_a_stranger_gets_one_answer_per_pull_request_and_another_after_an_hour(here: Town) -> None:
    one, two = here.repo.open_pull_request("hubot", "Faster"), here.repo.open_pull_request("hubot", "Slower")
    await here.quiet()
    for pull in (one, one, two):
        pull.comment("stranger", "@ci rerun")
        await here.quiet()
    assert (len(here.answers(one)), len(here.answers(two))) == (1, 1)
    for _ in range(3):
        late = one.comment("stranger", "@ci rerun")
        await here.quiet()
    assert one.reactions(late) == NOTHING
    here.github.clock.advance(seconds=3_601)
    again = one.comment("stranger", "@ci rerun")
    await here.quiet()
    assert (one.reactions(again), len(here.answers(one))) == (["confused"], 1)


async def test_an_author_without_merge_rights_gets_one_answer(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=f"{CONFIG}    merge: true\n") as here:
        pull = here.repo.open_pull_request("somebody", "Faster", fork=True)
        first = pull.comment("somebody", "@ci merge")
        second = pull.comment("somebody", "@ci merge")
        own = pull.comment("somebody", "@ci help")
        await here.quiet()
        assert [pull.reactions(c) for c in (first, second, own)] == [["eyes", "confused"], ["confused"], ["eyes", "+1"]]
        assert "You need write access for this." in here.answers(pull)[0]


async def test_one_answer_tells_people_that_they_are_over_their_limit(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as here:
        pull = here.repo.open_pull_request("somebody", "Faster", fork=True)
        said = [pull.comment("somebody", "@ci help") for _ in range(5)]
        await here.quiet()
        done, over = ["eyes", "+1"], ["confused"]
        assert [pull.reactions(comment) for comment in said] == [done, done, over, NOTHING, NOTHING]
        assert here.answers(pull)[2].endswith(
            "- 😕 `@ci help`: I did nothing: you reached the limit of 2 commands an hour in this repository. Try "
            "again in an hour."
        )
        assert len(here.answers(pull)) == 3
        here.github.clock.advance(seconds=3_601)
        later = pull.comment("somebody", "@ci help")
        await here.quiet()
        assert pull.reactions(later) == done


async def test_further_comments_of_a_person_over_the_limit_cost_no_request(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as here:
        pull = here.repo.open_pull_request("somebody", "Faster", fork=True)
        for _ in range(3):
            pull.comment("somebody", "@ci help")
        await here.quiet()
        before = len(here.github.requests.of_installation)
        ignored = pull.comment("somebody", "@ci help")
        await here.quiet()
        assert pull.reactions(ignored) == NOTHING
        assert len(here.github.requests.of_installation) == before


async def test_people_with_the_write_role_are_answered_beyond_the_limit_of_a_pull_request(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as here:
        pull = here.repo.open_pull_request("somebody", "Faster", fork=True)
        people = ["somebody", "somebody", "triager", "triager", "triager", "hubot"]
        said = [pull.comment(who, "@ci help") for who in people]
        await here.quiet()
        done, over = ["eyes", "+1"], ["confused"]
        assert [pull.reactions(comment) for comment in said] == [done, done, done, over, NOTHING, done]
        assert (
            "this pull request reached the limit of 3 commands an hour. Try again in an hour, or ask someone with "
            "write access."
        ) in here.answers(pull)[3]


async def test_after_a_burst_of_writes_a_stranger_is_answered_late_and_delays_nobody(tmp_path: Path) -> None:
    """The bot has a second between two writes, and a stranger's answer waits while others write."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db", allowance=replace(UNHURRIED, write_spacing=1.0)) as here:
        pull, other = here.repo.open_pull_request("hubot", "Faster"), here.repo.open_pull_request("hubot", "Slower")
        await here.quiet()
        for _ in range(4):
            other.comment("hubot", "@ci help")
        await here.quiet()
        refused = pull.comment("stranger", "@ci rerun")
        asked = pull.comment("hubot", "@ci help")
        await here.quiet()
        assert pull.reactions(refused) == ["eyes", "confused"]
        assert pull.reactions(asked) == ["eyes", "+1"]
        *_, last = here.answers(pull)
        assert WHO_MAY in last


async def asked_by_strangers(here: Town, pull: PullRequest, count: int) -> None:
    """Let so many people without any role each ask for something."""
    for number in range(count):
        pull.comment(f"stranger-{number}", "@ci rerun")
    await here.github.delivered()


@pytest.mark.parametrize("same", [True, False])
async def test_when_the_hourly_writes_run_low_people_with_the_write_role_come_first(tmp_path: Path, same: bool) -> None:
    """Thirty strangers use up their share of the hour's writes; a maintainer is still answered."""
    short = replace(UNHURRIED, writes_per_hour=20)
    async with town(f"sqlite:///{tmp_path}/nightjar.db", allowance=short) as here:
        pull, other = here.repo.open_pull_request("hubot", "Faster"), here.repo.open_pull_request("hubot", "Slower")
        await here.quiet()
        await asked_by_strangers(here, pull, 30)
        place = pull if same else other
        asked = place.comment("hubot", "@ci help")

        async def answered() -> bool:
            return place.reactions(asked) == ["eyes", "+1"]

        await until(answered)
        assert writes(here) <= 20
