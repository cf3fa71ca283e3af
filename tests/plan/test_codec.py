"""Effects as JSON and back: a plan that is stored, shown and replayed is the original plan."""

from __future__ import annotations

import json
from typing import get_type_hints

import pytest

from bot.app.features import ALL_FEATURES, CODEC
from bot.ci.rerun_actions import ApproveRun, RerunJob, RerunWorkflow
from bot.ci.rerun_jenkins import StartJenkinsBuild
from bot.ci.restarts import PullOrigin
from bot.commands.budget import CommandOutcome
from bot.commands.effects import CountCommands
from bot.core.errors import UnknownEffect
from bot.core.events import Person
from bot.core.line_edits import LineEdits
from bot.effects.checks import PutCheckRun
from bot.effects.comments import Reply, UpsertSection
from bot.effects.issues import EnsureIssue
from bot.effects.labels import EnsureLabel
from bot.effects.pulls import EnsurePull
from bot.effects.reactions import React, RemoveReaction
from bot.effects.refs import MoveBranch
from bot.effects.remember import StoreRecord
from bot.effects.sections import MarkOutOfDate, RequestSection, ShowSection, SubmitSection
from bot.effects.statuses import SetStatus
from bot.engine.records import StoredValue
from bot.github.check_runs import Action, Annotation, CheckContent
from bot.news.effects import PostMessage, PostNews
from bot.news.message import News
from bot.news.message import NewsItem as NewsItem
from bot.plan.codec import Codec
from bot.plan.effect import Effect
from handlers.cc_reviewers.effects import ReportReviewers, RequestReviewers
from handlers.device_tests.effects import ApproveDeviceJobs, CancelDeviceJobs, NoteShownStep, SubmitDeviceJob
from handlers.labs.dispatches import StartLabWorkflow
from handlers.labs.webhooks import SendLabWebhook
from handlers.main_failures.effects import RequestScan
from handlers.merge.effects import LeaveQueue, MergePull
from handlers.merge.pending_effects import EndPendingMerge, RequestRefresh, StorePendingMerge
from handlers.merge.records import PendingMerge
from handlers.merge.update_effects import UpdateBranch
from handlers.nightly.effects import MarkNightly, PublishNightly
from handlers.regressions.effects import StoreReports
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.results.effects import IngestRun, RequestCheckRun
from handlers.stale_reviews.effects import Remind
from handlers.teams.effects import MentionSubscribers, StoreTeamList
from tests.durable import effects

