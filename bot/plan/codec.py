"""Effects as JSON and back: the form in which plans are stored, shown and replayed."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import JenkinsBuild
from bot.commands.effects import CountCommands
from bot.core.payload import Json
from bot.effects.checks import AskForCheck, PutCheckRun
from bot.effects.comments import Reply, UpsertSection
from bot.effects.conclude import Conclude
from bot.effects.issues import KeepIssue
from bot.effects.labels import KeepLabel
from bot.effects.pulls import KeepPull
from bot.effects.reactions import React
from bot.effects.refs import MoveBranch
from bot.effects.remember import Remember
from bot.effects.sections import AskForSection, HandOverSection, MarkOutOfDate, ShowSection
from bot.effects.statuses import SetStatus
from bot.news.effects import PostNews, Tell
from bot.plan.effect import Effect
from handlers.branches.last_good_effects import ConcludeLastGood
from handlers.branches.nightly_effects import ConcludeNightly, MarkNightly, PublishNightly
from handlers.cc_reviewers.effects import RequestReviewers, TellOfReviewers
from handlers.hardware.effects import TakeRun
from handlers.main_failures.effects import AskForLook
from handlers.merge.effects import LeaveQueue, MergePull
from handlers.merge.request_effects import EndWish, KeepWish, LookAtPull
from handlers.merge.update_effects import UpdateBranch
from handlers.repository_file.effects import KeepRepositoryFile
from handlers.stale_reviews.effects import Remind
from handlers.team_tags.effects import KeepTeamList, MentionFollowers

KINDS: dict[str, type[Effect]] = {
    kind.__name__: kind
    for kind in (
        ApproveRun,
        AskForCheck,
        AskForLook,
        AskForSection,
        Conclude,
        ConcludeLastGood,
        ConcludeNightly,
        CountCommands,
        EndWish,
        HandOverSection,
        JenkinsBuild,
        KeepIssue,
        KeepLabel,
        KeepPull,
        KeepRepositoryFile,
        KeepTeamList,
        KeepWish,
        LeaveQueue,
        LookAtPull,
        MarkNightly,
        MarkOutOfDate,
        MentionFollowers,
        MergePull,
        UpdateBranch,
        MoveBranch,
        PostNews,
        PublishNightly,
        PutCheckRun,
        React,
        Remember,
        Remind,
        Reply,
        RequestReviewers,
        RerunJob,
        RerunWorkflow,
        SetStatus,
        ShowSection,
        TakeRun,
        Tell,
        TellOfReviewers,
        UpsertSection,
    )
}

_ADAPTERS: dict[str, TypeAdapter[Effect]] = {name: TypeAdapter(kind) for name, kind in KINDS.items()}


def encode(effect: Effect) -> dict[str, Any]:
    """Return the effect as JSON values, its kind under `kind`."""
    kind = type(effect).__name__
    return {"kind": kind, **_ADAPTERS[kind].dump_python(effect, mode="json")}


def decode(stored: Json) -> Effect:
    """Return the effect that was stored; raises `ValueError` for one that this version does not know."""
    fields = dict(stored)
    kind = cast("str", fields.pop("kind"))
    if kind not in _ADAPTERS:
        raise ValueError(f"this version knows no effect {kind}; one of {', '.join(KINDS)} was expected")
    return _ADAPTERS[kind].validate_python(fields)
