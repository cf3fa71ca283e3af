"""Handle the commands of a comment: read them, check permissions, plan their effects, and answer once.

This is a handler like the others, except that features register their commands with it: a declaration and a function
for each. However many commands a comment has, it gets one 👀, then one 👍, or one 😕 and one answer.

Whose command it is: the sender of the event runs it, identified by ID, because a login can pass to another account. The
ID in GitHub's permission response must match. A command that an edit adds belongs to the editor. If the editor is not
the author of the comment, only commands without `own_words` run: readers would think that the author wrote the others.
The bot answers neither itself nor other bots, because two bots that answer each other would never stop.

Which commit: a command acts on the newest head that a `pull_request` delivery reported before it, because the payload
of `issue_comment` names no commit. `@ci rerun` is refused if GitHub reports another head. `@ci merge`, `@ci update` and
`@ci approve ci` are also refused if the head may have moved since the comment was written. Without a record (the pull
request is older than the installation) `approve ci` asks for the SHA. `merge` goes ahead: it merges only an approved
commit, and would otherwise be refused every time. `@ci run slow tests` belongs to the pull request, not to a commit.

A person without any permission gets no reply to an invalid command, but one to a valid command that says why the bot
refuses. Otherwise anybody could make the bot write comments in a public repository.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.ci.providers import FoundCiRuns, find_runs
from bot.ci.rerun_actions import merge_reruns_by_run
from bot.commands import answers, texts
from bot.commands.budget import (
    CommandOutcome,
    CommandResponse,
    CommandsQuestion,
    CommandTally,
    decide_response,
    is_ignored,
)
from bot.commands.conclusion import CommandConclusion, CommandResults, Item, decide_conclusion
from bot.commands.effects import COMMANDS_BY, COMMANDS_ON, CountCommands
from bot.commands.grammar import BadCommand, Command, CommandRegistry, CommandSpec, new_commands, parse
from bot.core.errors import TryAgain, UserError
from bot.core.events import Delivery, Payload, Person, PullRequest, UserComment, comment_in
from bot.core.page_paths import help_path
from bot.core.run_in_thread import run_in_thread
from bot.effects.reactions import CONFUSED, EYES, React
from bot.engine.retry import TRANSIENT
from bot.github.limits.ranks import Rank
from bot.github.pull_heads import HEAD
from bot.plan.effect import Effect
from bot.plan.failure_text import failure_text, refusal_text
from bot.plan.handler import NOTHING, ConcludeStage, Context, Handler, Plan, Router
from bot.plan.outcome import EffectOutcomes
from bot.plan.page_links import page_url, pull_page_url

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.github.repositories.permissions import Permissions

NAME = "commands"
WRITERS = frozenset({"write", "maintain", "admin"})
# Without `deleted`: TVM's workflow listened to it as well, so that deleting an old `merge` ran it once more.
COMMAND_EVENTS = frozenset(
    {
        ("issue_comment", "created"),
        ("issue_comment", "edited"),
        ("pull_request_review", "submitted"),
        ("pull_request_review", "edited"),
        ("pull_request_review_comment", "created"),
        ("pull_request_review_comment", "edited"),
        ("pull_request", "opened"),
        ("pull_request", "edited"),
    }
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """The input of a command function: the person, the comment, and the pull request as GitHub describes it now."""

    context: Context
    pull: PullRequest
    known_head: str | None
    """The head in the bot's record. If it differs from `pull.head_sha`, the head moved after the comment."""
    by: Person
    comment: UserComment
    registry: CommandRegistry
    mention: str
    """The name of the bot that the person used; answers name commands in the same form."""
    _found_runs: list[FoundCiRuns] = field(default_factory=list)

    async def runs(self) -> FoundCiRuns:
        """Return the CI runs on the head; all commands of a comment share one look-up."""
        if not self._found_runs:
            written_at = self.comment.written_at or self.pull.updated_at
            self._found_runs.append(await find_runs(self.context, self.pull, written_at))
        return self._found_runs[0]


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The result of a command function: effects, an answer (Markdown; empty if 👍 is enough), and whether it is done.

    `calls_off` has the keys of effects to drop if they come from an earlier line of the same comment. `replaces` has
    the names of commands to ignore in earlier lines of the same comment.
    """

    effects: tuple[Effect, ...] = ()
    say: str = ""
    done: bool = True
    calls_off: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()


CommandFunction = Callable[[CommandRequest, Command], Awaitable[CommandAnswer]]


@dataclass(frozen=True, slots=True)
class ConcludingCommand:
    """A command function with a conclude stage: `conclude` plans effects by the outcomes of the command. Pure."""

    run: CommandFunction
    conclude: CommandConclusion

    async def __call__(self, request: CommandRequest, command: Command) -> CommandAnswer:
        """Plan the effects of the command and its answer."""
        return await self.run(request, command)


class Dialogue:
    """The handler that answers commands."""

    def __init__(self, commands: Sequence[tuple[CommandSpec, CommandFunction]], permissions: Permissions) -> None:
        self.registry = CommandRegistry(spec for spec, _ in commands)
        self._run: Mapping[str, CommandFunction] = {spec.name: function for spec, function in commands}
        self._conclusions: Mapping[str, CommandConclusion] = {
            spec.name: function.conclude for spec, function in commands if isinstance(function, ConcludingCommand)
        }
        self._permissions = permissions

    @property
    def router(self) -> Router:
        """The router with this handler."""
        router = Router()
        conclude = ConcludeStage(CommandResults, self.conclude)
        router.add(
            Handler(
                NAME,
                COMMAND_EVENTS,
                self.plan,
                on_failure=self.plan_failure,
                conclude=conclude,
                accepts=is_by_person,
                needs_mention=True,
            )
        )
        return router

    async def plan(self, context: Context) -> Plan:
        """Plan all commands of a comment, review or description; after an edit, only those that the edit added."""
        comment = comment_in(context.delivery)
        if comment is None or (commands := await self._commands_to_answer(context, comment)) is None:
            return NOTHING
        repository, number = context.repository.id, comment.number
        # Other jobs that write the head or the tally of this pull request wait for this one: they have the same lock.
        by_person, on_pull = COMMANDS_BY.of(repository, comment.sender.id), COMMANDS_ON.of(repository, number)
        records = await context.records.fetch(by_person, on_pull, HEAD.of(repository, number))
        person = await records.get(by_person) or CommandTally()
        # Decide this before any request to GitHub: otherwise each comment of a flood would cost requests.
        if comment.written_at and is_ignored(
            context.intent, _seconds(comment.written_at), person, context.app_config.commands
        ):
            return Plan(why=texts.WHY_SILENT)
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        pull = PullRequest.of(Payload(await context.github.getitem("/repos/{+repo}/pulls/{number}", url_vars=url_vars)))
        head = await records.get(HEAD.of(repository, number))
        if head is not None and head.sha != pull.head_sha and head.updated_at > pull.updated_at:
            raise TryAgain(texts.HEAD_NOT_VISIBLE)
        allowed, role = await self._allowed_commands(context, comment.sender, pull)
        if not any(allowed.values()):
            # Do not correct the typos of somebody who may not run anything.
            commands = [item for item in commands if isinstance(item, Command)]
        if not commands:
            return Plan(why=texts.WHY_ONLY_TYPOS)
        question = _question(context, comment, commands, allowed, pull, writer=role in WRITERS)
        rank = Rank.WRITER if question.writer else Rank.STRANGER if question.refused else Rank.EVENT
        tally = await records.get(on_pull) or CommandTally()
        response = decide_response(question, person, tally, context.app_config.commands)
        if response in (
            CommandResponse.REACT,
            CommandResponse.NOTHING,
            CommandResponse.PERSON_OVER,
            CommandResponse.PULL_OVER,
        ):
            return _brief_plan(context, comment, commands, question, response, rank)
        request = CommandRequest(
            context=context,
            pull=pull,
            known_head=head.sha if head else None,
            by=comment.sender,
            comment=comment,
            registry=self.registry,
            mention=commands[0].mention,
        )
        plan = _plan_of(comment, [(item, await self._answer(request, item, allowed)) for item in commands])
        eyes, *command_effects = plan.effects
        return replace(plan, effects=(eyes, _count(comment, question, response), *command_effects), rank=rank)

    async def plan_failure(self, context: Context, message: str) -> Plan:
        """Answer a comment whose commands could not be planned at all."""
        comment = comment_in(context.delivery)
        if comment is None or (commands := await self._commands_to_answer(context, comment)) is None:
            return NOTHING
        if not any(isinstance(item, Command) for item in commands):
            # The person may not be allowed to run anything; then the bot does not correct typos.
            return Plan(why=texts.WHY_NO_COMMAND)
        items = tuple(Item(answers.command_as_code(command), message, done=False) for command in commands)
        page = pull_page_url(context, comment.number)
        effects = decide_conclusion(CommandResults.of(comment, items), EffectOutcomes(), {}, page)
        return Plan(effects, why=texts.WHY_NOT_PLANNED)

    async def conclude(self, context: Context, results: CommandResults, outcomes: EffectOutcomes) -> Plan:
        """End a comment's commands: let each command conclude, answer, and react."""
        failed, count = len(outcomes.failures), len(outcomes.ended)
        undone = sum(not item.done for item in results.items)
        if failed:
            reason = texts.WHY_SOME_FAILED.format(failed=failed, count=count)
        elif undone:
            reason = texts.WHY_NOT_DONE.format(undone=undone, count=len(results.items))
        else:
            reason = texts.WHY_ALL_APPLIED
        page = pull_page_url(context, results.number)
        return Plan(decide_conclusion(results, outcomes, self._conclusions, page), why=reason)

    async def _commands_to_answer(
        self, context: Context, comment: UserComment
    ) -> Sequence[Command | BadCommand] | None:
        """Return the commands to answer; None if there are none, or if the bot does not answer their author."""
        # A person may edit our own comment, which only quotes commands.
        if comment.sender.is_bot or context.me.user_id in (comment.sender.id, comment.author.id):
            return None
        mentions, old = context.app_config.mentions, comment.old_text
        if comment.created:
            read = partial(parse, comment.text, registry=self.registry, mentions=mentions)
        elif old is not None:
            read = partial(new_commands, old, comment.text, registry=self.registry, mentions=mentions)
        else:
            return None
        return await run_in_thread(read, old, comment.text) or None

    async def _allowed_commands(
        self, context: Context, person: Person, pull: PullRequest
    ) -> tuple[dict[str, bool], str]:
        """Return for each enabled command whether this person may run it, and the person's role."""
        enabled, is_author = self.registry.enabled(context.config.features), person.id == pull.author.id
        role = await self._permissions.role(context.github, context.repository.full_name, person)
        allowed = {
            spec.name: spec.allows(role=role, is_author=is_author, override=context.config.allowed(spec.feature))
            or (spec.allows_person is not None and spec.allows_person(context.config, person.id))
            for spec in enabled
        }
        return allowed, role

    async def _answer(
        self, request: CommandRequest, command: Command | BadCommand, allowed: Mapping[str, bool]
    ) -> CommandAnswer:
        if isinstance(command, BadCommand):
            return CommandAnswer(say=answers.bad_command(command, help_url(request.context)), done=False)
        spec = command.spec
        if spec.name not in allowed:
            text = answers.switched_off(spec, request.context.repository.full_name, request.context.config)
            return CommandAnswer(say=text, done=False)
        if not allowed[spec.name]:
            return CommandAnswer(
                say=answers.not_allowed(command, request.context.config.allowed(spec.feature)), done=False
            )
        if spec.own_words and not request.comment.created and request.by.id != request.comment.author.id:
            return CommandAnswer(say=answers.not_own_words(command, request.comment.author.login), done=False)
        try:
            return await self._run[spec.name](request, command)
        except UserError as error:
            return CommandAnswer(say=str(error), done=False)
        # GitHub or the database is unavailable: the engine plans the delivery again later, with all its commands.
        except TRANSIENT:
            raise
        except Exception as error:
            if refusal_text(error) is None:
                log.exception("command failed", command=spec.name)
            return CommandAnswer(say=failure_text(error, request.context.delivery.guid), done=False)


