"""Who subscribes to what, and who is notified, as tables: the cases of TVM's script, and ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import Payload
from bot.github.text.mentions import mentioned
from handlers.teams.config import Teams
from handlers.teams.records import MOST, MentionedPeople
from handlers.teams.topics import OpenedThread, listed_topics, read_lines, topic_subscribers, unreadable_text
from handlers.teams.topics import configured_topics as configured

OWNER = "octo-org"
TOPICS = {
    "hexagon": ("octocat", "hubot"),
    "adreno": ("octocat", "octo-org/gpu", "elsewhere/gpu"),
    "skip ci": ("monalisa",),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- hexagon @octocat @hubot", {"hexagon": ("octocat", "hubot")}),
        ("- hexagon: @octocat, @hubot", {"hexagon": ("octocat", "hubot")}),
        ("- hexagon:@octocat", {"hexagon": ("octocat",)}),
        ("- hexagon @octocat.", {"hexagon": ("octocat",)}),
        ("- hexagon, adreno @octocat", {"hexagon": ("octocat",), "adreno": ("octocat",)}),
        ("- hexagon: @octocat,@hubot and @monalisa", {"hexagon": ("octocat", "hubot", "monalisa")}),
        ("- hexagon \N{EM DASH} @octocat", {"hexagon": ("octocat",)}),
        ("* hexagon @octocat\n+ adreno @hubot", {"hexagon": ("octocat",), "adreno": ("hubot",)}),
        ("- a\n  - hexagon @octocat", {"hexagon": ("octocat",)}),
        ("- [ ] hexagon @octocat\n- [x] adreno @hubot", {"hexagon": ("octocat",), "adreno": ("hubot",)}),
        ("- **Hexagon** @octocat", {"hexagon": ("octocat",)}),
        ("- skip  CI @octocat", {"skip ci": ("octocat",)}),
        ("- hexagon @Octocat\n- HEXAGON @octocat @hubot", {"hexagon": ("Octocat", "hubot")}),
        ("hexagon @octocat\nadreno: @hubot", {"hexagon": ("octocat",), "adreno": ("hubot",)}),
        ("1. hexagon @octocat", {"hexagon": ("octocat",)}),
        ("- adreno: @octocat @hubot (phones)", {"adreno": ("octocat", "hubot")}),
        ("- adreno (phones, since 2022): @octocat (in June), @hubot", {"adreno": ("octocat", "hubot")}),
        ("- hexagon @octo-org/gpu", {"hexagon": ("octo-org/gpu",)}),
        ("- hexagon @hubot[bot] @octocat", {"hexagon": ("octocat",)}),
        ("- hexagon @octocat\r\n- adreno @hubot\r\n", {"hexagon": ("octocat",), "adreno": ("hubot",)}),
        (f"- {'a' * 50} @octocat", {"a" * 50: ("octocat",)}),
        ("- Xcode @octocat", {"xcode": ("octocat",)}),
        ("# Teams\n\nSay who follows what.\n\n- hexagon @octocat\n", {"hexagon": ("octocat",)}),
    ],
)
def test_lines_of_lists_say_who_subscribes_to_what(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    """TVM's script read `x.` and `x,` as names, `a, b` as one topic, nobody after a colon, and no `*`."""
    assert listed_topics(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "thanks @hubot for this",
        "- thanks @hubot for this",
        "- thanks to @hubot, who did it",
        "> - hexagon @octocat",
        "> hexagon @octocat",
        "```\n- hexagon @octocat\n```",
        "    - hexagon @octocat",
        "<!--\n- hexagon @octocat\n-->",
        "Thanks\n\n-----Original Message-----\n- hexagon @octocat",
        "- hexagon",
        "- hexagon @",
        "- @octocat",
        "- , @octocat",
        "- [hexagon] @octocat",
        "- hexagon] @octocat",
        "- [hexagon](https://example.org) @octocat",
        "- hexagon `@octocat`",
        f"- {'a' * 51} @octocat",
        "",
    ],
)
def test_other_lines_subscribe_nobody(text: str) -> None:
    """In TVM's script, chat named topics, and so did quoted replies."""
    assert listed_topics(text) == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("thanks @hubot for this", ("thanks @hubot for this",)),
        ("- @octocat", ("@octocat",)),
        ("- hexagon @octocat\n- adreno @\n\nWords", ("adreno @",)),
        ("- hexagon @octocat (phones", ("hexagon @octocat (phones",)),
        ("> - @octocat\n\n`@octocat`\n\nWords", ()),
        ("- hexagon @octocat", ()),
        ("thanks `x` @hubot", ("thanks … @hubot",)),
        # Neither the head of an earlier mail nor what follows it is somebody's list.
        ("- hexagon @octocat\n\nOn 1 May, @hubot wrote:\n\nthanks @hubot for this", ()),
    ],
)
def test_lines_that_name_somebody_but_cannot_be_read_are_recognized(text: str, lines: tuple[str, ...]) -> None:
    assert read_lines(text).unreadable == lines


