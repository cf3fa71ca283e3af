"""The last word on a comment's commands: 👍, or 😕 and a comment that says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bot.core.events import PULL_REQUEST_BODY, REVIEW, UserComment
from bot.effects.comments import ANSWERED, REPLY_LIMIT, Reply
from bot.effects.reactions import CONFUSED, DONE, React
from bot.engine.processor import Sibling
from bot.github.access import ISSUES, PULL_REQUESTS, WritePermissions
from bot.plan.effect import Applied, EffectContext

DONE_TEXT = "done."
ABOUT = "About [{what}]({url}):"
WHAT = {PULL_REQUEST_BODY: "the description", REVIEW: "your review"}
COMMENT = "your comment"
CUT = "\n\n*(The rest of this answer was longer than a comment can hold.)*"


@dataclass(frozen=True, slots=True)
class Item:
    """One command of the comment: as it is shown, what to say of it, and the targets of its effects."""

    shown: str
    say: str
    done: bool
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conclude:
    """Look how the effects of a comment's commands ended, and tell the person. Applied when all have ended."""

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES, PULL_REQUESTS})

    remark_kind: str
    id: int
    node_id: str
    number: int
    url: str
    written_at: str
    items: tuple[Item, ...]
    edited: bool = False
    """Whether the commands came by an edit, so that what stood there before may have been concluded already."""

    @classmethod
    def of(cls, remark: UserComment, items: Sequence[Item]) -> Conclude:
        """Conclude a remark whose commands came to these items."""
        return cls(
            remark_kind=remark.kind,
            id=React.to(remark, DONE).id,
            node_id=remark.node_id,
            number=remark.number,
            url=remark.url,
            written_at=remark.written_at,
            items=tuple(items),
            edited=not remark.created,
        )

    @property
    def target(self) -> str:
        """What is concluded."""
        return f"conclude:{self.remark_kind}:{self.id}"

    async def apply(self, context: EffectContext) -> Applied:
        """Answer first and react then: the reaction is what ends the 👀, so it must not stand alone."""
        lines, done = verdict(self.items, await context.siblings())
        concluded = self.edited
        if lines:
            text = answer_text(self.url, lines, WHAT.get(self.remark_kind, COMMENT))
            reply = await Reply(number=self.number, text=text, since=self.written_at).apply(context)
            concluded |= reply.text != ANSWERED
        confused = React(self.remark_kind, self.id, self.node_id, CONFUSED)
        await (replace(confused, content=DONE) if done else confused).apply(context)
        if done and concluded:
            # An earlier end, of a text that was edited since or of a try before a replay, may have been a bad one.
            await confused.take_back(context)
        return Applied(f"{'done' if done else 'not done'}{', answered' if lines else ''}")


def verdict(items: Sequence[Item], siblings: Sequence[Sibling]) -> tuple[list[str], bool]:
    """Return the lines of the answer, none where 👍 says it all, and whether everything was done.

    As soon as one command failed, each is named with what became of it, so that nobody has to guess.
    """
    failures = {sibling.target: sibling.text for sibling in siblings if sibling.failed}
    lines: list[tuple[Item, str, bool]] = []
    for item in items:
        problems = [failures[target] for target in item.targets if target in failures]
        lines.append((item, _joined(item.say, problems), item.done and not problems))
    all_done = all(done for _, _, done in lines)
    return [_line(item, said, done) for item, said, done in lines if said or not all_done], all_done


def _joined(say: str, problems: Sequence[str]) -> str:
    """Put what failed behind what was said; behind several lines as lines of their own, for the last may be a list."""
    if "\n" in say and problems:
        return "\n".join([say, "", *problems])
    return " ".join(part for part in (say, *problems) if part)


def _line(item: Item, said: str, done: bool) -> str:
    indented = (said or DONE_TEXT).replace("\n", "\n  ")
    return f"- {'' if done else '😕 '}{item.shown}: {indented}"


def answer_text(url: str, lines: Sequence[str], what: str = COMMENT) -> str:
    """Write the one comment that answers, with a link to what it answers, as long as a comment may be."""
    text = "\n".join([ABOUT.format(what=what, url=url), "", *lines])
    if len(text) <= REPLY_LIMIT:
        return text
    # At the end of a line: half a line of code would let loose the mentions that it kept harmless.
    return text[: text.rfind("\n", 0, REPLY_LIMIT - len(CUT))] + CUT