def is_by_person(delivery: Delivery, _: RepositoryConfig) -> bool:
    """Return whether a person wrote or edited a text on a pull request. The bot's own answers quote commands.

    A person may edit a bot's comment; then the text is that person's.
    """
    comment = comment_in(delivery)
    return comment is not None and not comment.sender.is_bot


def _question(
    context: Context,
    comment: UserComment,
    commands: Sequence[Command | BadCommand],
    allowed: Mapping[str, bool],
    pull: PullRequest,
    *,
    writer: bool,
) -> CommandsQuestion:
    """Return the data of a comment for the budgets. A command that is off does not count as refused."""
    valid = [command for command in commands if isinstance(command, Command)]
    refused = bool(valid) and not any(allowed.get(item.spec.name, any(allowed.values())) for item in valid)
    written_at = _seconds(comment.written_at or pull.updated_at)
    return CommandsQuestion(
        context.intent, written_at, len(commands), comment.sender.id, refused=refused, writer=writer
    )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _count(comment: UserComment, question: CommandsQuestion, response: CommandResponse) -> CountCommands:
    refused = response in (CommandResponse.REFUSE, CommandResponse.REACT)
    outcome = (
        CommandOutcome.REFUSED
        if refused
        else CommandOutcome.RUN
        if response is CommandResponse.RUN
        else CommandOutcome.OVER
    )
    notified = response is CommandResponse.REFUSE
    return CountCommands(comment.number, question.person_id, question.written_at, question.commands, outcome, notified)


