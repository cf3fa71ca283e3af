"""Webhooks in any order: GitHub promises none, and redeliveries come last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from sandbox import PullRequest, Repository, SentDelivery
from tests.robustness.place import BOT, Place, failures, open_place, tracebacks

REPORTED = {"pull_request", "issue_comment"}
STATUS = "ci/slow-tests"


@dataclass(frozen=True)
class Story:
    """What people do, one thing after another."""

    steps: tuple[Callable[[PullRequest], object], ...]
    body: str = ""

    def happen(self, repositories: Iterable[Repository], place: Place) -> None:
        """Let the story happen in every repository, with two seconds between its steps."""
        pulls = [repository.open_pull_request("hubot", "Faster", self.body) for repository in repositories]
        for step in self.steps:
            place.github.clock.advance(seconds=2)
            for pull in pulls:
                step(pull)


SWITCHED_ON = Story(
    (
        lambda pull: pull.comment("hubot", "@ci run slow tests"),
        lambda pull: pull.push(),
        lambda pull: pull.edit("hubot", body="cc @triager and @reader"),
    ),
    body="cc @triager",
)
SWITCHED_ON_AND_OFF = Story(
    (
        lambda pull: pull.comment("hubot", "@ci run slow tests"),
        lambda pull: pull.push(),
        lambda pull: pull.comment("triager", "@ci skip slow tests"),
    )
)


async def end_of(story: Story, folder: Path, url: str) -> dict[tuple[int, ...], dict[str, Any]]:
    """Send the bot a story in every order, each in its own repository; return what people see in the end."""
    orders = list(permutations(range(len(story.steps) + 1)))
    async with open_place(folder, url) as place:
        repositories = [place.add_repository(f"example-lab-{n}") for n in range(len(orders))]
        place.configure([repository.full_name for repository in repositories])
        await place.start()
        place.github.webhooks.hold()
        story.happen(repositories, place)

        def reordered(held: list[SentDelivery]) -> Iterable[SentDelivery]:
            for repository, order in zip(repositories, orders, strict=True):
                deliveries = [d for d in held if d.repository_id == repository.id and d.event in REPORTED]
                assert len(deliveries) == len(order)
                yield from (deliveries[n] for n in order)

        place.github.webhooks.release(reordered)
        assert failures(await place.quiet()) == []
        assert tracebacks(place.bot) == []
        return {order: seen(repository) for repository, order in zip(repositories, orders, strict=True)}


def seen(repository: Repository) -> dict[str, Any]:
    """Return what people see on a pull request in the end."""
    (pull,) = repository.pulls
    status = repository.status(pull.head_sha, STATUS)
    return {
        "status": status and status.description,
        "reviewers": sorted(user.login for user in pull.requested_reviewers),
        "reactions": [pull.reactions(comment, by=BOT) for comment in pull.comments if comment.user.login != BOT],
        "answers": len(pull.comments_by(BOT)),
    }


async def test_in_any_order_slow_tests_are_on_for_the_last_push_and_all_reviewers_are_requested(
    tmp_path: Path, sqlite_url: str
) -> None:
    ends = await end_of(SWITCHED_ON, tmp_path, sqlite_url)
    expected = {
        "status": "On: requested by hubot. To turn off, comment: @ci skip slow tests",
        "reviewers": ["reader", "triager"],
        "reactions": [["eyes", "+1"]],
        "answers": 0,
    }
    assert {order: end for order, end in ends.items() if end != expected} == {}


async def test_the_newest_command_wins_whatever_the_order_of_arrival(tmp_path: Path, sqlite_url: str) -> None:
    ends = await end_of(SWITCHED_ON_AND_OFF, tmp_path, sqlite_url)
    expected = {
        "status": "Off: turned off by triager. To turn on, comment: @ci run slow tests",
        "reviewers": [],
        "reactions": [["eyes", "+1"], ["eyes", "+1"]],
    }
    # Only a command that arrives after a newer one is answered: the bot says that the newer one counts.
    expected_ends = {order: {**expected, "answers": int(order.index(3) < order.index(1))} for order in ends}
    assert {order: end for order, end in ends.items() if end != expected_ends[order]} == {}
