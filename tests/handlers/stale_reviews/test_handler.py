"""Who is reminded of which pull requests, decided from plain data."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.core.events import Person
from handlers.stale_reviews.config import StaleReviews
from handlers.stale_reviews.effects import Remind
from handlers.stale_reviews.handler import DRAFTS, MOST_NAMES, StalePull, plan_reminders, reminder_text, reviewers
from handlers.stale_reviews.open_pulls import OpenPull

NOW = 1_795_152_000.0
DAY = 86_400.0
AUTHOR = Person(1, "octocat", is_bot=False)
HUBOT, TRIAGER = Person(2, "hubot", is_bot=False), Person(3, "triager", is_bot=False)
BOT = Person(0, "dependabot", is_bot=True)
CONFIG = StaleReviews()


def pull(number: int = 1, **fields: object) -> OpenPull:
    values = {"is_draft": False, "author": AUTHOR, "active_at": 0.0, "requested": (HUBOT,), **fields}
    return OpenPull(number=number, **values)  # type: ignore[arg-type]


def quiet(days: float, number: int = 1, reminded: float | None = None, **fields: object) -> StalePull:
    """Return a pull request without activity for some days, last reminded of some days ago."""
    return StalePull(pull(number, **fields), NOW - days * DAY, 0.0 if reminded is None else NOW - reminded * DAY)


def reminded(pulls: Sequence[StalePull], config: StaleReviews = CONFIG) -> list[int]:
    effects = plan_reminders(pulls, config, NOW, len(pulls)).effects
    return [effect.number for effect in effects if isinstance(effect, Remind)]


@pytest.mark.parametrize(
    ("stale_pull", "pending"),
    [
        (quiet(7), True),
        (quiet(6.99), False),
        (quiet(30, reminded=7), True),
        (quiet(30, reminded=6.99), False),
        (quiet(8, is_draft=True), False),
        (quiet(8, is_locked=True), False),
        (quiet(8, requested=(), reviewed=(TRIAGER,)), True),
        (quiet(8, requested=()), False),
        (quiet(8, requested=(AUTHOR,), reviewed=(AUTHOR,)), False),
        (quiet(8, requested=(BOT,)), False),
        (quiet(8, author=None), True),
        (quiet(8, author=BOT), True),
    ],
    ids=[
        "after the period",
        "not before the period is over",
        "once in a period",
        "not twice in a period",
        "not a draft",
        "not a locked conversation",
        "only an earlier reviewer",
        "TVM's empty list of names",
        "the author is no reviewer",
        "a bot is no reviewer",
        "a deleted author",
        "a pull request by a bot",
    ],
)
def test_which_pull_requests_need_a_reminder(stale_pull: StalePull, pending: bool) -> None:
    assert reminded([stale_pull]) == ([1] if pending else [])


def test_the_longest_waiting_come_first_up_to_the_limit() -> None:
    pulls = [quiet(days, number) for number, days in ((1, 9), (2, 30), (3, 8), (4, 30), (5, 400))]
    assert reminded(pulls, StaleReviews(limit=3)) == [5, 2, 4]


def test_pull_requests_that_need_no_reminder_displace_no_others() -> None:
    """TVM #10807: only pull requests that had already got their reminder were ever scanned."""
    reminded_before = [quiet(90, number, reminded=1) for number in range(1, 50)]
    nobody = [quiet(80, number, requested=()) for number in range(50, 90)]
    assert reminded([*reminded_before, *nobody, quiet(8, 100)]) == [100]


@pytest.mark.parametrize(
    ("open_pull", "names"),
    [
        (pull(requested=(HUBOT, TRIAGER)), ("@hubot", "@triager")),
        (pull(requested=(HUBOT,), reviewed=(TRIAGER, HUBOT)), ("@hubot", "@triager")),
        (pull(requested=(HUBOT,), reviewed=(Person(2, "HuBot", is_bot=False),)), ("@HuBot",)),
        (pull(requested=(Person(1, "OctoCat", is_bot=False), TRIAGER)), ("@triager",)),
        (pull(author=None, requested=(AUTHOR,)), ("@octocat",)),
        (pull(requested=(HUBOT,), teams=("example-lab/gpu",)), ("@hubot",)),
        (pull(requested=(), teams=("example-lab/gpu", "example-lab/gpu")), ("@example-lab/gpu",)),
        (pull(requested=(AUTHOR, BOT), teams=("example-lab/gpu",)), ("@example-lab/gpu",)),
        (pull(requested=(Person(9, "x](https://ci.example.org)", is_bot=False),)), ()),
        (
            pull(requested=tuple(Person(n, f"person-{n}", is_bot=False) for n in range(10, 40))),
            tuple(f"@person-{n}" for n in range(10, 10 + MOST_NAMES)),
        ),
    ],
    ids=[
        "all requested people",
        "nobody twice",
        "people are compared by ID",
        "the author in other letter case, which TVM reminded",
        "a deleted author is nobody",
        "no team if there are people",
        "a team if there are no people",
        "a team instead of a bot",
        "no invalid login",
        "a limited number",
    ],
)
def test_who_is_reminded(open_pull: OpenPull, names: tuple[str, ...]) -> None:
    assert reviewers(open_pull) == names


@pytest.mark.parametrize(
    ("stale_pull", "message"),
    [
        (quiet(8), "for 8 days. @hubot: please review this"),
        (quiet(1.5), "for 36 hours. @hubot: "),
        (quiet(1 / 24), "for 60 minutes. @hubot: "),
        (quiet(8, reviewed=(TRIAGER,)), "for 8 days. @hubot and @triager: "),
        (
            quiet(8, requested=tuple(Person(n, f"p{n}", is_bot=False) for n in (7, 8, 9))),
            "for 8 days. @p7, @p8 and @p9: ",
        ),
    ],
)
def test_the_text_of_a_reminder(stale_pull: StalePull, message: str) -> None:
    text = reminder_text(stale_pull, NOW)
    assert text.startswith("There has been no activity for ")
    assert message in text
    assert f"@octocat: if you are still working on it, please [convert it to a draft]({DRAFTS});" in text


@pytest.mark.parametrize("author", [None, BOT], ids=["deleted", "bot"])
def test_an_author_who_is_no_person_is_not_mentioned(author: Person | None) -> None:
    text = reminder_text(quiet(8, author=author), NOW)
    assert text.endswith("@hubot: please review this, or say what is missing.")


def test_a_reminder_looks_back_for_others_over_just_one_period() -> None:
    (effect,) = plan_reminders([quiet(8)], CONFIG, NOW, 1).effects
    assert isinstance(effect, Remind)
    assert effect.since == "2026-11-13T05:20:00Z"


def test_the_plan_counts_all_stale_pull_requests_although_it_reminds_of_a_few() -> None:
    pulls = [quiet(8, number) for number in range(1, 8)]
    assert (
        plan_reminders(pulls, CONFIG, NOW, 20).why == "7 of 20 open pull requests are stale; reminding on 5 of them now"
    )
    assert plan_reminders([], CONFIG, NOW, 20).why == "nobody needs a reminder; open pull requests: 20"
