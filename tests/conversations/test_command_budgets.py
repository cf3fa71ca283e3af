"""Nobody can make the bot flood a pull request, and nobody can silence it for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import PullRequest
from tests.conversations.town import CONFIG, UNHURRIED, Town
from tests.conversations.town import town as start_town
from tests.waiting import until

LIMITED = f"commands: {{per_person: 2, per_pull_request: 3}}\n{CONFIG}"
WHO_MAY = "Only the pull request's author and people with triage access can do this."
NOTHING: list[str] = []


def writes(town: Town) -> int:
    """Return how often the bot wrote to GitHub."""
    return sum(request.method in {"POST", "PATCH", "PUT", "DELETE"} for request in town.github.requests.records)


async def test_sixty_comments_of_a_stranger_cost_six_writes_and_delay_nobody(town: Town) -> None:
    """A stranger's 60 comments used to silence the bot for everybody for more than a minute."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    spam = [pull.comment("stranger", "@ci rerun") for _ in range(60)]
    help_comment = pull.comment("triager", "@ci help")
    await town.quiet()
    assert pull.reactions(help_comment) == ["eyes", "+1"]
    message, reacted, silent = spam[0], spam[1:5], spam[5:]
    assert pull.reactions(message) == ["eyes", "confused"]
    assert [pull.reactions(comment) for comment in reacted] == [["confused"]] * 4
    assert [pull.reactions(comment) for comment in silent] == [NOTHING] * 55
    first, last = town.answers(pull)
    assert WHO_MAY in first
    assert "Put each command on its own line" in last


async def test_a_stranger_gets_one_answer_per_pull_request_and_another_after_an_hour(town: Town) -> None:
    first_pull, second_pull = (
        town.repo.open_pull_request("hubot", "Faster"),
        town.repo.open_pull_request("hubot", "Slower"),
    )
    await town.quiet()
    for pull in (first_pull, first_pull, second_pull):
        pull.comment("stranger", "@ci rerun")
        await town.quiet()
    assert (len(town.answers(first_pull)), len(town.answers(second_pull))) == (1, 1)
    for _ in range(3):
        late = first_pull.comment("stranger", "@ci rerun")
        await town.quiet()
    assert first_pull.reactions(late) == NOTHING
    town.github.clock.advance(seconds=3_601)
    comment_after_an_hour = first_pull.comment("stranger", "@ci rerun")
    await town.quiet()
    assert (first_pull.reactions(comment_after_an_hour), len(town.answers(first_pull))) == (["confused"], 1)


async def test_an_author_without_merge_rights_gets_one_answer(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=f"{CONFIG}    merge: true\n") as town:
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        first = pull.comment("somebody", "@ci merge")
        second = pull.comment("somebody", "@ci merge")
        help_comment = pull.comment("somebody", "@ci help")
        await town.quiet()
        assert [pull.reactions(c) for c in (first, second, help_comment)] == [
            ["eyes", "confused"],
            ["confused"],
            ["eyes", "+1"],
        ]
        assert "You need write access for this." in town.answers(pull)[0]


async def test_one_answer_tells_people_that_they_are_over_their_limit(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as town:
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        comments = [pull.comment("somebody", "@ci help") for _ in range(5)]
        await town.quiet()
        done, over_limit = ["eyes", "+1"], ["confused"]
        assert [pull.reactions(comment) for comment in comments] == [done, done, over_limit, NOTHING, NOTHING]
        assert town.answers(pull)[2].endswith(
            "- 😕 `@ci help`: I did nothing: you reached the limit of 2 commands an hour in this repository. Try "
            "again in an hour."
        )
        assert len(town.answers(pull)) == 3
        town.github.clock.advance(seconds=3_601)
        later = pull.comment("somebody", "@ci help")
        await town.quiet()
        assert pull.reactions(later) == done


async def test_further_comments_of_a_person_over_the_limit_cost_no_request(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as town:
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        for _ in range(3):
            pull.comment("somebody", "@ci help")
        await town.quiet()
        request_count = len(town.github.requests.of_installation)
        ignored = pull.comment("somebody", "@ci help")
        await town.quiet()
        assert pull.reactions(ignored) == NOTHING
        assert len(town.github.requests.of_installation) == request_count


async def test_people_with_the_write_role_are_answered_beyond_the_limit_of_a_pull_request(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=LIMITED) as town:
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        people = ["somebody", "somebody", "triager", "triager", "triager", "hubot"]
        comments = [pull.comment(person, "@ci help") for person in people]
        await town.quiet()
        done, over_limit = ["eyes", "+1"], ["confused"]
        assert [pull.reactions(comment) for comment in comments] == [done, done, done, over_limit, NOTHING, done]
        assert (
            "this pull request reached the limit of 3 commands an hour. Try again in an hour, or ask someone with "
            "write access."
        ) in town.answers(pull)[3]


async def test_after_a_burst_of_writes_a_stranger_is_answered_late_and_delays_nobody(tmp_path: Path) -> None:
    """The bot has a second between two writes, and a stranger's answer waits while others write."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", allowance=replace(UNHURRIED, write_spacing=1.0)) as town:
        pull, busy_pull = (
            town.repo.open_pull_request("hubot", "Faster"),
            town.repo.open_pull_request("hubot", "Slower"),
        )
        await town.quiet()
        for _ in range(4):
            busy_pull.comment("hubot", "@ci help")
        await town.quiet()
        refused = pull.comment("stranger", "@ci rerun")
        help_comment = pull.comment("hubot", "@ci help")
        await town.quiet()
        assert pull.reactions(refused) == ["eyes", "confused"]
        assert pull.reactions(help_comment) == ["eyes", "+1"]
        *_, last = town.answers(pull)
        assert WHO_MAY in last


async def ask_as_strangers(town: Town, pull: PullRequest, count: int) -> None:
    """Let so many people without any role each ask for something."""
    for number in range(count):
        pull.comment(f"stranger-{number}", "@ci rerun")
    await town.github.delivered()


@pytest.mark.parametrize("same_pull", [True, False])
async def test_when_the_hourly_writes_run_low_people_with_the_write_role_come_first(
    tmp_path: Path, same_pull: bool
) -> None:
    """Thirty strangers use up their share of the hour's writes; a maintainer is still answered."""
    short = replace(UNHURRIED, writes_per_hour=20)
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", allowance=short) as town:
        pull, other_pull = (
            town.repo.open_pull_request("hubot", "Faster"),
            town.repo.open_pull_request("hubot", "Slower"),
        )
        await town.quiet()
        await ask_as_strangers(town, pull, 30)
        commented_pull = pull if same_pull else other_pull
        help_comment = commented_pull.comment("hubot", "@ci help")

        async def answered() -> bool:
            return commented_pull.reactions(help_comment) == ["eyes", "+1"]

        await until(answered)
        assert writes(town) <= 20
