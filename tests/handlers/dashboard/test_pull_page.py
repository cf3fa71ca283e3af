"""`/r/{owner}/{repo}/pulls/{n}`: the audit log of one pull request as a story, without what strangers may not see."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from nightjar_formats.model import TargetKey

from bot.app.features import TITLES, full_router
from bot.effects.checks import CHECK_RUN, WrittenCheckRun
from bot.effects.section_state import SECTION, SectionState
from bot.engine.jobs import notes
from bot.engine.jobs.notes import Note
from bot.github.pull_heads import HEAD, PullHead
from bot.results.report.findings import IgnoredFailures
from bot.web.texts import page_words
from handlers.dashboard.pull.page import DELIVERIES
from handlers.dashboard.pull.story import WRITTEN, effect_words
from handlers.device_tests.effects import step_guids
from handlers.device_tests.store import JobStore
from handlers.labs.webhooks import webhook_guids
from handlers.results.records import IGNORED
from handlers.stale_reviews.records import REMINDED_AT, Reminded
from tests.durable import stored
from tests.handlers.dashboard.nightly_runs import HEXAGON, REPOSITORY, sha
from tests.handlers.dashboard.site import DashboardSite
from tests.handlers.dashboard.stored_history import REPOSITORY_ID
from tests.handlers.dashboard.stored_story import HOSTILE, NUMBER, SECRET, StoryWriter, effect
from tests.handlers.device_tests.cases import queued

ALL_KINDS = 44
"""A pull request for which the bot applied an effect of each kind."""
OF_THE_PULL = {
    *("ApproveDeviceJobs", "ApproveRun", "CancelDeviceJobs", "CountCommands", "EndPendingMerge", "EnsureLabel"),
    *("CheckRevert", "CorrectDraft", "MakeRevertedHead", "RemoveRevertedHead", "StoreRevert"),
    *("CancelPausedJobs", "LeaveQueue", "MarkOutOfDate", "MentionSubscribers", "MergePull", "OpenRevert", "React"),
    *("RemoveReaction", "Reply"),
    *("ReportReviewers", "RequestReviewers", "RerunJob", "RerunWorkflow", "ShowSection", "StartJenkinsBuild"),
    *("StorePendingMerge", "SubmitDeviceJob", "UpdateBranch", "UpsertSection"),
}
"""Kinds of effects of deliveries that have the lock of the pull request."""
OF_THE_HEAD = {"RequestRefresh", "RequestSection", "SetStatus"}
OF_A_SECTION = {"SubmitSection"}
OF_A_DEVICE_TEST, OF_A_CALL = {"NoteShownStep", "PutCheckRun"}, {"SendLabWebhook", "StartLabWorkflow"}
"""Kinds whose deliveries have other locks, but known GUIDs: those of the steps of a job, and of calls to its lab."""
BY_RECORD = {
    "IngestRun": "results",
    "RequestCheckRun": "check_runs",
    "StoreRecord": "ignored_failures",
    "Remind": "reminded_at",
}
"""Kinds of which the page shows what they left behind, and where."""
NOT_OF_PULLS = {
    *("EnsureIssue", "EnsurePull", "MarkNightly", "MoveBranch", "PostMessage", "PostNews", "PublishNightly"),
    *("RequestScan", "SearchMoves", "SubmitCommitJob", "StoreReports", "StoreRepositoryFile", "StoreTeamList"),
    *("AnnounceBegun", "EnsureIssueSection", "StartSearch", "StoreSearch"),
}
pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE, API = "/r/octocat/compiler/pulls", "/api/v1/repos/octocat/compiler/pulls"


async def test_it_shows_events_decisions_and_writes(site: DashboardSite) -> None:
    status, answered = await site.json(f"{API}/{NUMBER}")
    assert status == 200
    assert [(delivery["event"], delivery["state"]) for delivery in answered["deliveries"]] == [
        ("pull_request.synchronize", "failed"),
        ("issue_comment.created", "failed"),
        ("issue_comment.created", "done"),
        ("pull_request.opened", "done"),
    ]
    command = answered["deliveries"][2]
    plans = [
        (plan["handler"], plan["why"], [effect["wrote"] for effect in plan["effects"]]) for plan in command["plans"]
    ]
    assert plans == [
        ("commands", "merge, asked for by hubot", [""]),
        ("commands", "all effects were applied", []),
        ("merge", "waits for cpu/pr-head", ["I merge it when `cpu/pr-head` is green."]),
    ]
    assert (answered["ignored"], answered["older"]) == (1, None)
    assert (answered["head"], answered["merge"]["by"], answered["merge"]["why"]) == (
        {
            **{"sha": sha(13), "base": "main", "is_open": True, "state": "open"},
            **{"title": "", "author": "", "merged_by": "", "merged_at": None},
        },
        "hubot",
        "waits for cpu/pr-head",
    )


async def test_each_effect_links_what_it_created_or_changed(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{NUMBER}")
    effects = [
        effect
        for delivery in answered["deliveries"]
        for plan in delivery["plans"]
        for effect in plan["effects"]
        if effect["url"]
    ]
    repository = "https://github.com/octocat/compiler"
    assert [(effect["what"], effect["url"], effect["link"]) for effect in effects] == [
        ("Reply", f"{repository}/pull/42#issuecomment-7", "comment"),
        ("Set status", f"{repository}/commit/{sha(13)}/checks", "checks"),
    ]
    _, _, page = await site.get(f"{PAGE}/{NUMBER}")
    for shown in effects:
        assert f'<a href="{shown["url"]}">{shown["link"]}</a>' in page


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("pull/42", "#42"),
        ("issues/7", "#7"),
        ("pull/42#pullrequestreview-1", "review"),
        ("runs/5", "check run"),
        ("actions/runs/6", "workflow run"),
        ("actions/runs/6/job/8", "job"),
        (f"commit/{sha(13)}", "commit"),
        ("tree/release/checks", "branch"),
        ("", ""),
    ],
)
async def test_the_text_of_a_link_names_its_page(page: str, words: str) -> None:
    assert page_words(page) == words


async def test_a_stored_address_outside_of_github_is_no_link(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{HOSTILE}")
    (effect,) = [
        effect for delivery in answered["deliveries"] for plan in delivery["plans"] for effect in plan["effects"]
    ]
    assert (effect["url"], effect["link"]) == ("", "")


async def test_each_handler_has_a_readable_name(site: DashboardSite) -> None:
    assert TITLES.keys() == {handler.name for handler in full_router().handlers}
    _, _, page = await site.get(f"{PAGE}/{NUMBER}")
    assert "<li>Slow tests: the title has no slow tests" in page.replace("<wbr>", "")


async def test_deliveries_without_work_are_hidden_by_default(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{NUMBER}?all=true")
    assert [delivery["state"] for delivery in answered["deliveries"]].count("ignored") == 1


async def test_older_deliveries_have_their_own_page(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{NUMBER}?before=1")
    assert (answered["deliveries"], answered["older"]) == ([], None)


async def test_errors_read_as_on_github_and_details_are_for_operators(site: DashboardSite) -> None:
    _, _, page = await site.get(f"{PAGE}/{NUMBER}")
    assert "GitHub denied this: the App needs <em>Actions: write</em>." in page.replace("<wbr>", "")
    assert "Operators can find the reason in the log under delivery 0b989ba4" in page.replace("<wbr>", "")
    for hidden in ("internal.example.org", SECRET, "a comment of somebody else"):
        assert hidden not in page.replace("<wbr>", "")


async def test_text_from_outside_is_escaped_and_contains_no_secret(site: DashboardSite) -> None:
    status, _, page = await site.get(f"{PAGE}/{HOSTILE}")
    assert status == 200
    assert "<script>alert" not in page
    assert "javascript:" not in [part[:11] for part in page.split('href="')]
    assert SECRET not in page
    assert "configured-secret" not in page
    assert page.count("[redacted]") == 2


@pytest.mark.parametrize(
    ("path", "status"),
    [("compiler/pulls/7", 404), ("docs/pulls/42", 404), ("secret/pulls/42", 404), ("compiler/pulls/x", 400)],
)
async def test_an_unknown_pull_request_is_not_found(site: DashboardSite, path: str, status: int) -> None:
    assert (await site.get(f"/r/octocat/{path}"))[0] == status


async def test_the_text_of_a_status_is_shown_once(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{NUMBER}")
    (status,) = [
        effect
        for delivery in answered["deliveries"]
        for plan in delivery["plans"]
        for effect in plan["effects"]
        if effect["what"] == "Set status"
    ]
    _, _, page = await site.get(f"{PAGE}/{NUMBER}")
    assert status["wrote"] in status["outcome"]
    assert page.replace("<wbr>", "").count(status["wrote"]) == 1


async def test_it_lists_the_sections_of_the_sticky_comment_about_commits(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/{NUMBER}")
    (section,) = answered["sections"]  # the other section is empty
    assert (section["section"], section["sha"], section["out_of_date"]) == ("runtime", sha(12), True)
    assert "of an older head" in (await site.get(f"{PAGE}/{NUMBER}"))[2]


async def test_the_story_contains_the_texts_that_people_see_on_github() -> None:
    """Effects whose text everybody sees have it on the page; the texts of these are for other readers."""
    unwritten = {"StoreRepositoryFile", "SubmitSection", "EnsureIssue", "EnsureIssueSection", "EnsurePull"}
    with_text = {kind for kind, fields in stored("effects").items() if {"text", "description", "body"} & fields.keys()}
    assert with_text - unwritten == set(WRITTEN)


async def test_each_kind_of_effect_has_a_place_on_the_page(site: DashboardSite) -> None:
    """The bot's comment promises *everything I did*: a new kind of effect has to be placed here, and on the page."""
    kinds = stored("effects").keys()
    placed = [OF_THE_PULL, OF_THE_HEAD, OF_A_SECTION, OF_A_DEVICE_TEST, OF_A_CALL, BY_RECORD.keys(), NOT_OF_PULLS]
    assert sorted(kind for group in placed for kind in group) == sorted(kinds)

    connector, head = site.records.connector, sha(13)
    key = TargetKey(REPOSITORY, *HEXAGON)
    writer = StoryWriter(connector, REPOSITORY_ID, ALL_KINDS)

    async def applies(event: str, kinds: Iterable[str], lock: str = "", guid: str = "") -> None:
        effects = [(effect(kind, kind), Note(notes.APPLIED, "did it")) for kind in kinds]
        await writer.delivery(event, "", ("commands", "", effects), lock=lock, guid=guid)

    await applies("issue_comment", OF_THE_PULL)
    of_head = f"sha:{REPOSITORY_ID}:{head}"
    for _ in range(DELIVERIES):  # CI reports, and nothing follows
        await writer.delivery("status", "", ("merge", "no merge is pending", []), lock=of_head)
    await applies("status", OF_THE_HEAD, lock=of_head)
    await applies("nightjar.section", OF_A_SECTION, lock=f"section:{REPOSITORY_ID}#{ALL_KINDS}:runtime")
    job = queued("job-44", pull_request=ALL_KINDS, sha=head)
    await JobStore(connector).submit(job, approval_needed=False)
    for kinds_of_job, guid in ((OF_A_DEVICE_TEST, step_guids(job)[0]), (OF_A_CALL, webhook_guids(job)[0])):
        await applies("nightjar.device-job", kinds_of_job, lock=f"check:{REPOSITORY_ID}:{key.check_name}", guid=guid)
    await site.records.put_all(
        {
            HEAD.of(REPOSITORY_ID, ALL_KINDS): PullHead(head, {}, "", "main", 1, True, ""),
            SECTION.of(REPOSITORY_ID, ALL_KINDS, "runtime"): SectionState(head, 1.0, "digest"),
            CHECK_RUN.of(REPOSITORY_ID, head, key.check_name): WrittenCheckRun(1.0, 5, title="1 new failure"),
            IGNORED.of(REPOSITORY_ID, ALL_KINDS, *HEXAGON): IgnoredFailures("hubot", head, "", frozenset({("a", "b")})),
            REMINDED_AT.of(REPOSITORY_ID, ALL_KINDS): Reminded("2026-11-20T05:00:00Z"),
        }
    )
    _, page = await site.json(f"{API}/{ALL_KINDS}")
    shown = [part["what"] for story in page["deliveries"] for plan in story["plans"] for part in plan["effects"]]
    in_story = {*OF_THE_PULL, *OF_THE_HEAD, *OF_A_SECTION, *OF_A_DEVICE_TEST, *OF_A_CALL}
    assert sorted(shown) == sorted(map(effect_words, in_story))
    assert [kind for kind, member in BY_RECORD.items() if not page[member]] == []
    assert (await site.get(f"{PAGE}/{ALL_KINDS}"))[0] == 200
