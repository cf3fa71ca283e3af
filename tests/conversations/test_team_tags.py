"""Pull requests and issues with tags and labels: their subscribers are notified once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.github.text import sticky
from handlers.teams.handler import READ_AGAIN_SECONDS
from handlers.teams.records import TEAM_LIST
from sandbox.model.issues import Issue
from tests.conversations.town import BOT, REPOSITORY, Town
from tests.conversations.town import town as start_town
from tests.gfm import rendered

QUIET = f"""
repositories:
  {REPOSITORY}:
    slow_tests: false
    repository_file: false
"""
CONFIG = f"""{QUIET}
    teams: {{topics: {{hexagon: ["@octocat", "@Triager"], adreno: ["@octocat", "@monalisa"]}}}}
"""
BY_LIST = f"{QUIET}\n    teams: {{issue: 1}}\n"
REPO = "/repos/{owner}/{repo}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
EDIT, ISSUE = f"PATCH {REPO}/issues/comments/{{comment_id}}", f"GET {REPO}/issues/{{issue_number}}"
WRITTEN, EDITED = {COMMENTS: 1, COMMENT: 1}, {COMMENTS: 1, EDIT: 1}
ROLE = f"GET {REPO}/collaborators/{{username}}/permission"
LIST_READ = {ISSUE: 1, COMMENTS: 1}


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as town:
        await warm(town)
        yield town


@pytest.fixture
async def listing(tmp_path: Path) -> AsyncIterator[Town]:
    """Return a town where issue 1 lists who subscribes to what."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=BY_LIST) as town:
        town.repo.open_issue("octocat", "Who follows what", "- hexagon: @octocat\n\nthanks to monalisa for this")
        await warm(town)
        yield town


async def warm(town: Town) -> None:
    """Let the bot look up its own account."""
    town.repo.open_pull_request("reader", "cc", "cc @octocat")
    await cost(town)


async def cost(town: Town) -> Counter[str]:
    """Return the requests since the previous call."""
    await town.quiet()
    counts = Counter(f"{r.method} {r.route}" for r in town.github.requests.of_installation)
    town.github.requests.clear()
    return counts


def section_text(issue: Issue) -> str:
    """Return the text of the section, empty if there is none."""
    return "".join(sticky.sections_of(comment.body)["team-tags"] for comment in issue.comments_by(BOT))


async def a_day_later(town: Town) -> None:
    """Let a day pass since the list was read."""
    key = TEAM_LIST.of(town.repo.id)
    record = await town.bot.engine.records.get(key)
    assert record is not None
    await town.bot.engine.records.put(key, replace(record, read_at=record.read_at - READ_AGAIN_SECONDS))


async def as_if_another_issue_was_named(town: Town) -> None:
    """Make the stored list that of an issue that app.yaml named before."""
    key = TEAM_LIST.of(town.repo.id)
    record = await town.bot.engine.records.get(key)
    assert record is not None
    await town.bot.engine.records.put(key, replace(record, issue=77))


async def test_a_tag_in_the_title_notifies_its_subscribers(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "[Hexagon] Faster", "Saves a pass.")
    assert await cost(town) == WRITTEN
    assert section_text(pull) == "**Teams:** cc @octocat and @Triager, for `hexagon`."
    assert "nightjar" not in rendered(pull.comments[0].body)


async def test_the_authors_own_text_is_not_changed(town: Town) -> None:
    """TVM #12637: names that were written into a description ended up in the merge message."""
    pull = town.repo.open_pull_request("hubot", "[hexagon] Faster", "Saves a pass.\r\n\r\ncc @monalisa, @reader\r\n")
    await town.quiet()
    assert pull.body == "Saves a pass.\r\n\r\ncc @monalisa, @reader\r\n"
    assert town.github.requests.count("PATCH", f"{REPO}/pulls/{{pull_number}}") == 0
    assert section_text(pull)


async def test_on_an_issue_subscribers_are_mentioned_in_one_comment(town: Town) -> None:
    issue = town.repo.open_issue("hubot", "[hexagon] It is slow", None)
    assert await cost(town) == WRITTEN
    assert section_text(issue) == "**Teams:** cc @octocat and @Triager, for `hexagon`."
    issue.label("hubot", "Adreno")
    assert await cost(town) == EDITED
    assert section_text(issue) == "**Teams:** cc @monalisa, @octocat and @Triager, for `adreno`, `hexagon`."
    assert len(issue.comments) == 1


