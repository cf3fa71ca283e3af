"""Every sentence about targets that are degraded by one tier, and the functions that build texts from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from nightjar_formats.model import TargetKey

from bot.core.listing import counted
from bot.effects.issues import EnsureIssue
from bot.github.text.markdown import code
from bot.results.report.check_run import MOST_CONTACTS
from bot.results.report.texts import CONTACTS
from bot.results.settings.targets import NIGHTLY_ONLY
from handlers.device_tests.degraded.rule import GOOD_RUNS, DegradedTarget, is_degraded

# The issue
TITLE = "Target {where} is degraded"
ISSUE = """\
No nightly run of target {target} of lab {lab} has had usable results since {since}: {runs}.

{effect}

I'll close this issue after {good} good nightly runs in a row."""
RESTORED = "Target {where} is restored: {reason}."
TWO_GOOD = "{good} nightly runs in a row were good"
NO_REQUESTS = "app.yaml no longer enables requests for it"
INFRA_COUNT = ("nightly run was an infrastructure failure", "nightly runs were infrastructure failures")
MISSING_COUNT = ("is missing", "are missing")
EFFECTS = {
    1: "Until then pushes are not tested here. People can still request a test with a command or a label.",
    2: "Until then the target accepts no requests.",
}

# Answers and check runs
DEGRADED = "{name} accepts no requests now: no nightly run has had usable results since {since} ({runs})."
UNTIL = "It will accept requests again after {good} good nightly runs in a row."
NOTICE = "This target is degraded: no nightly run has had usable results since {since} ({runs}). {effect}"

# The audit log
WHY_SAME = "nothing changed"
WHY_DEGRADED = "{where} has been degraded since {since}"
WHY_RESTORED = "{where} is restored"
WHY_ISSUE_FAILED = "the issue could not be written"
SWEEP_DONE = "{announced} announced"
SWEEP_FAILED = "could not check which targets are degraded"


def issue_of_target(target: TargetKey, state: DegradedTarget, tier: int | None, contacts: Sequence[str]) -> EnsureIssue:
    """Return the issue of a target: open while it is degraded, and closed when it is restored.

    `tier` is the tier in app.yaml, None if app.yaml no longer enables requests for the target.
    """
    name, key = target.full_name, f"degraded:{target.full_name}"
    news = f"{key}:{state.sha}"
    if not is_degraded(state):
        reason = TWO_GOOD.format(good=GOOD_RUNS) if tier else NO_REQUESTS
        return EnsureIssue(key, news=RESTORED.format(where=code(name), reason=reason), news_key=f"{news}:restored")
    names = {"target": code(target.target), "lab": code(target.lab)}
    body = ISSUE.format(
        since=moment_text(state.since), runs=_runs(state), effect=EFFECTS[tier or 1], good=GOOD_RUNS, **names
    )
    if contacts:
        body += "\n\n" + CONTACTS.format(contacts=", ".join(map(code, contacts[:MOST_CONTACTS])))
    return EnsureIssue(key, TITLE.format(where=name), body, news_key=news, begins=True)


def refusal(name: str, state: DegradedTarget) -> str:
    """Return the answer to a request for a test on a target that accepts no requests while it is degraded."""
    sentence = DEGRADED.format(name=code(name), since=moment_text(state.since), runs=_runs(state))
    return f"{sentence} {UNTIL.format(good=GOOD_RUNS)}"


def degraded_notice(state: DegradedTarget | None, tier: int) -> str:
    """Return what check runs of a target say while it is degraded, empty otherwise."""
    if state is None or state.restored or tier >= NIGHTLY_ONLY:
        return ""
    return NOTICE.format(since=moment_text(state.since), runs=_runs(state), effect=EFFECTS[tier])


def _runs(state: DegradedTarget) -> str:
    counts = [counted(state.infra, *INFRA_COUNT)] if state.infra else []
    counts += [counted(state.missing, *MISSING_COUNT)] if state.missing else []
    return ", ".join(counts)


def moment_text(moment: float) -> str:
    """Write a moment, which is in seconds since 1970."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
