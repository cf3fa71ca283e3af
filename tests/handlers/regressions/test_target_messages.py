"""Each audience gets its part of a target's message, and of its issue."""

from __future__ import annotations

from bot.config.places import Place
from bot.effects.issues import NEWS_STATE, EnsureIssue, NewsState
from bot.effects.remember import StoreRecord
from bot.news.effects import IssueState, PostMessage
from bot.results.store.failures.failures import Failure
from handlers.regressions.audiences import Audience
from handlers.regressions.config import Subscription
from handlers.regressions.decide import EvaluatedTarget, RegressionChanges
from handlers.regressions.target_messages import TargetMessage, audience_body, updated_issues
from handlers.regressions.target_text import NO_DETAILS, issue_body
from tests.results.reported import ABOUT, AT, SHA

ADD, MUL, RELAY = (Failure("operators", test, "b" * 40, "a" * 40) for test in ("a.py::add", "a.py::mul", "r.py::relay"))
TARGET = EvaluatedTarget(ABOUT, SHA, AT, "https://github.example/octocat/compiler")
ISSUE = IssueState("regressions:hexagon", "Failures on hexagon-v73", "", as_of=AT)


def audience_of(*places: Place, tests: str = "") -> Audience:
    """Return an audience of everything, or of tests."""
    return Audience(places, (Subscription(to=places, paths=(tests,)),) if tests else ())


def message(changes: RegressionChanges, *failing: Failure) -> TargetMessage:
    return TargetMessage(5, "night-2", TARGET, changes, failing, (*failing, RELAY), ISSUE, NO_DETAILS)


def test_an_issue_lists_what_its_audience_hears_of() -> None:
    [everything] = message(RegressionChanges(began=(ADD,)), ADD, MUL).effects(audience_of("issue"))
    assert isinstance(everything, EnsureIssue)
    assert (everything.key, everything.title, everything.news_key) == (ISSUE.key, ISSUE.title, "night-2")
    assert (everything.body, everything.begins) == (issue_body(TARGET, (ADD, MUL, RELAY)), True)
    part, post = message(RegressionChanges(began=(MUL,), recovered=(RELAY,)), ADD, MUL).effects(
        audience_of("issue", "slack", tests="r.py::relay")
    )
    assert isinstance(part, EnsureIssue)
    assert isinstance(post, PostMessage)
    assert (part.body, part.begins) == (issue_body(TARGET, (RELAY,)), False)
    assert (post.place, post.key, post.news.title) == (
        "slack", "night-2", "1 test recovered on example-lab/hexagon-v73 at nightly commit 1111111",
    )  # fmt: skip


def test_an_audience_that_hears_of_no_change_gets_none_but_its_issue_notes_that_it_is_done() -> None:
    news = message(RegressionChanges(began=(ADD,)), ADD)
    done = StoreRecord.of(NEWS_STATE.of(5, "issue", "night-2"), NewsState(done=True))
    assert news.effects(audience_of("issue", tests="r.py::relay")) == (done,)
    assert news.effects(audience_of("slack", tests="r.py::relay")) == ()


def test_the_issue_of_a_target_is_brought_up_to_date_in_the_audience_that_has_one() -> None:
    issue = EnsureIssue(ISSUE.key, ISSUE.title, "old", as_of=AT)
    in_issue, chat = audience_of("issue", tests="a.py::mul"), audience_of("slack")
    [updated] = updated_issues([chat, in_issue], issue, TARGET, (ADD, MUL), NO_DETAILS)
    assert updated == EnsureIssue(ISSUE.key, ISSUE.title, issue_body(TARGET, (MUL,)), as_of=AT)
    [closed] = updated_issues([in_issue], issue, TARGET, (ADD,), NO_DETAILS)
    assert closed == EnsureIssue(ISSUE.key, ISSUE.title, as_of=AT)
    assert audience_body(audience_of("issue"), TARGET, (), NO_DETAILS) == ""