async def test_a_label_added_later_adds_new_people_in_place(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
    await town.quiet()
    (first,) = pull.comments
    pull.label("triager", "adreno", "good first issue")
    await town.quiet()
    assert pull.comments == [first]
    assert section_text(pull) == "**Teams:** cc @monalisa, @octocat and @Triager, for `adreno`, `hexagon`."


async def test_events_without_new_people_cost_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
    await cost(town)
    pull.label("triager", "hexagon", "needs-review")
    pull.edit("hubot", title="[hexagon][tests] Faster", body="More words.")
    pull.unlabel("triager", "hexagon")
    pull.edit("hubot", title="Faster")
    pull.push()
    pull.close("hubot")
    pull.reopen("hubot")
    pull.label("triager", "hexagon")
    assert await cost(town) == {}
    assert section_text(pull) == "**Teams:** cc @octocat and @Triager, for `hexagon`."


@pytest.mark.parametrize("title", ["[] Faster", "[ ] Faster", "Faster", "[tests] Faster", "hexagon: faster"])
async def test_text_that_names_no_topic_notifies_nobody(town: Town, title: str) -> None:
    """TVM #11454, #11455: an empty tag notified people."""
    pull = town.repo.open_pull_request("hubot", title)
    assert await cost(town) == {}
    assert pull.comments == []


async def test_the_author_and_people_in_the_description_are_not_mentioned(town: Town) -> None:
    pull = town.repo.open_pull_request("triager", "[hexagon, adreno] Faster", "Thanks @Octocat.")
    await town.quiet()
    assert section_text(pull) == "**Teams:** cc @monalisa, for `adreno`."


async def test_a_draft_waits_until_it_is_ready(town: Town) -> None:
    """TVM #12824: one of its two bots mentioned people on drafts."""
    pull = town.repo.open_pull_request("hubot", "[hexagon] Faster", draft=True)
    pull.label("hubot", "adreno")
    pull.edit("hubot", title="[hexagon] Much faster")
    assert await cost(town) == {}
    pull.ready_for_review("hubot")
    await town.quiet()
    assert section_text(pull) == "**Teams:** cc @monalisa, @octocat and @Triager, for `adreno`, `hexagon`."


async def test_nobody_is_mentioned_on_a_closed_issue(town: Town) -> None:
    issue = town.repo.open_issue("hubot", "It is slow")
    issue.close("hubot")
    issue.label("hubot", "hexagon")
    assert await cost(town) == {}
    issue.reopen("hubot")
    await town.quiet()
    assert section_text(issue)


async def test_other_sections_and_other_peoples_comments_stay_as_they_are(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment(BOT, sticky.render({"docs": "built"}))
    forged = pull.comment("reader", sticky.render({"team-tags": "cc @everybody"}))
    pull.label("hubot", "hexagon")
    await town.quiet()
    assert sticky.sections_of(comment.body).keys() == {"docs", "team-tags"}
    assert forged.body == sticky.render({"team-tags": "cc @everybody"})


async def reasons(town: Town) -> str:
    """Return the reasons of all events in the audit record."""
    return "\n".join(job.text for record in await town.bot.engine.journal.recent(limit=500) for job in record.jobs)


async def test_the_list_on_an_issue_is_read_once_and_again_when_it_changes(listing: Town) -> None:
    """Requests do not grow with pull requests: the list is read when it changes, and once a day."""
    pull = listing.repo.open_pull_request("hubot", "[hexagon] Faster")
    assert await cost(listing) == WRITTEN
    assert section_text(pull) == "**Teams:** cc @octocat, for `hexagon`."
    for number in range(5):
        listing.repo.open_issue("hubot", f"[tests] {number}")
        pull.label("hubot", f"label-{number}")
    assert await cost(listing) == {}
    roll = listing.repo.issues[1]
    roll.edit("octocat", body="- hexagon: @octocat, @triager\r\n- adreno @reader\r\n")
    assert await cost(listing) == {**LIST_READ, ROLE: 2}
    pull.edit("hubot", title="[hexagon][adreno] Faster")
    assert await cost(listing) == EDITED
    assert section_text(pull) == "**Teams:** cc @octocat, @reader and @triager, for `adreno`, `hexagon`."


async def test_comments_of_people_with_access_also_list_subscribers_and_no_others_do(listing: Town) -> None:
    """TVM's list accepted any line with an `@` in anybody's comment."""
    roll = listing.repo.issues[1]
    comment = roll.comment("triager", "Me too:\n\n- hexagon @triager")
    roll.comment("stranger", "- hexagon @stranger")
    roll.comment("reader", "> - hexagon @reader\n\nDone.")
    await cost(listing)
    roll.comment("stranger", "- hexagon @passer-by")
    assert await cost(listing) == {ROLE: 1}
    pull = listing.repo.open_pull_request("hubot", "[hexagon][thanks] Faster")
    assert await cost(listing) == WRITTEN
    assert section_text(pull) == "**Teams:** cc @octocat and @triager, for `hexagon`."
    roll.edit_comment(comment, "- hexagon @monalisa")
    roll.delete_comment(comment)
    await listing.quiet()
    later = listing.repo.open_pull_request("hubot", "[hexagon] Faster still")
    await listing.quiet()
    assert section_text(later) == "**Teams:** cc @octocat, for `hexagon`."


async def test_an_unreadable_line_is_answered_once_with_the_correct_format(listing: Town) -> None:
    """These lines are from apache/tvm#10317: list items, lines without bullets, and notes in parentheses."""
    roll = listing.repo.issues[1]
    good = roll.comment("triager", "hexagon (phones): @triager (since June)\n1. adreno @reader")
    bad = roll.comment("hubot", "Please add me, @hubot, to hexagon\n\n- hexagon @monalisa")
    chat = roll.comment("stranger", "Please add @stranger to hexagon")
    await listing.quiet()
    reactions = [roll.reactions(comment) for comment in (good, bad, chat)]
    assert reactions == [[], ["confused"], []]
    (answer,) = roll.comments_by(BOT)
    assert answer.body.endswith(
        "I could not read this: `Please add me, @hubot, to hexagon`. "
        "Write a line for each topic with its people: `- hexagon: @octocat @hubot (phones)`. "
        "Put comments in parentheses."
    )
    pull = listing.repo.open_pull_request("hubot", "[hexagon][adreno] Faster")
    await listing.quiet()
    assert section_text(pull) == "**Teams:** cc @monalisa, @octocat, @reader and @triager, for `adreno`, `hexagon`."


async def test_unreadable_lines_in_the_issue_itself_are_answered_too(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=BY_LIST) as town:
        roll = town.repo.open_issue("octocat", "Who follows what", "- hexagon: @octocat\n- @hubot")
        await town.quiet()
        assert roll.reactions() == ["confused"]
        assert [comment.body.count("`@hubot`") for comment in roll.comments_by(BOT)] == [1]


async def test_a_member_that_github_calls_a_contributor_may_list_people(listing: Town) -> None:
    """`author_association` is CONTRIBUTOR for members of the organization who hide their membership."""
    listing.repo.set_role("monalisa", "triage")
    listing.repo.private_members.add("monalisa")
    roll = listing.repo.issues[1]
    roll.comment("monalisa", "- hexagon @monalisa")
    listing.repo.set_role("triager", "read")
    roll.comment("triager", "- hexagon @triager")
    await listing.quiet()
    pull = listing.repo.open_pull_request("hubot", "[hexagon] Faster")
    await listing.quiet()
    assert section_text(pull) == "**Teams:** cc @monalisa and @octocat, for `hexagon`."


async def test_an_issue_opened_by_somebody_without_access_lists_nobody(tmp_path: Path) -> None:
    """They may edit it at any time, whoever named the issue in app.yaml."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=BY_LIST) as town:
        roll = town.repo.open_issue("stranger", "Who follows what", "- hexagon: @stranger")
        roll.comment("triager", "- hexagon @triager")
        await warm(town)
        pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
        await town.quiet()
        assert section_text(pull) == "**Teams:** cc @triager, for `hexagon`."
        reason = "the author of issue 1 does not have the triage role, so its description was not read"
        assert reason in await reasons(town)


@pytest.mark.parametrize(
    ("read_before", "names", "instead"),
    [
        (True, "@monalisa and @octocat", "the stored list was used"),
        (False, "@octocat", "only the topics of app.yaml were used"),
    ],
)
async def test_topics_of_the_configuration_work_even_if_github_refuses_to_show_the_list(
    tmp_path: Path, read_before: bool, names: str, instead: str
) -> None:
    config = f'{QUIET}\n    teams: {{issue: 1, topics: {{hexagon: ["@octocat"]}}}}\n'
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        town.repo.open_issue("octocat", "Who follows what", "- hexagon @monalisa")
        await warm(town)
        await a_day_later(town)
        if not read_before:
            await as_if_another_issue_was_named(town)
        town.github.faults.add("GET", ISSUE.removeprefix("GET "), status=403, times=None)
        pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
        await town.quiet()
        assert section_text(pull) == f"**Teams:** cc {names}, for `hexagon`."
        assert (
            f"new subscribers of hexagon; GitHub refused to let the bot read issue 1 (403), so {instead}"
            in await reasons(town)
        )
        assert await town.failures() == []


async def test_a_list_of_more_than_a_hundred_comments_is_read_to_its_end(listing: Town) -> None:
    """TVM's bot read only the first hundred. Lost events are made up for within a day."""
    roll = listing.repo.issues[1]
    listing.github.webhooks.lose("issue_comment", times=150)
    for number in range(150):
        roll.comment("octocat", f"- topic-{number} @person-{number}")
    await a_day_later(listing)
    pull = listing.repo.open_pull_request("hubot", "[topic-149] Faster")
    assert await cost(listing) == {ISSUE: 1, COMMENTS: 3, ROLE: 1, COMMENT: 1}
    assert section_text(pull) == "**Teams:** cc @person-149, for `topic-149`."


async def test_a_missing_list_lists_nobody_and_is_not_requested_each_time(tmp_path: Path) -> None:
    config = CONFIG.replace("teams: {", "teams: {issue: 77, ")
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        await warm(town)
        pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
        requests = await cost(town)
        del requests[f"GET {REPO}"]  # before the bot believes the first 404, it reads the repository
        assert requests == Counter({ISSUE: 1}) + Counter(WRITTEN)
        assert section_text(pull)
        town.repo.open_pull_request("hubot", "[tests] Faster")
        assert await cost(town) == {}
        assert await town.failures() == []


async def test_teams_of_the_organization_are_mentioned(tmp_path: Path) -> None:
    config = f'{QUIET}\n    teams: {{topics: {{hexagon: ["@octocat/gpu", "@elsewhere/gpu"]}}}}\n'
    teams = {"gpu": ["triager"]}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config, teams=teams) as town:
        pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
        await town.quiet()
        assert section_text(pull) == "**Teams:** cc @octocat/gpu, for `hexagon`."


async def test_a_comment_that_could_not_be_written_is_written_at_the_next_event(town: Town) -> None:
    town.github.faults.add("POST", COMMENT.removeprefix("POST "), status=403, times=1)
    pull = town.repo.open_pull_request("hubot", "[hexagon] Faster")
    await town.quiet()
    assert pull.comments == []
    assert len(await town.failures()) == 1
    pull.label("hubot", "needs-review")
    await town.quiet()
    assert section_text(pull)


async def test_subscribers_that_could_not_be_found_out_are_said_in_the_section_until_they_can(listing: Town) -> None:
    """Names that are mentioned stay, because GitHub would notify them again; the reason goes."""
    pull = listing.repo.open_pull_request("hubot", "[Hexagon] Faster")
    await listing.quiet()
    mentioned = "**Teams:** cc @octocat, for `hexagon`."
    assert section_text(pull) == mentioned
    await a_day_later(listing)
    elsewhere = {"Link": '<http://elsewhere.example/next>; rel="next"'}
    comments_of_list = re.compile(r"/issues/1/comments\b")
    listing.github.faults.add("GET", comments_of_list, status=200, text="[{}]", headers=elsewhere, times=None)
    pull.edit("hubot", title="[Hexagon][Adreno] Faster")
    await listing.quiet()
    text = section_text(pull)
    assert text.startswith(f"{mentioned}\n\n**Teams:** I couldn't mention the subscribers. Something went wrong"), text
    listing.github.faults.clear()
    pull.edit("hubot", title="[Hexagon] Faster")
    await listing.quiet()
    assert section_text(pull) == mentioned