def _brief_plan(
    context: Context,
    comment: UserComment,
    commands: Sequence[Command | BadCommand],
    question: CommandsQuestion,
    response: CommandResponse,
    rank: Rank,
) -> Plan:
    """Plan the response to a comment whose commands are not run: a reaction, one answer, or nothing."""
    count = _count(comment, question, response)
    if response is CommandResponse.NOTHING:
        return Plan(why=texts.WHY_SILENT)
    if response is CommandResponse.REACT:
        return Plan((count, React.to(comment, CONFUSED)), why=texts.WHY_ONLY_REACTION, rank=rank)
    limits = context.app_config.commands
    person = response is CommandResponse.PERSON_OVER
    text, limit = (texts.PERSON_OVER, limits.per_person) if person else (texts.PULL_OVER, limits.per_pull_request)
    item = Item(answers.command_as_code(commands[0]), text.format(limit=limit), done=False)
    conclusion = decide_conclusion(CommandResults.of(comment, [item]), EffectOutcomes(), {})
    return Plan((count, *conclusion), why=texts.WHY_OVER_LIMIT, rank=rank)


def _plan_of(comment: UserComment, answered: Sequence[tuple[Command | BadCommand, CommandAnswer]]) -> Plan:
    """Return one plan for a comment: the 👀, the effects of its commands, and the data for the conclude stage."""
    answered = _without_overridden_effects(answered)
    planned = [effect for _, answer in answered for effect in answer.effects]
    effects, moved = merge_reruns_by_run([React.to(comment, EYES), *planned])
    items = [
        Item(
            answers.command_as_code(command),
            answer.say,
            done=answer.done,
            targets=tuple(moved.get(effect.effect_key, effect.effect_key) for effect in answer.effects),
            command=command.spec.name if isinstance(command, Command) else "",
        )
        for command, answer in answered
    ]
    # Two commands may have effects of one key, such as `run slow tests` and `skip slow tests`: the later one counts.
    effects_by_target = {effect.effect_key: effect for effect in effects}
    reason = texts.WHY_COMMANDS.format(count=len(items), by=comment.sender.login)
    return Plan(tuple(effects_by_target.values()), why=reason, conclusion_basis=CommandResults.of(comment, items))


def _without_overridden_effects(
    answered: Sequence[tuple[Command | BadCommand, CommandAnswer]],
) -> list[tuple[Command | BadCommand, CommandAnswer]]:
    """Drop the effects that a later line of the same comment overrides, and say so in the answer."""
    results: list[tuple[Command | BadCommand, CommandAnswer]] = []
    cancelled: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    for command, answer in reversed(answered):
        remaining_effects = tuple(effect for effect in answer.effects if effect.effect_key not in cancelled)
        if answer.done and isinstance(command, Command) and command.spec.name in replaced:
            remaining_effects = ()
        results.append(
            (
                command,
                answer if remaining_effects == answer.effects else CommandAnswer(remaining_effects, texts.OVERRIDDEN),
            )
        )
        cancelled |= answer.calls_off
        replaced |= answer.replaces
    return results[::-1]


def help_url(context: Context) -> str | None:
    """Return the address of the page with all commands (`bot.web.help`); None without `public_url` in app.yaml."""
    return page_url(context, help_path(context.repository.full_name)) or None
