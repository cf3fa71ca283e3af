"""Describe deliveries, plans and effects of the audit log in words for people, without secrets. No I/O.

If something failed, only operators see the reason: an error may quote an address or an answer of another service. All
others see what they would see on GitHub.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from bot.commands.conclusion import CommandResults, Item
from bot.commands.dialogue import NAME as COMMANDS
from bot.core.adapters import adapter_of
from bot.core.listing import counted
from bot.core.patterns import Pattern
from bot.core.redaction import cut
from bot.engine.jobs.journal import DONE, FAILED, WAITING, WORKING, PlanStage
from bot.engine.jobs.notes import APPLIED, REFUSED, ROUTED
from bot.github.addresses import stored_page
from bot.web.texts import page_words
from handlers.dashboard.shared import texts

if TYPE_CHECKING:
    from bot.engine.jobs.journal import DeliveryRecord, EffectRecord, JobState, PlanRecord

WRITTEN: Mapping[str, str] = {
    "CorrectDraft": "text",
    "MarkNightly": "description",
    "OpenRevert": "body",
    "Remind": "text",
    "Reply": "text",
    "ReportReviewers": "text",
    "SetStatus": "description",
    "ShowSection": "text",
    "UpsertSection": "text",
}
"""Effects whose text everybody can read on GitHub, and the field with the text; no other text is shown."""
LONGEST_WRITTEN, LONGEST_REASON = 3_000, 1_000
MOST_PLANS, MOST_EFFECTS = 30, 30
"""The most plans of a delivery, and the most effects of a plan, that a page shows."""
NOT_ENDED = (WAITING, WORKING)
TABLE_ROW, LIST_ITEM, ENDS = "|", "- ", ".:!?"
"""How lines of an answer in Markdown begin, and the marks with which sentences end."""
_LINK = Pattern(r"\[([^\[\]]*)\]\(<?https?://[^()<>\s]*>?\)")
_SHA = Pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CAPITAL = Pattern(r"[A-Z]")


class EffectStory(BaseModel, extra="forbid"):
    """An effect: what the bot wrote, or would have written."""

    what: str = Field(description="The kind of effect, in words.")
    target: str
    state: str = Field(description="waiting, working, done, refused or failed.")
    outcome: str = Field(description="The outcome of the effect.")
    wrote: str = Field(description="The text that appears on GitHub; empty if there is none.")
    sha: str = Field(description="The commit that the effect is about; empty if there is none.")
    url: str = Field(description="Where GitHub shows the result; empty if it has no page, or if that is not stored.")
    link: str = Field(description="What the address leads to, in words.")


class PlanStory(BaseModel, extra="forbid"):
    """A plan: what one handler decided, and why."""

    handler: str
    what: str = Field(description="What the handler is about, in words.")
    stage: PlanStage
    state: str
    why: str
    effects: list[EffectStory]
    more: int = Field(description="Number of effects that are not listed.")


class CommandStory(BaseModel, extra="forbid"):
    """A command that somebody gave, and its result."""

    command: str = Field(description="As the person wrote it, in Markdown; empty if the bot has not read it.")
    login: str = Field(description="The person's login; empty if it is not stored.")
    received_at: datetime
    url: str = Field(description="The comment; empty if it is not stored.")
    state: str = Field(description="waiting, working, done, refused or failed.")
    result: str = Field(description="What happened, in Markdown: what was done, or the answer that the person got.")


class DeliveryStory(BaseModel, extra="forbid"):
    """A delivery: what happened on GitHub, and how the bot reacted."""

    guid: str
    event: str
    what: str = Field(description="What happened, in words.")
    received_at: datetime
    state: str = Field(description="waiting, working, done, ignored, refused or failed.")
    next_try: datetime | None
    why: str
    plans: list[PlanStory]
    replays: int


@dataclass(frozen=True, slots=True)
class StoryTeller:
    """Describes records of the journal in words; `redact` removes secrets from a text."""

    redact: Callable[[str], str]
    repository: str
    """The repository's page on GitHub."""
    titles: Mapping[str, str]
    """What each handler is about, by its name."""

    def delivery(self, record: DeliveryRecord) -> DeliveryStory:
        """Return the story of a delivery."""
        event = f"{record.event}.{record.action}" if record.action else record.event
        tries = [job.next_try for job in record.jobs if job.next_try is not None]
        return DeliveryStory(
            guid=record.guid,
            event=event,
            what=texts.EVENTS.get(event) or texts.EVENTS.get(record.event) or texts.OTHER_EVENT,
            received_at=datetime.fromtimestamp(record.received_at, UTC),
            state=self._state(record),
            next_try=datetime.fromtimestamp(min(tries), UTC) if tries else None,
            why=self._reason(record.job, record.guid) if record.job.outcome != ROUTED else "",
            plans=[self._plan(plan, record.guid) for plan in record.plans[:MOST_PLANS]],
            replays=len(record.replays),
        )

    def _state(self, record: DeliveryRecord) -> str:
        """Return the state of a delivery for people: a command that was not carried out is refused, not done."""
        refused = record.state == DONE and any(command.state == REFUSED for command in self.commands(record))
        return REFUSED if refused else record.state

    def commands(self, record: DeliveryRecord) -> list[CommandStory]:
        """Return the story of each command of a comment; nothing for a delivery without commands."""
        plans = [plan for plan in record.plans if plan.handler == COMMANDS]
        if not plans:
            return []
        conclusion = next((plan for plan in reversed(plans) if plan.basis), None)
        results = _results(conclusion.basis) if conclusion is not None else None
        received_at = datetime.fromtimestamp(record.received_at, UTC)
        if conclusion is None:
            plan = plans[-1]
            if plan.job.state == DONE and not plan.effects:
                return []
            # No command was carried out: its author is over a limit, or may not use any.
            state = REFUSED if plan.job.state == DONE else plan.job.state
            reason = self._reason(plan.job, record.guid) or texts.COMMAND_STATES.get(state, "")
            return [CommandStory(command="", login="", received_at=received_at, url="", state=state, result=reason)]
        if results is None:
            return []
        effects = {effect.target: effect for plan in plans if plan is not conclusion for effect in plan.effects}
        url = results.url if results.url.startswith(f"{self.repository}/") else ""
        stories = []
        for item in results.items:
            command_effects = [effects[target] for target in item.targets if target in effects]
            state, result = self._outcome(item, command_effects, conclusion, record.guid)
            command = self._text(item.shown, LONGEST_REASON)
            stories.append(
                CommandStory(
                    command=command, login=results.by, received_at=received_at, url=url, state=state, result=result
                )
            )
        return stories

    def _outcome(
        self, item: Item, effects: Sequence[EffectRecord], conclusion: PlanRecord, guid: str
    ) -> tuple[str, str]:
        """Return the state of a command and its result in words."""
        answer = without_links(self._text(_in_one_line(item.say), LONGEST_WRITTEN))
        for state in (FAILED, REFUSED):
            if problems := [self._reason(effect.job, guid) for effect in effects if effect.job.state == state]:
                return state, " ".join(filter(None, [answer, *dict.fromkeys(problems)]))
        if not item.done:
            return REFUSED, answer
        if conclusion.job.state in NOT_ENDED:
            return WORKING, answer or texts.COMMAND_STATES[WORKING]
        return DONE, answer or self._summary(effects)

    def _summary(self, effects: Sequence[EffectRecord]) -> str:
        """Say in a few words what effects did: `restarted 2 jobs`."""
        counts = Counter(effect.kind for effect in effects if effect.job.outcome == APPLIED)
        results = {kind: texts.effects_done(kind, count) for kind, count in counts.items()}
        # These effects say it better than we could: `opened #22`, `ci/slow-tests on 1a2b3c4: On: …`, `lint runs`.
        outcomes = [
            without_links(self._text(effect.job.text, LONGEST_REASON))
            for effect in effects
            if effect.job.outcome != APPLIED or results[effect.kind] is None
        ]
        return "; ".join(dict.fromkeys(filter(None, [*results.values(), *outcomes]))) or texts.COMMAND_STATES[DONE]

    def _plan(self, plan: PlanRecord, guid: str) -> PlanStory:
        return PlanStory(
            handler=plan.handler,
            what=self.titles.get(plan.handler, plan.handler),
            stage=plan.stage,
            state=plan.job.state,
            why=self._reason(plan.job, guid),
            effects=[self._effect(effect, guid) for effect in plan.effects[:MOST_EFFECTS]],
            more=len(plan.effects[MOST_EFFECTS:]),
        )

    def _effect(self, effect: EffectRecord, guid: str) -> EffectStory:
        page = stored_page(effect.page)
        text = effect.effect.get(WRITTEN.get(effect.kind, ""))
        return EffectStory(
            what=effect_words(effect.kind),
            target=self._text(effect.target, LONGEST_REASON),
            state=effect.job.state,
            outcome=self._reason(effect.job, guid),
            wrote=self._text(text, LONGEST_WRITTEN) if isinstance(text, str) else "",
            sha=_sha(effect.effect.get("sha")),
            url=f"{self.repository}/{page}" if page else "",
            link=page_words(page),
        )

    def _reason(self, job: JobState, guid: str) -> str:
        if job.state in (FAILED, REFUSED):
            return self._text(job.message, LONGEST_REASON) or texts.STEP_FAILED.format(guid=guid)
        if job.state in NOT_ENDED:
            return texts.STEP_RETRIED.format(times=counted(job.attempts, "time")) if job.attempts else ""
        return without_links(self._text(job.text, LONGEST_REASON))

    def _text(self, text: str, most: int) -> str:
        return cut(text, most, self.redact)