def test_the_answer_to_many_such_lines_is_short_and_mentions_nobody() -> None:
    answer = unreadable_text([f"@octocat {number} " + "x" * 200 for number in range(7)])
    assert "and 2 more. Write a line for each topic with its people: `- hexagon: @octocat @hubot (phones)`" in answer
    assert mentioned(answer, "octo-org") == ()
    assert len(answer) < 1_000


def test_people_are_in_the_order_of_their_names_in_any_case() -> None:
    union = MentionedPeople(("Zoe",), ("b",)).with_others(MentionedPeople(("adam", "zoe"), ("a",)))
    assert union == MentionedPeople(("adam", "Zoe"), ("a", "b"))


def test_an_opened_thread_has_its_number_author_and_labels() -> None:
    subject = {"number": 7, "user": {"login": "monalisa", "id": 1}, "title": "Faster", "body": None}
    labels = [{"name": "hexagon"}, {"name": "Good first issue"}]
    thread = OpenedThread.of(Payload({**subject, "labels": labels}))
    assert thread == OpenedThread(7, "monalisa", "Faster", "", ("hexagon", "Good first issue"))


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for people in listed_topics(f"- hexagon {text}\n- {text} @octocat").values():
        assert people


def opened(title: str = "[hexagon] Faster", body: str = "", *labels: str, author: str = "monalisa") -> OpenedThread:
    return OpenedThread(7, author, title, body, labels)


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        (opened(), ("hubot", "octocat")),
        (opened("Faster"), ()),
        (opened("[tests] Faster"), ()),
        (opened("[HEXAGON] Faster"), ("hubot", "octocat")),
        (opened("[tests, Hexagon] Faster"), ("hubot", "octocat")),
        (opened("[] Faster"), ()),
        (opened("Faster", "", "Hexagon"), ("hubot", "octocat")),
        (opened("Faster", "", "good first issue", "hexagon"), ("hubot", "octocat")),
        (opened("[adreno] Faster", "", "hexagon"), ("hubot", "octo-org/gpu", "octocat")),
        (opened("[Skip  CI] Faster"), ()),
        (opened(author="HuBot"), ("octocat",)),
        (opened(body="@octocat, please look."), ("hubot",)),
        (opened(body="cc @OctoCat"), ("hubot",)),
        (opened(body="> @octocat wrote"), ("hubot",)),
        (opened(body="`@octocat` and octocat@example.org"), ("hubot", "octocat")),
        (opened("[hexagon] As @octocat said"), ("hubot",)),
        (opened("[adreno] Faster", "@octo-org/GPU"), ("octocat",)),
    ],
)
def test_who_is_notified(thread: OpenedThread, expected: tuple[str, ...]) -> None:
    """By tags and labels in any case; not the author or people mentioned before; TVM took `@bob` and `@Bob` for two."""
    assert topic_subscribers(thread, TOPICS, OWNER).people == expected


