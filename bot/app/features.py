"""All features joined with what the bot does without any: handlers, commands, and the kinds of effects."""

from __future__ import annotations

from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import JenkinsBuild
from bot.commands import help
from bot.commands.dialogue import Dialogue
from bot.commands.effects import CountCommands
from bot.commands.spec import Registry
from bot.effects.checks import PutCheckRun, RequestCheckRun
from bot.effects.comments import Reply, UpsertSection
from bot.effects.issues import EnsureIssue
from bot.effects.labels import EnsureLabel
from bot.effects.pulls import EnsurePull
from bot.effects.reactions import React, RemoveReaction
from bot.effects.refs import MoveBranch
from bot.effects.remember import Remember
from bot.effects.section_handlers import section_router
from bot.effects.sections import MarkOutOfDate, RequestSection, ShowSection, SubmitSection
from bot.effects.statuses import SetStatus
from bot.feature import Feature
from bot.github.permissions import Permissions
from bot.news import handler as news
from bot.news.effects import PostMessage, PostNews
from bot.plan.codec import Codec
from bot.plan.handler import Router, joined
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
        Remember,
        RemoveReaction,
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
)
"""What belongs to no feature, or to several."""

ALL_FEATURES = (*FEATURES, BOT)
COMMANDS = tuple(command for feature in ALL_FEATURES for command in feature.commands)
REGISTRY = Registry(spec for spec, _ in COMMANDS)
CODEC = Codec(kind for feature in ALL_FEATURES for kind in feature.effects)


def full_router() -> Router:
    """Return all handlers; that of commands comes first, so that the others of a delivery see what it changed."""
    return joined([Dialogue(COMMANDS, Permissions()).router, *(feature.router for feature in ALL_FEATURES)])
