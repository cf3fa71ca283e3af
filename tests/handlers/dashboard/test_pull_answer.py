"""The first sentences of a pull request's page, and what its author may do next, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bot.engine.jobs.notes import REFUSED
from bot.web.answers import AnswerPart
from handlers.dashboard.pull.answer import AnswerFacts, answer_of, next_steps_of
from handlers.dashboard.pull.model import DeviceTest, HeadCheckRun, KnownHead, TargetResults, WaitingMerge
from handlers.dashboard.pull.story import CommandStory

MOMENT = datetime(2026, 11, 20, 5, 30, tzinfo=UTC)
SHA = "c0ffee" + "0" * 34
URL = "https://github.com/octocat/compiler/pull/42#issuecomment-1"
REPOSITORY = "/r/octocat/compiler"
HEAD = KnownHead(
    sha=SHA, base="main", is_open=True, state="open", title="", author="hubot", merged_by="", merged_at=None
)
MERGE = WaitingMerge(sha=SHA, base="main", by="hubot", url=URL, asked_at=None, queued=False, why="")
OPEN = AnswerFacts("octocat/compiler", HEAD, None, (), (), (), (), 0, {}, "")


def results(target: str, new_failures: int = 0, complete: bool = True) -> TargetResults:
    return TargetResults(
        target=target,
        run_id="n1",
        title="",
        conclusion="",
        passed=9,
        failed=new_failures,
        skipped=0,
        new_failures=new_failures,
        still_failing=0,
        unjudged=0,
        known_flaky=0,
        quarantined=0,
        ignored=0,
        complete=complete,
        failures=[],
    )


def device_test(target: str, state: str = "queued", words: str = "") -> DeviceTest:
    return DeviceTest(
        target=target,
        sha=SHA,
        state=state,
        words=words,
        requested_by="hubot",
        requested_at=MOMENT,
        approved_by="",
        jobs_before=None,
        starts_in=None,
        log="",
    )


def markdown(parts: Sequence[AnswerPart]) -> str:
    """Write parts of a sentence, links as Markdown has them."""
    return "".join(f"[{part.text}]({part.href})" if part.href else part.text for part in parts)


def sentences(facts: AnswerFacts) -> str:
    return markdown(answer_of(facts))


def steps(facts: AnswerFacts) -> list[str]:
    return [markdown(step) for step in next_steps_of(facts)]


def test_what_became_of_a_pull_request() -> None:
    merged = HEAD.model_copy(update={"is_open": False, "state": "merged", "merged_by": "hubot", "merged_at": MOMENT})
    closed = HEAD.model_copy(update={"is_open": False, "state": "closed"})
    by_nobody = merged.model_copy(update={"merged_by": "", "merged_at": None})
    assert [sentences(replace(OPEN, head=head)) for head in (HEAD, None, merged, by_nobody, closed)] == [
        "Nothing is pending. ",
        "No webhook has named the head of this pull request yet. Nothing is pending. ",
        "Merged by hubot on 2026-11-20 05:30 UTC. Nothing is pending. ",
        "Merged. Nothing is pending. ",
        "Closed without a merge. Nothing is pending. ",
    ]
    unsent = [results("example-lab/adreno", complete=False)]
    assert sentences(replace(OPEN, head=closed, results=unsent)).startswith("Closed without a merge. Nothing is pend")


def test_why_a_merge_waits() -> None:
    why = "These have not passed:\n- `lint`\n\n- `gpu / test`."
    assert [
        sentences(replace(OPEN, merge=merge))
        for merge in (
            MERGE,
            MERGE.model_copy(update={"why": why}),
            MERGE.model_copy(update={"why": why, "queued": True}),
        )
    ] == [
        "The merge that hubot requested is pending. ",
        "The merge that hubot requested is pending: These have not passed: lint gpu / test. ",
        "The merge that hubot requested is in the merge queue of main. ",
    ]


def test_device_tests_results_and_events_that_are_pending() -> None:
    ended = device_test("example-lab/mali", "done")
    approval = device_test("example-lab/adreno", "waiting")
    queued = device_test("example-lab/hexagon", words="`2` before it.")
    third, fourth = device_test("example-lab/third"), device_test("example-lab/fourth")
    assert sentences(replace(OPEN, tests=[ended, approval, queued])) == (
        "[example-lab/adreno](#device-tests): waiting for an approval. "
        "[example-lab/hexagon](#device-tests): 2 before it. "
    )
    assert sentences(replace(OPEN, tests=[approval, queued, third, fourth])).endswith(
        "before it. 2 more device tests are pending. "
    )
    partial = [results(f"example-lab/{name}", complete=False) for name in ("adreno", "mali", "third")]
    assert sentences(replace(OPEN, results=[results("example-lab/fast"), *partial], working=1)) == (
        f"[example-lab/adreno]({REPOSITORY}/runs/example-lab/adreno/{SHA}/n1) is still sending results. "
        f"[example-lab/mali]({REPOSITORY}/runs/example-lab/mali/{SHA}/n1) is still sending results. "
        "The bot is still working on 1 event. No new failures on 4 targets."
    )


def test_new_failures_lead_to_their_run_or_to_all_results() -> None:
    good, bad, worse = results("example-lab/mali"), results("example-lab/adreno", 1), results("example-lab/hexagon", 2)
    page = f"{REPOSITORY}/runs/example-lab/adreno/{SHA}/n1"
    assert [sentences(replace(OPEN, results=found)) for found in ([good], [good, bad], [good, bad, worse])] == [
        "Nothing is pending. No new failures on 1 target.",
        f"Nothing is pending. [1 new failure]({page}) on 1 of 2 targets.",
        "Nothing is pending. [3 new failures](#results) on 2 of 3 targets.",
    ]


def test_what_the_author_may_do_next() -> None:
    command = CommandStory(
        command="`@ci merge`.", login="hubot", received_at=MOMENT, url=URL, state=REFUSED, result="No."
    )
    check_run = HeadCheckRun(
        name="hardware/example-lab/adreno", title="", conclusion="neutral", url=f"{URL}1", computed_at=MOMENT
    )
    facts = replace(OPEN, results=[results("example-lab/adreno", 1)], commands=[command])
    facts = replace(facts, test_commands={"example-lab/adreno": "@ci test on adreno", "a/b": "@ci test on b"})
    refused = f"[@ci merge was not carried out: the answer says why]({URL})."
    failures = f"[Look at the new failures of example-lab/adreno]({REPOSITORY}/runs/example-lab/adreno/{SHA}/n1)"
    assert steps(facts) == [refused, f"{failures}.", "To test the head on a device, comment @ci test on b"]
    approve = replace(facts, approve_command="@ci approve", check_runs=[check_run])
    assert steps(approve)[1:] == [
        f"{failures}; if this pull request did not cause them, someone with write access can press "
        f"[Ignore on its check run]({URL}1).",
        "A maintainer who has reviewed the head comments @ci approve",
    ]
    without_comment = command.model_copy(update={"url": ""})
    assert steps(replace(OPEN, commands=[without_comment])) == [
        "[@ci merge was not carried out: the answer says why](#commands-given)."
    ]
    done = command.model_copy(update={"state": "done"})
    assert steps(replace(OPEN, commands=[done, command])) == ["[All commands](/help?repo=octocat%2Fcompiler)"]
    assert steps(replace(facts, head=HEAD.model_copy(update={"is_open": False}))) == []
