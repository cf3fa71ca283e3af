"""Build what people read about degraded targets from the sentences in `texts`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from nightjar_formats.model import TargetKey

from bot.effects.issues import EnsureIssue
from bot.github.text.markdown import code
from bot.results.report.check_run import MOST_CONTACTS
from bot.results.report.texts import CONTACTS, counted
from bot.results.settings.targets import NIGHTLY_ONLY
from handlers.device_tests.degraded import texts
from handlers.device_tests.degraded.rule import GOOD_RUNS, DegradedTarget, is_degraded


def issue_of_target(target: TargetKey, state: DegradedTarget, tier: int | None, contacts: Sequence[str]) -> EnsureIssue:
    """Return the issue of a target: open while it is degraded, and closed when it is restored.

    `tier` is the tier in app.yaml, None if app.yaml no longer enables requests for the target.
    """
    name, key = target.full_name, f"degraded:{target.full_name}"
    news = f"{key}:{state.sha}"
    if not is_degraded(state):
        reason = texts.TWO_GOOD.format(good=GOOD_RUNS) if tier else texts.NO_REQUESTS
        return EnsureIssue(
            key, news=texts.RESTORED.format(where=code(name), reason=reason), news_key=f"{news}:restored"
        )
    names = {"target": code(target.target), "lab": code(target.lab)}
    body = texts.ISSUE.format(
        since=moment_text(state.since), runs=_runs(state), effect=texts.EFFECTS[tier or 1], good=GOOD_RUNS, **names
    )
    if contacts:
        body += "\n\n" + CONTACTS.format(contacts=", ".join(map(code, contacts[:MOST_CONTACTS])))
    return EnsureIssue(key, texts.TITLE.format(where=name), body, news_key=news, begins=True)


def refusal(name: str, state: DegradedTarget) -> str:
    """Return the answer to a request for a test on a target that accepts no requests while it is degraded."""
    sentence = texts.DEGRADED.format(name=code(name), since=moment_text(state.since), runs=_runs(state))
    return f"{sentence} {texts.UNTIL.format(good=GOOD_RUNS)}"


def degraded_notice(state: DegradedTarget | None, tier: int) -> str:
    """Return what check runs of a target say while it is degraded, empty otherwise."""
    if state is None or state.restored or tier >= NIGHTLY_ONLY:
        return ""
    return texts.NOTICE.format(since=moment_text(state.since), runs=_runs(state), effect=texts.EFFECTS[tier])


def _runs(state: DegradedTarget) -> str:
    counts = [counted(state.infra, *texts.INFRA_COUNT)] if state.infra else []
    counts += [counted(state.missing, *texts.MISSING_COUNT)] if state.missing else []
    return ", ".join(counts)


def moment_text(moment: float) -> str:
    """Write a moment, which is in seconds since 1970."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
