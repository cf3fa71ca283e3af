"""Finish a comment's commands: with 👍, or with 😕 and a comment that says why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.commands import texts
from bot.core.events import PULL_REQUEST_BODY, REVIEW, UserComment
from bot.effects.comments import REPLY_LIMIT, Reply
from bot.effects.reactions import CONFUSED, DONE, React, RemoveReaction
from bot.plan.effect import Effect
from bot.plan.outcome import EffectOutcome, EffectOutcomes

WHAT = {PULL_REQUEST_BODY: texts.DESCRIPTION, REVIEW: texts.REVIEW}

CommandConclusion = Callable[[Sequence[EffectOutcome]], tuple[Effect, ...]]
"""Decides which effects follow once the effects of one command have ended."""


@dataclass(frozen=True, slots=True)
class Item:
    """One command of the comment: the command as shown, its part of the answer (`say`), and the keys of its effects.

    `command` is its name, empty for a line that is no command.
    """

    shown: str
    say: str
    done: bool
    targets: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class CommandResults:
    """The planned answers to a comment's commands, stored until their effects have ended."""

    comment_kind: str
    id: int
    node_id: str
    number: int
    url: str
    written_at: str
    items: tuple[Item, ...]
    edited: bool = False
    """Whether the event is an edit: then the bot may have reacted to the earlier text already."""
    by: str = ""
    """The login of the person; empty in a job of an earlier release."""

    @classmethod
    def of(cls, comment: UserComment, items: Sequence[Item]) -> CommandResults:
        """Return the results for a comment whose commands have these items."""
        return cls(
            comment_kind=comment.kind,
            id=React.to(comment, DONE).id,
            node_id=comment.node_id,
            number=comment.number,
            url=comment.url,
            written_at=comment.written_at,
            items=tuple(items),
            edited=not comment.created,
            by=comment.sender.login,
        )


def decide_conclusion(
    results: CommandResults, outcomes: EffectOutcomes, conclusions: Mapping[str, CommandConclusion], page: str = ""
) -> tuple[Effect, ...]:
    """Return the effects that finish a comment's commands, once all effects of the commands have ended.

    `conclusions` holds the conclude function of each command that has one, by the command's name. Their effects come
    first and the reaction last, because it tells people that the commands have ended. An answer that reports a failure
    links `page`, the page of the pull request.
    """
    effects = [effect for item in results.items for effect in _conclusion_of(item, outcomes, conclusions)]
    lines, done = answer_lines(results.items, outcomes)
    if lines:
        subject = WHAT.get(results.comment_kind, texts.COMMENT)
        text = answer_text(results.url, lines, subject, "" if done else page)
        effects.append(Reply(number=results.number, text=text, since=results.written_at))
    kind, comment_id, node_id = results.comment_kind, results.id, results.node_id
    effects.append(React(kind, comment_id, node_id, DONE if done else CONFUSED, results.number))
    if done and (results.edited or outcomes.again):
        # The bot may have reacted with 😕 earlier: to the text before an edit, or before a replay.
        effects.append(RemoveReaction(kind, comment_id, node_id, CONFUSED, results.number))
    # Effects of two commands may have the same key: the later one counts.
    return tuple({effect.effect_key: effect for effect in effects}.values())


def _conclusion_of(
    item: Item, outcomes: EffectOutcomes, conclusions: Mapping[str, CommandConclusion]
) -> tuple[Effect, ...]:
    conclude = conclusions.get(item.command)
    return (
        conclude([outcome for outcome in outcomes.ended if outcome.effect.effect_key in item.targets])
        if conclude
        else ()
    )


def answer_lines(items: Sequence[Item], outcomes: EffectOutcomes) -> tuple[list[str], bool]:
    """Return the lines of the answer (none if 👍 is enough), and whether everything was done.

    If one command failed, there is a line for each command with its outcome, so that nobody has to guess.
    """
    failures = {outcome.effect.effect_key: outcome.text for outcome in outcomes.failures}
    lines: list[tuple[Item, str, bool]] = []
    for item in items:
        problems = [failures[target] for target in item.targets if target in failures]
        lines.append((item, _joined(item.say, problems), item.done and not problems))
    all_done = all(done for _, _, done in lines)
    return [_line(item, answer, done) for item, answer, done in lines if answer or not all_done], all_done


def _joined(say: str, problems: Sequence[str]) -> str:
    """Append the failures to a command's text; below several lines, on new lines, because the last may be a list."""
    if "\n" in say and problems:
        return "\n".join([say, "", *problems])
    return " ".join(part for part in (say, *problems) if part)


def _line(item: Item, answer: str, done: bool) -> str:
    indented = (answer or texts.DONE_TEXT).replace("\n", "\n  ")
    return f"- {'' if done else '😕 '}{item.shown}: {indented}"


def answer_text(url: str, lines: Sequence[str], subject: str = texts.COMMENT, page: str = "") -> str:
    """Write the answer, with a link to the answered comment (`subject` names its kind), and one to `page` if given.

    Cuts the answer to GitHub's limit for a comment.
    """
    text = "\n".join([texts.ABOUT.format(what=subject, url=url), "", *lines])
    end = f"\n\n{texts.PAGE.format(url=page)}" if page else ""
    if len(text) + len(end) <= REPLY_LIMIT:
        return text + end
    # Cut at the end of a line: half a code span would no longer prevent the mentions in it from notifying people.
    return text[: text.rfind("\n", 0, REPLY_LIMIT - len(texts.CUT) - len(end))] + texts.CUT + end
