"""What needs a person, and the sentence that says so."""

from __future__ import annotations

from dataclasses import replace

from bot.core.health import CheckResult
from bot.engine.retry import LOST
from bot.timers.timers import TimerState
from bot.web.answers import answer_text
from handlers.operate.attention import MOST_FAILURES, LowQuota, OperatorFacts, attention_of, operator_answer

TIMER = TimerState("octocat/compiler", "nightly", "daily", 1.0, "guid", "done", "", 2.0)
GOOD = OperatorFacts("", "", 0, (), [TIMER], (), [CheckResult("app", "fine", "")], ())
CRASH = LOST.format(count=3, consequence="it runs again")


def said(facts: OperatorFacts) -> str:
    return answer_text(operator_answer(attention_of(facts)))


def test_each_matter_is_named_once_and_the_most_urgent_first() -> None:
    stopped = replace(TIMER, outcome="stopped", reason="the App's installation on its account is suspended")
    cases = {
        "Nothing needs a person.": GOOD,
        "this process runs no jobs": replace(GOOD, problem="it stops"),
        "the newest app.yaml is not in use": replace(GOOD, config_problem="app.yaml:1:1: unknown"),
        "no worker is registered": replace(GOOD, silent_workers=None),
        "2 workers are silent": replace(GOOD, silent_workers=2),
        "1 job suspected of crashes; 1 delivery failed": replace(GOOD, failures=[CRASH, "blocked"]),
        "20 or more deliveries failed": replace(GOOD, failures=["blocked"] * MOST_FAILURES),
        "1 check failing": replace(GOOD, checks=[CheckResult("key", "refused", "Renew it."), *GOOD.checks]),
        "1 timer failed; 1 timer late": replace(GOOD, timers=[replace(TIMER, outcome="failed")], late=[TIMER]),
        "1 repository left alone": replace(GOOD, timers=[stopped, replace(stopped, name="last-good")]),
        "1 quota of GitHub nearly used up": replace(GOOD, low_quotas=[LowQuota("octocat", "core", 1, 5000, "05:10")]),
    }
    for words, facts in cases.items():
        assert said(facts) == (words if facts is GOOD else f"Needs a person: {words}.")
    everything = replace(
        GOOD, problem="it stops", failures=[CRASH, "blocked"], checks=[CheckResult("key", "refused", "Renew it.")]
    )
    assert [matter.summary for matter in attention_of(everything)] == [
        "this process runs no jobs",
        "1 job suspected of crashes",
        "1 delivery failed",
        "1 check failing",
    ]


def test_each_matter_says_what_to_do_and_leads_to_the_page_that_shows_more() -> None:
    stopped = replace(TIMER, outcome="stopped", reason="the App's installation on its account is suspended")
    quota = LowQuota("octocat", "core", 1, 5000, "05:10")
    crashing = "The process ended each time while {} ran alone."
    report = "The bot tries again in an hour. Report the crash with the log of that process."
    cases: list[tuple[OperatorFacts, list[str], str, str]] = [
        (replace(GOOD, problem="it stops"), ["it stops"], "", "/operate/state"),
        (
            replace(GOOD, config_problem="app.yaml:1:1: unknown"),
            ["app.yaml:1:1: unknown"],
            "Correct app.yaml; the bot reads it again by itself.",
            "/operate/state",
        ),
        (replace(GOOD, silent_workers=None), [], "No jobs run. Start `nightjar serve`.", "/operate/state"),
        (
            replace(GOOD, silent_workers=1),
            [],
            "Other workers take over the jobs. Look at the log of that process.",
            "/operate/state",
        ),
        (replace(GOOD, failures=[CRASH]), [crashing.format("it")], report, "/operate?state=failed"),
        (replace(GOOD, failures=[CRASH] * 2), [crashing.format("one of them")], report, "/operate?state=failed"),
        (
            replace(GOOD, failures=["blocked", "late", "blocked", *"cdef"]),
            ["blocked", "late", *"cde"],
            "Replay them once the cause is fixed.",
            "/operate?state=failed",
        ),
        (
            replace(GOOD, checks=[CheckResult("key", "refused", "Renew it.")]),
            ["refused. Renew it."],
            "",
            "/operate/state",
        ),
        (
            replace(GOOD, timers=[replace(TIMER, outcome="failed")]),
            ["The last run of nightly of octocat/compiler failed."],
            "Open its delivery on the page of the state. A failed run is repeated every hour.",
            "/operate/state",
        ),
        (
            replace(GOOD, late=[TIMER]),
            ["nightly of octocat/compiler has not run at its last scheduled time."],
            "If the queue is long, wait; otherwise look at the log.",
            "/operate/state",
        ),
        (
            replace(GOOD, timers=[stopped, replace(stopped, name="last-good")]),
            ["octocat/compiler: the App's installation on its account is suspended."],
            "The owner can undo this on GitHub; or remove the repository from app.yaml.",
            "/operate/state",
        ),
        (
            replace(GOOD, low_quotas=[quota]),
            ["octocat has 1 of 5000 requests (core) left until 05:10."],
            "Work that nobody waits for pauses by itself until then.",
            "/operate/state",
        ),
    ]
    for facts, details, remedy, href in cases:
        (matter,) = attention_of(facts)
        assert (matter.details, matter.remedy, matter.href) == (details, remedy, href), matter.summary
        assert [part.href for part in operator_answer([matter]) if part.text == matter.summary] == [href]
