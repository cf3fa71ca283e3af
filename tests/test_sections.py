"""Sections about one commit: how they are announced, stored, and marked."""

from __future__ import annotations

import json

import pytest

from bot.core.events import Delivery, Payload, Repository, lock_key
from bot.effects.section_state import SECTION_EVENT, SECTION_TEXT, SectionEvent, SectionState, SectionText, with_mark
from bot.effects.section_words import moment, seconds_since_1970, short
from bot.github.text.sticky import with_section

A, B, C = "a" * 40, "b" * 40, "c" * 40
OF_A = "> **Out of date:** this is for `aaaaaaa`; the head is now `bbbbbbb`.\n\n"
REPOSITORY = Repository(7, "octocat/compiler", 42)
TEXT = "**Docs:** built.\n\n- one\n- two"


def test_a_request_is_read_as_it_was_announced() -> None:
    pending = SectionEvent("runtime", 12, A, {"over": True}, "asked")
    announced = SECTION_EVENT.announcement(REPOSITORY, pending)
    payload = Payload(json.loads(announced.body))
    assert SECTION_EVENT.read(payload) == pending
    assert Repository.of(payload) == REPOSITORY
    assert (announced.event, Delivery(announced.guid, announced.event, payload, 0.0).action) == (
        "nightjar.section",
        "runtime",
    )


def test_a_text_is_read_as_it_was_announced() -> None:
    message = SectionText("docs-link", 12, A, "**Docs:** `@x`\n\u2028", 5.5, "asked")
    text = SECTION_TEXT.announcement(REPOSITORY, message)
    payload = Payload(json.loads(text.body))
    assert SECTION_TEXT.read(payload) == message
    assert Repository.of(payload) == REPOSITORY
    assert (text.event, Delivery(text.guid, text.event, payload, 0.0).action) == ("nightjar.section-text", "docs-link")


def test_a_text_is_written_in_order_with_all_other_work_of_its_pull_request() -> None:
    """TVM's comment was read and written by several at once, which lost each other's changes."""
    text = SECTION_TEXT.announcement(REPOSITORY, SectionText("runtime", 12, A, "", 0.0, "asked"))
    of_a_comment = {"repository": {"id": 7}, "issue": {"number": 12}}
    assert text.lock == lock_key("issue_comment", of_a_comment)


def test_computing_a_section_delays_nothing_else() -> None:
    locks = {
        SECTION_EVENT.lock(7, SectionEvent("runtime", number, A, {}, request))
        for number in (12, 13)
        for request in "ab"
    }
    assert len(locks) == 2
    assert not any(lock.startswith(("pr:", "sha:")) for lock in locks)


def test_each_request_is_announced_under_its_own_name() -> None:
    def name(section: str = "runtime", number: int = 12, request: str = "asked") -> str:
        return SECTION_EVENT.guid(7, SectionEvent(section, number, A, {}, request))

    def named(request: str) -> str:
        return SECTION_TEXT.guid(7, SectionText("runtime", 12, A, "", 0.0, request))

    assert (name(), named("asked")) == (name(), named("asked"))
    names = {name(), name(section="docs-link"), name(number=13), name(request="again"), named("asked"), named("again")}
    assert len(names) == 6


def test_a_repository_with_an_unknown_installation_is_announced_without_it() -> None:
    announced = SECTION_EVENT.announcement(
        Repository(7, "octocat/compiler", None), SectionEvent("runtime", 12, A, {}, "asked")
    )
    assert Repository.of(Payload(json.loads(announced.body))).installation_id is None


@pytest.mark.parametrize(
    ("state", "head", "mark"),
    [
        (SectionState(A, 1.0, "digest"), A, ""),
        (SectionState(A, 1.0, "digest"), B, B),
        (SectionState(A, 1.0, "digest", head=B), C, C),
        (SectionState(A, 1.0, "digest", head=B), A, ""),
        (SectionState(A, 1.0, digest=""), B, ""),
    ],
    ids=["of the head", "of another", "of another, with_mark before", "of the head again", "nothing is shown"],
)
def test_a_section_of_another_commit_needs_a_mark(state: SectionState, head: str, mark: str) -> None:
    assert state.mark(head) == mark


def test_a_mark_is_one_line_that_names_both_commits() -> None:
    marked_once = with_mark(TEXT, A, B)
    assert marked_once == OF_A + TEXT
    assert with_mark(marked_once, A, B) == marked_once
    assert with_mark(marked_once, A, C) == OF_A.replace("bbbbbbb", "ccccccc") + TEXT
    assert with_mark(marked_once, A, "") == TEXT
    assert with_mark(TEXT, A, "") == TEXT


def test_a_removed_section_gets_no_mark() -> None:
    assert with_mark("", A, B) == ""
    assert with_mark(OF_A.strip(), A, B) == ""


def test_a_mark_survives_reading_and_writing_the_sticky_comment() -> None:
    written = with_section({}, "docs-link", with_mark(TEXT, A, B))["docs-link"]
    assert with_mark(written, A, "") == TEXT


@pytest.mark.parametrize(
    ("moment_text", "text"),
    [
        ("2026-11-20T05:10:59Z", "2026-11-20 05:10 UTC"),
        ("2026-11-20T05:10:00+05:30", "2026-11-19 23:40 UTC"),
        (1_795_152_000.0, "2026-11-20 05:20 UTC"),
        ("", "1970-01-01 00:00 UTC"),
    ],
)
def test_times_are_shown_in_utc(moment_text: str | float, text: str) -> None:
    assert moment(moment_text) == text


def test_an_invalid_time_counts_as_long_ago() -> None:
    assert (seconds_since_1970("yesterday"), seconds_since_1970("1970-01-01T00:01:00Z")) == (0.0, 60.0)


def test_a_commit_is_abbreviated() -> None:
    assert short(A) == "`aaaaaaa`"