AT = "2026-11-20T05:10:00Z"
CONTENT = CheckContent(
    "neutral", "Title", "Summary", "Text", (Annotation("a.py", 1, "Title", "Message"),), (Action("Do", "Do it", "do"),)
)
PENDING_MERGE = PendingMerge(
    "a" * 40, "main", Person(2, "hubot", False), "https://github.example/octocat/compiler/pull/1", AT, True
)
ORIGIN = PullOrigin(12, 1, "main", 1, "fast")
EFFECTS: list[Effect] = [
    RequestCheckRun("example-lab", "gpu", "a" * 40),
    StoreReports("example-lab", "gpu", "a" * 40, "text"),
    RequestScan("main", "guid", 1_772_859_600.0, 180.0),
    RequestSection("runtime", 1, "a" * 40, {"over": True, "id": 7}),
    RemoveReaction("issue_comment", 7, "IC_7", "confused"),
    EndPendingMerge(1, PENDING_MERGE),
    SubmitSection("docs-link", 1, "a" * 40, "**Docs:** built.", 1_795_152_400.0),
    StartJenkinsBuild("https://ci.example.org/job/gpu/job/PR-1", 3, "gpu/pr-head", AT),
    SubmitDeviceJob(1, "a" * 40, "example-lab", "gpu", ("unit",), 2, "command", 2, "hubot", 1_795_152_400.0, True),
    ApproveDeviceJobs(1, "a" * 40, 2, "hubot"),
    CancelDeviceJobs(1, "pushed", other_than="a" * 40),
    NoteShownStep("example-lab", "7", 2),
    SendLabWebhook("example-lab", "7", 1),
    StartLabWorkflow("example-lab", "7", 1),
    CountCommands(1, 2, 1_795_152_400.0, 3, CommandOutcome.REFUSED, notified=True),
    EnsureIssue("alarm:main", "Main is broken", "`cpu/branch` fails.", news="**It fails**", news_key="alarm:7"),
    EnsureLabel(1, "ready-for-merge", on=True),
    StoreRepositoryFile("b" * 40, "a" * 40, "c" * 40, 1_795_152_400, "help: false\n", 0),
    StoreTeamList(10317, 1_795_152_400.0, {"hexagon": ("octocat", "octo-org/compiler")}),
    StorePendingMerge(1, PENDING_MERGE),
    LeaveQueue(1),
    UpdateBranch(12, "a" * 40, "main"),
    RequestRefresh(1, "a" * 40, 1_795_152_400.0),
    MentionSubscribers(1, "team-tags", ("octocat",), ("hexagon",)),
    MergePull(1, PENDING_MERGE, waited=True),
    MarkNightly(
        "a" * 40,
        "the branch nightly moved here on 2026-11-19, for labs to test",
        "https://ci.example.org/r/o/r/nightly",
    ),
    MarkOutOfDate(1, ("docs-link", "runtime")),
    EnsurePull("update", "main", AT, "a" * 40, "ci/images.ini", "[jenkins]\r\n", "key", "Title", "Body", "Message"),
    EnsurePull(
        "slow",
        "main",
        AT,
        "a" * 40,
        edits=(LineEdits("a.py", ((1, "@pytest.mark.slow"),), (7,)),),
        reviewers=("octocat",),
    ),
    MoveBranch("nightly", "a" * 40),
    PublishNightly({"branch": "nightly", "sha": "a" * 40}),
    PutCheckRun("hardware/example-lab/gpu", "a" * 40, "run-7", CONTENT, 1_795_152_400.0, True),
    PostNews("slack", "alarm:7", News("It is well", url="https://ci.example.org/7", good=True)),
    React("review", 7, "PRR_7", "eyes"),
    StoreRecord("slow-tests:5:1", StoredValue({"on": True, "nested": {"a": [1, None]}}, 1, 365.0)),
    StoreRecord("slow-tests:5:1", None),
    Remind(1, "@hubot: please review it.", AT),
    Reply(1, "Answer", AT),
    RequestReviewers(1, ("octocat",), ("example-lab/gpu",), ("octocat", "example-lab/gpu")),
    ApproveRun(7, "0" * 40, "CI", ORIGIN),
    RerunJob(9, 7, 2, "unit", ORIGIN),
    RerunWorkflow(7, 2, True, "CI", ORIGIN),
    SetStatus("a" * 40, "ci/slow-tests", "success", "On", record="slow-tests:5:1", recorded={"on": True}),
    ShowSection("docs-link", 1, "a" * 40, "**Docs:** built.", 1_795_152_400.0),
    IngestRun("device-results", "results/octocat/compiler/example-lab/gpu/manifest.json", "v1"),
    PostMessage(
        "discord",
        "alarm:7",
        News("It fails", (NewsItem("cpu/branch", "fails", "https://ci.example.org/7"),), 2, notes=("Ask hubot.",)),
    ),
    ReportReviewers(1, "cc-reviewers", "GitHub refused."),
    UpsertSection(1, "docs", "Built.", first=True),
]


WRITTEN_OUT = {type(effect).__name__ for effect in EFFECTS}
EXAMPLES = [CODEC.decode({"kind": kind, **fields}) for kind, fields in effects().items() if kind not in WRITTEN_OUT]
"""An example of each other kind, made from its fields."""


@pytest.mark.parametrize("effect", [*EFFECTS, *EXAMPLES], ids=lambda effect: type(effect).__name__)
def test_an_effect_survives_storage(effect: Effect) -> None:
    stored = json.loads(json.dumps(CODEC.encode(effect)))
    assert CODEC.decode(stored) == effect
    assert CODEC.decode(stored).effect_key == effect.effect_key


def test_no_effect_has_a_field_with_a_reserved_name() -> None:
    reserved = {"kind", "rank"}
    kinds = [kind for feature in ALL_FEATURES for kind in feature.effects]
    assert [kind for kind in kinds if reserved & set(get_type_hints(kind.__init__))] == []


def test_an_unknown_kind_or_version_is_refused_by_its_name() -> None:
    with pytest.raises(UnknownEffect, match="this version has no effect 'MergeEverything'; replay the delivery with"):
        CODEC.decode({"kind": "MergeEverything", "number": 7})


def test_an_encoded_effect_has_only_values_of_json() -> None:
    for effect in EFFECTS:
        encoded = CODEC.encode(effect)
        assert json.loads(json.dumps(encoded)) == encoded


def test_the_kinds_are_known_by_their_names_which_no_two_may_share() -> None:
    assert Codec([Reply, React]).kinds == {"Reply", "React"}
    with pytest.raises(ValueError, match="two kinds of effects are named Reply"):
        Codec([Reply, React, Reply])
