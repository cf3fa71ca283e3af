"""What begins to fail on a branch and what recovers, as histories of scans."""

from __future__ import annotations

import pytest

from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from handlers.main_failures.decide import (
    LONGEST_URL,
    LONGEST_WORDS,
    REMOVED_AFTER,
    BranchScan,
    FailingContext,
    FailureChanges,
    KnownFailures,
    decide_alarms,
    has_failed,
)

HOUR = 3600.0
RESULTS = {
    "+": "success",
    "-": "failure",
    "~": "pending",
    ">": "skipped",
    "x": "cancelled",
    "0": "neutral",
    "!": "error",
}

Step = tuple[str, str]
"""What a scan sees, the newest commit first, and the news of it: `B cpu- lint+ | A cpu+`, `cpu broke at B`."""

HISTORIES: dict[str, list[Step]] = {
    "a failure and its recovery are reported once": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("B cpu- | A cpu+", ""),
        ("C cpu+ | B cpu- | A cpu+", "cpu well at C, 1 after B"),
        ("C cpu+ | B cpu- | A cpu+", ""),
    ],
    "several changes are reported together": [
        ("A cpu+ gpu+ lint+", ""),
        ("B cpu- gpu! lint+ | A cpu+ gpu+ lint+", "cpu broke at B, gpu broke at B"),
        ("C cpu+ gpu+ lint- | B cpu- gpu!", "lint broke at C, cpu well at C, 1 after B, gpu well at C, 1 after B"),
    ],
    "a lasting failure is no news, and its recovery names the commit that broke it": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("C cpu- | B cpu- | A cpu+", ""),
        ("D cpu+ | C cpu- | B cpu-", "cpu well at D, 2 after B"),
    ],
    "the first of several unseen failures broke it": [
        ("A cpu+", ""),
        ("D cpu- | C cpu- | B cpu- | A cpu+", "cpu broke at B"),
        ("E cpu+ | D cpu- | C cpu- | B cpu-", "cpu well at E, 3 after B"),
    ],
    "a pending check changes nothing": [
        ("A cpu+", ""),
        ("B cpu~ | A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("C cpu~ | B cpu- | A cpu+", ""),
        ("C | B cpu- | A cpu+", ""),
    ],
    "a skipped or cancelled check changes nothing": [
        ("A cpu+", ""),
        ("B cpux | A cpu+", ""),
        ("C cpu- | B cpux | A cpu+", "cpu broke at C"),
        ("D cpu> | C cpu-", ""),
        ("E cpux | D cpu> | C cpu-", ""),
        ("F cpu0 | E cpux | D cpu> | C cpu-", "cpu well at F, 3 after C"),
    ],
    "a rerun that passes on the same commit ends it": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("B cpu~ | A cpu+", ""),
        ("B cpu+ | A cpu+", "cpu well at B, 0 after B"),
    ],
    "a check that changes back and forth on one commit is reported once; on the next commit it is news": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("B cpu+ | A cpu+", "cpu well at B, 0 after B"),
        ("B cpu- | A cpu+", ""),
        ("B cpu+ | A cpu+", ""),
        ("B cpu- | A cpu+", ""),
        ("C cpu- | B cpu- | A cpu+", "cpu broke at C"),
    ],
    "a late failure of an older commit is no news if a newer one is green": [
        ("B cpu+ | A cpu~", ""),
        ("B cpu+ | A cpu-", ""),
        ("B cpu~ | A cpu-", ""),
        ("B cpu- | A cpu-", "cpu broke at B"),
    ],
    "a failure of an older commit is news if no newer one has finished": [
        ("B cpu~ | A cpu~", ""),
        ("B cpu~ | A cpu-", "cpu broke at A"),
        ("B cpu+ | A cpu-", "cpu well at B, 1 after A"),
    ],
    "a rerun of the commit before the break proves nothing": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("B cpu~ | A cpu+", ""),
        ("C cpu~ | B cpu~ | A cpu+", ""),
        ("C cpu~ | B cpu+ | A cpu+", "cpu well at B, 0 after B"),
    ],
    "a rerun of the breaking commit ends nothing if a newer one fails": [
        ("A cpu+", ""),
        ("C cpu- | B cpu- | A cpu+", "cpu broke at B"),
        ("C cpu- | B cpu+ | A cpu+", ""),
        ("D cpu+ | C cpu- | B cpu+", "cpu well at D, 2 after B"),
    ],
    "in the first scan, a check that has always failed is no news": [
        ("B cpu- lint+ | A cpu- lint-", ""),
        ("C cpu- lint+ | B cpu- lint+ | A cpu- lint-", ""),
        ("D cpu+ lint+ | C cpu- | B cpu- | A cpu-", "cpu well at D, 3 after A"),
    ],
    "in the first scan, a check that passed before is news": [
        ("B cpu- lint- | A cpu+ lint-", "cpu broke at B"),
    ],
    "a new failing check is news": [
        ("A cpu+", ""),
        ("B cpu+ gpu- | A cpu+", "gpu broke at B"),
    ],
    "if the breaking commit left the branch, the oldest failing commit counts": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("A cpu+", "cpu well at A"),
    ],
    "after a rewrite of the branch it still fails": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("C cpu~ | Z cpu-", ""),
        ("C cpu+ | Z cpu-", "cpu well at C"),
    ],
    "an unwatched check is ignored": [
        ("A docs/style+", ""),
        ("B docs/style- | A docs/style+", ""),
    ],
    "of two checks with one name the worse counts": [
        ("A cpu+ cpu+", ""),
        ("B cpu+ cpu- | A cpu+", "cpu broke at B"),
        ("C cpu+ cpu~ | B cpu+ cpu-", ""),
        ("C cpu+ cpu+ | B cpu+ cpu-", "cpu well at C, 1 after B"),
    ],
    "the bot's own statuses and checks never fail": [
        ("A nightly+ hardware/example-lab/adreno0", ""),
        ("B ci/slow-tests+ hardware/example-lab/adreno0 | A nightly+ hardware/example-lab/adreno+", ""),
    ],
    "an empty or removed branch": [
        ("A cpu+", ""),
        ("B cpu- | A cpu+", "cpu broke at B"),
        ("", ""),
    ],
}


