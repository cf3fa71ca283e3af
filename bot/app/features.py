"""All features joined with what the bot does without any: handlers, commands, and the kinds of effects."""

from __future__ import annotations

from bot.app.redelivery import MISSING
from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import JenkinsBuild
from bot.commands import help
from bot.commands.dialogue import Dialogue
from bot.commands.effects import COMMANDS_BY, COMMANDS_ON, CountCommands
from bot.commands.spec import Registry
from bot.effects.checks import CHECK_RUN, PutCheckRun, RequestCheckRun
from bot.effects.comments import STICKY, Reply, UpsertSection
from bot.effects.issues import ISSUE, ISSUE_MOMENT, NEWS_STATE, EnsureIssue
from bot.effects.labels import EnsureLabel
from bot.effects.pulls import PULL_BRANCH, EnsurePull
from bot.effects.reactions import React, RemoveReaction
from bot.effects.refs import MoveBranch
from bot.effects.remember import StoreRecord
from bot.effects.section_handlers import section_router
from bot.effects.section_state import SECTION
from bot.effects.sections import MarkOutOfDate, RequestSection, ShowSection, SubmitSection
from bot.effects.statuses import SetStatus
from bot.engine.records import RecordRegistry
from bot.feature import Feature
from bot.github import pull_heads
from bot.github.permissions import Permissions
from bot.github.privacy import CALLED_PRIVATE
from bot.github.repositories import KNOWN_REPOSITORY
from bot.news import handler as news
from bot.news.effects import PostMessage, PostNews
from bot.plan.codec import Codec
from bot.plan.handler import Router, joined
from bot.timers import timers
from handlers import FEATURES

SECTIONS = tuple(section for feature in FEATURES for section in feature.sections)

BOT = Feature(
    name="bot",
    config=("help",),
    router=joined([news.router, section_router(SECTIONS)]),
    commands=help.COMMANDS,
    effects=(
        ApproveRun,
        CountCommands,
        EnsureIssue,
        EnsureLabel,
        EnsurePull,
        JenkinsBuild,
        MarkOutOfDate,
        MoveBranch,
        PostMessage,
        PostNews,
        PutCheckRun,
        React,
        RemoveReaction,
        StoreRecord,
        Reply,
        RequestCheckRun,
        RequestSection,
        RerunJob,
        RerunWorkflow,
        SetStatus,
        ShowSection,
        SubmitSection,
        UpsertSection,
    ),
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
        MISSING,
        NEWS_STATE,
        PULL_BRANCH,
        SECTION,
        STICKY,
    ),
)
"""What belongs to no feature, or to several."""

ALL_FEATURES = (*FEATURES, BOT)
COMMANDS = tuple(command for feature in ALL_FEATURES for command in feature.commands)
REGISTRY = Registry(spec for spec, _ in COMMANDS)
CODEC = Codec(kind for feature in ALL_FEATURES for kind in feature.effects)
RECORDS = RecordRegistry((feature.name, record) for feature in ALL_FEATURES for record in feature.records)


def full_router() -> Router:
    """Return all handlers; that of commands comes first, so that the others of a delivery see what it changed."""
    return joined([Dialogue(COMMANDS, Permissions()).router, *(feature.router for feature in ALL_FEATURES)])
