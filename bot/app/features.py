"""All features joined with what the bot does without any: handlers, commands, and the kinds of effects."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from bot.app import timers_route
from bot.app.redelivery import MISSING
from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import StartJenkinsBuild
from bot.commands.dialogue import NAME as DIALOGUE
from bot.commands.dialogue import Dialogue
from bot.commands.effects import COMMANDS_BY, COMMANDS_ON, CountCommands
from bot.commands.spec import CommandRegistry
from bot.effects.checks import CHECK_RUN, PutCheckRun
from bot.effects.comments import STICKY, Reply, UpsertSection
from bot.effects.issues import ISSUE, ISSUE_MOMENT, NEWS_STATE, EnsureIssue, EnsureIssueSection
from bot.effects.labels import EnsureLabel
from bot.effects.pulls import PULL_BRANCH, EnsurePull
from bot.effects.reactions import React, RemoveReaction
from bot.effects.refs import MoveBranch
from bot.effects.remember import SHOWN_CHANGE, StoreRecord
from bot.effects.reverts import OPENED_REVERT, OpenRevert
from bot.effects.section_handlers import section_router
from bot.effects.section_state import SECTION, SECTION_EVENT, SECTION_TEXT
from bot.effects.sections import MarkOutOfDate, RequestSection, ShowSection, SubmitSection
from bot.effects.statuses import SetStatus
from bot.engine.internal import events_by_name
from bot.engine.records import RecordRegistry
from bot.feature import Feature, Services
from bot.github import pull_heads
from bot.github.repositories.known import KNOWN_REPOSITORY
from bot.github.repositories.matching import PATTERN_CHANGES
from bot.github.repositories.permissions import Permissions
from bot.github.repositories.privacy import CALLED_PRIVATE
from bot.news import handler as news
from bot.news.effects import MESSAGE_EVENT, PostMessage, PostNews
from bot.plan.codec import Codec
from bot.plan.handler import Router, joined
from bot.timers import timers
from bot.timers.metrics import TimerGauges
from bot.timers.timers import TimerState, timer_states
from bot.web.openapi import Operation
from bot.web.sign_in.sessions import SESSION
from handlers import FEATURES

SECTIONS = tuple(section for feature in FEATURES for section in feature.sections)


def routes(services: Services) -> Sequence[Operation]:
    """Return the route of repositories' timers."""

    async def timers_of(repository: str) -> list[TimerState]:
        if services.config.repository(repository) is None:
            raise LookupError(repository)
        return await timer_states(services.config, services.records, services.journal, services.now(), repository)

    return [timers_route.operation(timers_of)]


def metrics(services: Services, registry: CollectorRegistry) -> TimerGauges:
    """Return the gauges of repositories' timers."""

    async def states() -> list[TimerState]:
        return await timer_states(
            services.config, services.records, services.journal, services.now(), with_reasons=False
        )

    return TimerGauges(states, services.now, registry)


BOT = Feature(
    name="bot",
    router=joined([news.router, section_router(SECTIONS)]),
    titles={"news": "News of the bot", "sections": "The bot's comment", "sections-out-of-date": "The bot's comment"},
    effects=(
        ApproveRun,
        CountCommands,
        EnsureIssue,
        EnsureIssueSection,
        EnsureLabel,
        EnsurePull,
        StartJenkinsBuild,
        MarkOutOfDate,
        MoveBranch,
        OpenRevert,
        PostMessage,
        PostNews,
        PutCheckRun,
        React,
        RemoveReaction,
        StoreRecord,
        Reply,
        RequestSection,
        RerunJob,
        RerunWorkflow,
        SetStatus,
        ShowSection,
        SubmitSection,
        UpsertSection,
    ),
    events=(MESSAGE_EVENT, SECTION_EVENT, SECTION_TEXT, timers.TIMER_EVENT),
    records=(
        *timers.RECORDS,
        *pull_heads.RECORDS,
        CALLED_PRIVATE,
        CHECK_RUN,
        COMMANDS_BY,
        COMMANDS_ON,
        ISSUE,
        ISSUE_MOMENT,
        KNOWN_REPOSITORY,
        PATTERN_CHANGES,
        MISSING,
        NEWS_STATE,
        OPENED_REVERT,
        PULL_BRANCH,
        SECTION,
        SESSION,
        SHOWN_CHANGE,
        STICKY,
    ),
    routes=routes,
    metrics=metrics,
)
"""Everything that belongs to no feature or to several."""

ALL_FEATURES = (*FEATURES, BOT)
COMMANDS = tuple(command for feature in ALL_FEATURES for command in feature.commands)
REGISTRY = CommandRegistry(spec for spec, _ in COMMANDS)
CODEC = Codec(kind for feature in ALL_FEATURES for kind in feature.effects)
EVENTS = events_by_name(event for feature in ALL_FEATURES for event in feature.events)
RECORDS = RecordRegistry((feature.name, record) for feature in ALL_FEATURES for record in feature.records)
TITLES = {
    DIALOGUE: "Commands",
    **{name: title for feature in ALL_FEATURES for name, title in feature.titles.items()},
}
"""What each handler is about, by its name."""
NOTES = {
    event: [feature.note for feature in ALL_FEATURES if event in feature.notes_of]
    for event in {event for feature in ALL_FEATURES for event in feature.notes_of}
}
"""By event, the functions by which features store parts of its deliveries."""


def full_router() -> Router:
    """Return all handlers; that of commands comes first, so that the others of a delivery see what it changed."""
    return joined([Dialogue(COMMANDS, Permissions()).router, *(feature.router for feature in ALL_FEATURES)])