@pytest.mark.parametrize("history", HISTORIES)
def test_each_change_is_news_once(history: str) -> None:
    state: KnownFailures | None = None
    recoveries = list[str]()
    for number, (seen, news) in enumerate(HISTORIES[history]):
        change = decide_alarms(state, scan(seen, number * HOUR), ["*pu", "lint", "nightly", "ci/*", "hardware/*"])
        assert message(change) == news, (number, seen)
        state = change.state
        recoveries += [recovery.failure.name for recovery in change.recovered]
        assert [fix.name for fix in state.fixed] == recoveries
        assert all(fix.since <= fix.until <= number * HOUR for fix in state.fixed)


def scan(seen: str, moment: float) -> BranchScan:
    """Return the scan described by a line."""
    rows = [row.split() for row in seen.split(" | ")] if seen else []
    signals = [[Signal(word[:-1], State.MISSING, RESULTS[word[-1]]) for word in words] for _, *words in rows]
    return BranchScan(moment, [commit(row[0]) for row in rows], signals)


def commit(letter: str) -> Commit:
    return Commit(letter * 40, f"The commit {letter}", "")


def message(change: FailureChanges) -> str:
    """Return the news of a change in short."""
    lines = [f"{failure.name} broke at {failure.sha[0]}" for failure in change.began]
    for recovery in change.recovered:
        distance = f", {recovery.commits} after {recovery.failure.sha[0]}" if recovery.commits is not None else ""
        lines.append(f"{recovery.failure.name} well at {recovery.commit.sha[0]}{distance}")
    return ", ".join([*lines, *(f"{failure.name} removed" for failure in change.removed)])


def test_a_check_that_is_no_longer_reported_is_announced_a_day_later_and_then_forgotten() -> None:
    """A removed job would keep an issue open for ever; a late one must not count as removed."""
    first = decide_alarms(KnownFailures(), scan("B cpu- | A cpu+", 0), ["*"]).state
    pending = decide_alarms(first, scan("D | C cpu~", REMOVED_AFTER - HOUR), ["*"])
    missing = decide_alarms(pending.state, scan("F lint+ | E lint+", 5 * REMOVED_AFTER), ["*"])
    back = decide_alarms(missing.state, scan("G cpu~ | F lint+", 5 * REMOVED_AFTER + HOUR), ["*"])
    missing_again = decide_alarms(back.state, scan("F lint+ | E lint+", 7 * REMOVED_AFTER), ["*"])
    still = decide_alarms(missing_again.state, scan("F lint+ | E lint+", 8 * REMOVED_AFTER - 1), ["*"])
    removed = decide_alarms(still.state, scan("F lint+ | E lint+", 8 * REMOVED_AFTER), ["*"])
    forgotten = decide_alarms(removed.state, scan("G lint+ | F lint+", 9 * REMOVED_AFTER), ["*"])
    changes = (pending, missing, back, missing_again, still, removed, forgotten)
    assert [message(change) for change in changes] == ["", "", "", "", "", "cpu removed", ""]
    assert removed.state.failing == {}


def test_recorded_signals_are_limited_to_the_commits_of_a_scan() -> None:
    state: KnownFailures | None = None
    for number in range(26):
        letters = [chr(ord("A") + n) for n in range(number, max(-1, number - 10), -1)]
        seen = " | ".join(f"{letter} cpu{'-' if ord(letter) % 2 else '+'}" for letter in letters)
        state = decide_alarms(state, scan(seen, number * HOUR), ["*"]).state
    assert state is not None
    assert len(state.seen) == 5


def test_texts_and_urls_from_outside_are_shortened() -> None:
    long = Signal("cpu", State.RED, "failure", "x" * 1000, "https://ci.example.org/" + "y" * LONGEST_URL)
    silent = Signal("gpu", State.RED, "timed_out", "", "https://ci.example.org/2")
    cpu, gpu = decide_alarms(KnownFailures(), BranchScan(5.0, [commit("A")], [[long, silent]]), ["*"]).began
    assert cpu == FailingContext("cpu", "A" * 40, "The commit A", "x" * LONGEST_WORDS, "", 5.0)
    assert (gpu.says, gpu.url) == ("timed out", "https://ci.example.org/2")


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (("failure", "error", "timed_out", "startup_failure"), True),
        (("success", "neutral"), False),
        (("", "pending", "skipped", "cancelled", "action_required", "stale", "a new word"), None),
    ],
)
def test_only_signals_about_the_code_count_as_verdicts(results: tuple[str, ...], verdict: bool | None) -> None:
    assert {has_failed(result) for result in results} == {verdict}