def test_no_team_of_another_organization_and_no_namesake_of_the_bot_is_mentioned() -> None:
    assert topic_subscribers(opened("[adreno]"), TOPICS, "elsewhere", {"octocat"}).people == ("elsewhere/gpu",)


def test_only_topics_with_somebody_to_mention_are_named() -> None:
    subscribers = topic_subscribers(opened("[hexagon][adreno] Faster", "@octocat @octo-org/gpu"), TOPICS, OWNER)
    assert subscribers == MentionedPeople(("hubot",), ("hexagon",))


@pytest.mark.parametrize("body", [None, "", "text\r\n\r\ncc @octocat\r\n"])
def test_githubs_payloads_are_read(body: str | None) -> None:
    """TVM's script crashed on a null description, and missed a cc line that ends in CRLF."""
    payload = {"number": 7, "title": "[hexagon]", "body": body, "user": None, "labels": [{"name": "x"}]}
    people = topic_subscribers(OpenedThread.of(Payload(payload)), TOPICS, OWNER).people
    assert people == (("hubot",) if body else ("hubot", "octocat"))


@pytest.mark.parametrize(
    ("mentioned", "others", "union"),
    [
        (MentionedPeople(), MentionedPeople(("b", "a"), ("x",)), MentionedPeople(("a", "b"), ("x",))),
        (
            MentionedPeople(("a", "c"), ("x",)),
            MentionedPeople(("b",), ("y",)),
            MentionedPeople(("a", "b", "c"), ("x", "y")),
        ),
        (MentionedPeople(("a", "b"), ("x",)), MentionedPeople(("B",), ("y",)), MentionedPeople(("a", "b"), ("x",))),
        (MentionedPeople(("a",), ("x",)), MentionedPeople(), MentionedPeople(("a",), ("x",))),
        (
            MentionedPeople((), (), "Why."),
            MentionedPeople(("a",), ("x",), "Another reason."),
            MentionedPeople(("a",), ("x",), "Why."),
        ),
    ],
)
def test_mentioned_people_stay_and_nobody_is_mentioned_twice(
    mentioned: MentionedPeople, others: MentionedPeople, union: MentionedPeople
) -> None:
    """TVM's script merged `cc @a, @c` and b into `cc @a @b`: c was lost."""
    assert mentioned.with_others(others) == union


def test_the_number_of_mentions_in_a_conversation_is_limited() -> None:
    many = MentionedPeople(tuple(f"person-{n:03}" for n in range(MOST + 5)), ("x",))
    full = MentionedPeople().with_others(many)
    assert full.people == many.people[:MOST]
    assert full.with_others(many) == full


@pytest.mark.parametrize(
    ("people", "text"),
    [
        (MentionedPeople(("a",), ("hexagon",)), "**Teams:** cc @a, for `hexagon`."),
        (
            MentionedPeople(("a", "b", "o/t"), ("adreno", "x|y")),
            "**Teams:** cc @a, @b and @o/t, for `adreno`, <code>x\\|y</code>.",
        ),
        (MentionedPeople(), ""),
        (MentionedPeople(failure="Why."), "**Teams:** I couldn't mention the subscribers. Why."),
        (
            MentionedPeople(("a",), ("hexagon",), "Why."),
            "**Teams:** cc @a, for `hexagon`.\n\n**Teams:** I couldn't mention the subscribers. Why.",
        ),
    ],
)
def test_the_text_of_a_mention(people: MentionedPeople, text: str) -> None:
    assert people.text().replace("&#124;", "\\|") == text


def test_app_yaml_says_who_subscribes_to_what() -> None:
    config = Teams(topics={"Hexagon": ("@octocat",), "hexagon ci": ("@octo-org/gpu", "@hubot")})
    assert configured(config) == {"hexagon": ("octocat",), "hexagon ci": ("octo-org/gpu", "hubot")}
