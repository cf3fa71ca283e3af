"""The message of a target and its issue, of which each audience gets its part. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.effects.issues import NEWS_STATE, EnsureIssue, NewsState
from bot.effects.remember import StoreRecord
from bot.news.effects import IssueState, message_effects
from bot.plan.effect import Effect
from bot.results.store.failures.failures import Failure
from handlers.regressions.audiences import Audience
from handlers.regressions.decide import EvaluatedTarget, RegressionChanges
from handlers.regressions.target_text import NO_CONTEXTS, Contexts, DetailsOfTests, issue_body, regression_news


@dataclass(frozen=True, slots=True)
class TargetMessage:
    """What a message about a target is made of; `key` identifies it.

    `failing` has all failures that are reported after it, `listed` those that the issue of the target lists. The body
    of `issue` is written for each audience. `details` are those of each test.
    """

    repository_id: int
    key: str
    target: EvaluatedTarget
    changes: RegressionChanges
    failing: Sequence[Failure]
    listed: Sequence[Failure]
    issue: IssueState
    details: DetailsOfTests
    contexts: Contexts = field(default_factory=lambda: NO_CONTEXTS)

    def effects(self, audience: Audience) -> tuple[Effect, ...]:
        """Return the effects that post what an audience hears of."""
        name = self.target.about.full_name
        changes, failing = audience.changes(name, self.changes), audience.failures(name, self.failing)
        if not changes:
            # Without this record, the next nightly run would assume that the news never reached the issue.
            done = StoreRecord.of(NEWS_STATE.of(self.repository_id, "issue", self.key), NewsState(done=True))
            return (done,) if audience.has_issue else ()
        target = audience.target(self.target, (*failing, *changes.began))
        issue = replace(
            self.issue,
            body=audience_body(audience, self.target, self.listed, self.details),
            begins=bool(changes.began or changes.unreliable),
        )
        return message_effects(
            audience.places, self.key, regression_news(target, changes, failing, self.contexts), issue
        )


def audience_body(
    audience: Audience, target: EvaluatedTarget, failing: Sequence[Failure], details: DetailsOfTests
) -> str:
    """Return the Markdown of the target's issue about what an audience hears of; empty if none of that fails."""
    part = audience.failures(target.about.full_name, failing)
    return issue_body(audience.target(target, part), part, details)


def updated_issues(
    audiences: Sequence[Audience],
    issue: EnsureIssue,
    target: EvaluatedTarget,
    failing: Sequence[Failure],
    details: DetailsOfTests,
) -> list[Effect]:
    """Return the effects that bring the issue of a target up to date, in the audience that has one."""
    return [
        replace(issue, body=audience_body(audience, target, failing, details))
        for audience in audiences
        if audience.has_issue
    ]
