"""A 404 on something that existed is doubted for a while."""

from __future__ import annotations

import pytest

from bot.github.transport.seen import DOUBTED_FOR, SeenAddresses

PULL = "/repos/octocat/compiler/pulls/1"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("elapsed", "doubted"), [(DOUBTED_FOR - 1, True), (DOUBTED_FOR, False), (1e6, False)])
def test_a_404_for_something_that_existed_is_believed_after_a_while(elapsed: float, doubted: bool) -> None:
    clock = Clock()
    seen = SeenAddresses(clock)
    seen.note_object("1", PULL)
    clock.now += 3600
    assert seen.doubts("1", PULL)
    clock.now += elapsed
    assert seen.doubts("1", PULL) is doubted


def test_something_that_returns_is_doubted_again_when_it_disappears_again() -> None:
    clock = Clock()
    seen = SeenAddresses(clock)
    for _ in range(2):
        seen.note_object("1", PULL)
        assert seen.doubts("1", PULL)
        clock.now += DOUBTED_FOR
        assert not seen.doubts("1", PULL)


def test_a_404_is_believed_at_once_if_never_seen_removed_by_us_or_of_others() -> None:
    seen = SeenAddresses(Clock())
    assert not seen.doubts("1", PULL)
    seen.note_object("2", PULL)
    assert not seen.doubts("1", PULL)
    seen.note_removal("2", PULL)
    assert not seen.doubts("2", PULL)


@pytest.mark.parametrize(
    "path",
    [
        "/repos/octocat/compiler/git/ref/heads/nightly",
        "/repos/octocat/compiler/git/refs/heads/nightly",
        "/repos/octocat/compiler/contents/.github/nightjar.yaml",
        "/repos/octocat/compiler/collaborators/hubot/permission",
        "/repos/octocat/compiler/issues/comments/5",
        "/repos/octocat/compiler/issues/1/labels/ready",
        "/repos/octocat/compiler/commits",
    ],
)
def test_a_404_for_what_people_often_remove_is_believed_at_once(path: str) -> None:
    seen = SeenAddresses(Clock())
    seen.note_object("1", path)
    assert not seen.doubts("1", path)