def _in_one_line(answer: str) -> str:
    r"""Join the lines of an answer without its tables: `CI:\n- build\n- lint` becomes `CI: build, lint`."""
    lines = [text for line in answer.splitlines() if (text := line.strip()) and not text.startswith(TABLE_ROW)]
    return " ".join(
        text.removeprefix(LIST_ITEM) + (_mark(following) if text.startswith(LIST_ITEM) and text[-1] not in ENDS else "")
        for text, following in pairwise([*lines, ""])
    )


def _mark(following: str) -> str:
    """Return what separates an item of a list, which ends without a mark, from the following line."""
    if not following:
        return ""
    return "," if following.startswith(LIST_ITEM) else "."


def effect_words(kind: str) -> str:
    """Split the name of a kind of effect into words: `EnsureLabel` becomes `Ensure label`."""
    return _CAPITAL.sub(lambda match: f" {match[0].lower()}", kind).strip().capitalize()


def without_links(text: str) -> str:
    """Return Markdown with the text of each link in place of the link."""
    return _LINK.sub(lambda match: match[1], text)


def _results(basis: Mapping[str, Any]) -> CommandResults | None:
    """Read the stored commands of a comment; None if another version stored them in a form that we do not know."""
    try:
        return adapter_of(CommandResults).validate_python(basis)
    except ValidationError:
        return None


def _sha(sha: Any) -> str:
    return sha if isinstance(sha, str) and _SHA.fullmatch(sha) else ""
