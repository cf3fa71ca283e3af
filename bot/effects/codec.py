"""Effects as JSON and back: the form in which plans are stored, shown and replayed."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from bot.effects.actions import ApproveRun, RerunJob, RerunWorkflow
from bot.effects.base import Effect
from bot.effects.checks import AskForCheck, PutCheckRun
from bot.effects.commands import CountCommands
from bot.effects.comments import Reply, UpsertSection
from bot.effects.conclude import Conclude
from bot.effects.issues import KeepIssue
from bot.effects.jenkins import JenkinsBuild
from bot.effects.labels import KeepLabel
from bot.effects.last_good import ConcludeLastGood
from bot.effects.look import AskForLook
from bot.effects.merge import LeaveQueue, MergePull
from bot.effects.nightly import ConcludeNightly, MarkNightly, PublishNightly
from bot.effects.pulls import KeepPull
from bot.effects.reactions import React
from bot.effects.refs import MoveBranch
from bot.effects.remember import Remember
from bot.effects.remind import Remind
from bot.effects.repository_file import KeepRepositoryFile
from bot.effects.reviewers import RequestReviewers, TellOfReviewers
from bot.effects.runs import TakeRun
from bot.effects.sections import AskForSection, HandOverSection, MarkOutOfDate, ShowSection
from bot.effects.statuses import SetStatus
from bot.effects.teams import KeepTeamList, MentionFollowers
from bot.effects.tell import PostNews, Tell
from bot.effects.update import UpdateBranch
from bot.effects.wishes import EndWish, KeepWish, LookAtPull
from bot.payload import Json

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
