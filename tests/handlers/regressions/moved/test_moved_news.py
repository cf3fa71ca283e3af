"""Which effects post a group of measurements that moved, and its end, in each place."""

from __future__ import annotations

from dataclasses import replace

from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.news.effects import PostMessage
from handlers.regressions import texts
from handlers.regressions.audiences import Audience
from handlers.regressions.begun import AnnounceBegun
from handlers.regressions.config import Subscription
from handlers.regressions.moved.groups import GroupUpdate
from handlers.regressions.moved.news import MovedPosts
from handlers.regressions.moved.text import MovedText
from handlers.regressions.target_text import MOST_ITEMS
from tests.handlers.regressions.moved.test_moved_groups import change, updated

SUBSCRIBED = Audience(("slack",), (Subscription(to=("slack",), paths=("conv",)),))
POSTS = MovedPosts(7, (Audience(("issue", "discord")), SUBSCRIBED), MovedText((), ()))


def posted(update: GroupUpdate, posts: MovedPosts = POSTS) -> list[str]:
    """Return the places of the posts, and what happens to the issue and the record."""
    kinds = list[str]()
    for effect in posts.of(update):
        if isinstance(effect, PostMessage):
            kinds.append(effect.place)
        elif isinstance(effect, EnsureIssue):
            kinds.append(f"{'update' if effect.body else 'close'} issue{' with a comment' * bool(effect.news)}")
        elif isinstance(effect, StoreRecord):
            kinds.append("store" if effect.stored else "remove")
        elif isinstance(effect, AnnounceBegun):
            kinds.append("search")
    return kinds


def test_places_get_their_part_of_a_group_once_and_its_end() -> None:
    conv, relu = change("adreno", "conv"), change("adreno", "relu")
    (update,) = updated([], [relu])
    assert posted(update) == ["update issue with a comment", "discord", "store"]
    (joined,) = updated([update.group], [relu, conv])
    assert posted(joined) == ["update issue", "slack", "store"]
    (withdrawn,) = updated([joined.group], [])
    assert posted(withdrawn) == ["close issue", "remove"]
    issue = next(effect for effect in POSTS.of(withdrawn) if isinstance(effect, EnsureIssue))
    assert issue.closing == texts.MOVED_WITHDRAWN


def test_a_new_group_is_searched_once_for_its_clearest_series() -> None:
    posts = replace(POSTS, finds_cause=True)
    relu, conv = change("adreno", "relu"), change("adreno", "conv", low=439.0, high=441.0)
    (update,) = updated([], [conv, change("mali", "conv"), relu])
    (searched,) = [effect.begun for effect in posts.of(update) if isinstance(effect, AnnounceBegun)]
    assert (searched.issue, searched.measurement) == (update.group.key, "latency")
    assert [(member.full_name, member.tests) for member in searched.members] == [
        ("example-lab/adreno", ("conv",)),
        ("example-lab/mali", ("conv",)),
    ]
    (joined,) = updated([update.group], [conv, change("mali", "conv"), relu, change("mali", "relu")])
    assert "search" not in posted(joined, posts)


def test_the_end_of_a_group_says_how_each_change_ended() -> None:
    ended, left_out = change("adreno", "conv", ended_in="e" * 40), change("mali", "relu")
    text = MovedText([ended, left_out], [], "https://github.example/octocat/compiler")
    news = text.end_news()
    assert [(item.name, item.text) for item in news.items] == [
        ("conv", "ended at eeeeeee"),
        ("relu", texts.MOVED_LEFT_OUT),
    ]
    assert (news.more, news.good) == (0, True)
    many = MovedText([change("adreno", f"conv{number}") for number in range(MOST_ITEMS + 2)], []).end_news()
    assert (len(many.items), many.more) == (MOST_ITEMS, 2)
    assert news.title == (
        "latency of 2 tests no longer worse on example-lab/adreno, example-lab/mali than before " + ended.since[:7]
    )
