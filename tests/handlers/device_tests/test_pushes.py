"""When a push needs no approval: its sender pushed all of the head, or only people with the write role could."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import Person, PullRequest, PullRequestEvent
from handlers.device_tests.pushes import PUSHES, sender_vouches

OURS, DELETED = 7, 0
OTHER = Person(2, "octocat", is_bot=False)
PULL = PullRequest(
    number=42,
    head_sha="a" * 40,
    base_ref="main",
    author=Person(1, "hubot", is_bot=False),
    title="Faster",
    body="",
    draft=False,
    is_open=True,
    updated_at="",
    repository_id=OURS,
)
FORKS = st.sampled_from([DELETED, 8])
SENDERS = st.sampled_from([PULL.author, OTHER])


def event_of(action: str, sender: Person, head: int, base: int = OURS) -> PullRequestEvent:
    pull = replace(PULL, head_repository_id=head, repository_id=base)
    return PullRequestEvent(action, pull, sender, None)


@given(action=st.sampled_from(PUSHES), sender=SENDERS)
def test_the_sender_vouches_for_each_head_in_the_repository_itself(action: str, sender: Person) -> None:
    assert sender_vouches(event_of(action, sender, OURS))


@given(sender=SENDERS, head=FORKS)
def test_nobody_vouches_for_a_fork_by_reopening(sender: Person, head: int) -> None:
    assert not sender_vouches(event_of("reopened", sender, head))


@given(action=st.sampled_from(PUSHES), head=FORKS)
def test_only_the_author_vouches_for_a_fork_by_a_push(action: str, head: int) -> None:
    assert not sender_vouches(event_of(action, OTHER, head))
    assert sender_vouches(event_of(action, PULL.author, head)) == (action != "reopened")


def test_a_deleted_fork_is_not_the_repository_itself_even_if_the_payload_names_neither() -> None:
    assert not sender_vouches(event_of("synchronize", OTHER, DELETED, DELETED))
