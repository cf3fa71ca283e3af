"""Effects as JSON and back: the form in which plans are stored, shown and replayed."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import JenkinsBuild
from bot.commands.effects import CountCommands
from bot.core.payload import Json
from bot.effects.checks import PutCheckRun, RequestCheckRun
from bot.effects.comments import Reply, UpsertSection
from bot.effects.conclude import Conclude
from bot.effects.issues import EnsureIssue
from bot.effects.labels import EnsureLabel
from bot.effects.pulls import EnsurePull
from bot.effects.reactions import React
from bot.effects.refs import MoveBranch
from bot.effects.remember import Remember
from bot.effects.sections import MarkOutOfDate, RequestSection, ShowSection, SubmitSection
from bot.effects.statuses import SetStatus
from bot.news.effects import PostMessage, PostNews
from bot.plan.effect import Effect
from handlers.branches.last_good_effects import ConcludeLastGood
from handlers.branches.nightly_effects import ConcludeNightly, MarkNightly, PublishNightly
from handlers.cc_reviewers.effects import ReportReviewers, RequestReviewers
from handlers.hardware.effects import IngestRun
from handlers.main_failures.effects import RequestScan
from handlers.merge.effects import LeaveQueue, MergePull
from handlers.merge.pending_effects import EndPendingMerge, RequestRefresh, StorePendingMerge
from handlers.merge.update_effects import UpdateBranch
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.stale_reviews.effects import Remind
from handlers.team_tags.effects import MentionSubscribers, StoreTeamList

KINDS: dict[str, type[Effect]] = {
    kind.__name__: kind
    for kind in (
        ApproveRun,
        RequestCheckRun,
        RequestScan,
        RequestSection,
        Conclude,
        ConcludeLastGood,
        ConcludeNightly,
        CountCommands,
        EndPendingMerge,
        SubmitSection,
        JenkinsBuild,
        EnsureIssue,
        EnsureLabel,
        EnsurePull,
        StoreRepositoryFile,
        StoreTeamList,
        StorePendingMerge,
        LeaveQueue,
        RequestRefresh,
        MarkNightly,
        MarkOutOfDate,
        MentionSubscribers,
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
        IngestRun,
        PostMessage,
        ReportReviewers,
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
