"""Commands: where they are allowed, what is not a command, and how the bot acknowledges them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversations.town import CONFIG, SECRET, Town
from tests.conversations.town import town as start_town

ON = "On: requested by hubot. To turn off, comment: @ci skip slow tests"
OFF = "Off: nobody requested them. To turn on, comment: @ci run slow tests"
REACT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"


def slow(town: Town, sha: str) -> str | None:
    status = town.repo.status(sha, "ci/slow-tests")
    return status.description if status else None


async def test_several_commands_of_one_comment_get_one_pair_of_eyes_and_one_answer(town: Town) -> None:
    """A comment may hold any number of commands, each on its own line."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    comment = pull.comment("hubot", "Once more, please.\n\n@ci skip slow tests\n@ci rerun\n\n- @ci help")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert run.attempt == 2
    (answer,) = town.answers(pull)
    assert [line[:25] for line in answer.splitlines() if line.startswith("- ")] == [
        "- `@ci rerun`: Restarting",
        "- `@ci help`: Put each co",
    ]
    assert town.github.requests.count("POST", REACT) == 2


async def test_the_bots_own_answer_is_ignored_when_it_comes_back_as_a_webhook(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    pull.comment("hubot", "@ci help")
    await town.quiet()
    (answer,) = town.answers(pull)
    assert "@ci help" in answer
    deliveries = town.github.webhooks.find("issue_comment")
    records = await town.bot.engine.journal.deliveries([delivery.guid for delivery in deliveries])
    by_person, by_bot = (records[delivery.guid] for delivery in deliveries)
    assert (by_person.state, [plan.handler for plan in by_person.plans]) == ("done", ["commands", "commands"])
    assert (by_bot.state, by_bot.plans) == ("ignored", ())


async def test_polite_words_around_a_command_are_ignored(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    thanks = pull.comment("hubot", "@ci thanks!")
    await town.quiet()
    assert pull.reactions(thanks) == []
    assert town.answers(pull) == []


@pytest.mark.parametrize(
    "command",
    ["@CI   Run  Slow Tests", "@ci: run slow tests.", "  @ci run slow tests please", "**@ci run slow tests**"],
)
async def test_case_and_spacing_do_not_matter(town: Town, command: str) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", f"Hello\n\n{command}\r\n\r\nBye")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert slow(town, pull.head_sha) == ON


NO_COMMANDS = (
    "> @ci run slow tests\nI would not.",
    "```\n@ci run slow tests\n```",
    "    @ci run slow tests",
    "Write `@ci run slow tests` for that.",
    "`@ci run slow tests`",
    "<!-- @ci run slow tests -->",
    "<!--\n@ci run slow tests\n-->",
    "[@ci run slow tests](https://example.org)",
    "Ask with @ci run slow tests",
    "@circus run slow tests",
    "me@ci run slow tests",
    "<details>\n\n@ci run slow tests\n\n</details>",
)


async def test_code_quotes_html_comments_and_links_are_not_commands(town: Town) -> None:
    pulls = [town.repo.open_pull_request("hubot", "Faster") for _ in NO_COMMANDS]
    comments = [pull.comment("hubot", text) for pull, text in zip(pulls, NO_COMMANDS, strict=True)]
    await town.quiet()
    for pull, comment, text in zip(pulls, comments, NO_COMMANDS, strict=True):
        assert (pull.reactions(comment), town.answers(pull), slow(town, pull.head_sha)) == ([], [], OFF), text


async def test_a_typo_is_answered_with_the_nearest_command_and_help(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci rnu slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert "😕 `@ci rnu slow tests`: I don't know this command. Did you mean `@ci run slow tests`?" in answer
    assert "`@ci help` lists all commands." in answer
    assert slow(town, pull.head_sha) == OFF


async def test_a_malformed_command_gets_an_error_and_the_others_are_carried_out(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", '@ci rerun "unit\n@ci help me\n@ci run slow tests')
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert "A quotation mark has no closing mark." in answer
    assert "😕 `@ci help me`: This command takes no arguments." in answer
    assert "- `@ci run slow tests`: done." in answer
    assert slow(town, pull.head_sha) == ON


async def test_commands_in_a_review_work_and_get_their_reactions_through_graphql(town: Town) -> None:
    """REST has no reactions for reviews."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.\n\n@ci help", "APPROVED")
    await town.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert town.github.requests.count("POST", "/graphql") == 2
    (answer,) = town.answers(pull)
    assert "About [your review](" in answer


async def test_an_edited_review_runs_only_its_new_commands(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.")
    await town.quiet()
    pull.edit_review(review, "Looks right.\n\n@ci run slow tests")
    await town.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]


async def test_a_second_edit_of_a_review_in_the_same_moment_runs_its_new_commands(town: Town) -> None:
    """GitHub reports no time of a review's last edit."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.")
    pull.edit_review(review, "Looks right!")
    pull.edit_review(review, "Looks right!\n\n@ci help")
    await town.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert len(town.answers(pull)) == 1


async def test_commands_in_a_comment_on_the_diff_work(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"a.py": "a = 1\n"})
    comment = pull.review_comment("octocat", "Is this slow?\n\n@ci run slow tests", path="a.py", line=1)
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    pull.edit_review_comment(comment, "Is this slow?\n\n@ci skip slow tests")
    await town.quiet()
    assert slow(town, pull.head_sha) == "Off: turned off by octocat. To turn on, comment: @ci run slow tests"


async def test_commands_in_the_description_run_at_the_opening_and_after_an_edit(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions() == ["eyes", "+1"]
    assert slow(town, pull.head_sha) == ON
    pull.edit("hubot", body="@ci run slow tests\n@ci skip slow tests")
    await town.quiet()
    assert slow(town, pull.head_sha) == "Off: turned off by hubot. To turn on, comment: @ci run slow tests"
    pull.edit("hubot", body="@ci run slow tests\n@ci help")
    await town.quiet()
    (answer,) = town.answers(pull)
    assert "`@ci help`" in answer
    assert "- `@ci run slow tests`" not in answer
    assert "About [the description](" in answer


async def test_correcting_a_typo_removes_the_confused_reaction(town: Town) -> None:
    """Wherever the typo was; other people's reactions stay."""
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci rnu", files={"a.py": "a = 1\n"})
    comment, review = pull.comment("octocat", "@ci rnu"), pull.review("octocat", "@ci rnu")
    note = pull.review_comment("octocat", "@ci rnu", path="a.py", line=1)
    pull.react("octocat", "confused", subject=comment)
    await town.quiet()
    subjects = (None, comment, review, note)
    assert [pull.reactions(subject, by="nightjar[bot]") for subject in subjects] == [["eyes", "confused"]] * 4
    pull.edit("hubot", body="@ci help")
    pull.edit_comment(comment, "@ci help")
    pull.edit_review(review, "@ci help")
    pull.edit_review_comment(note, "@ci help")
    await town.quiet()
    assert [pull.reactions(subject, by="nightjar[bot]") for subject in subjects] == [["eyes", "+1"]] * 4
    assert pull.reactions(comment, by="octocat") == ["confused"]


async def test_editing_the_title_runs_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci help")
    await town.quiet()
    pull.edit("hubot", title="Much faster")
    await town.quiet()
    assert len(town.answers(pull)) == 1


async def test_an_edit_runs_only_new_commands(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    await town.quiet()
    town.github.clock.advance(seconds=5)
    pull.edit_comment(comment, "Hm.\n\n@ci help\n@ci run slow tests")
    await town.quiet()
    (only,) = town.answers(pull)
    assert "`@ci help`:" in only
    assert slow(town, pull.head_sha) == ON
    town.github.clock.advance(seconds=5)
    pull.edit_comment(comment, "Never mind.")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert slow(town, pull.head_sha) == ON


async def test_the_bot_answers_neither_itself_nor_other_bots(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.github.create_app("dependabot").install(town.repo)
    bots = [pull.comment(name, "@ci help") for name in ("dependabot[bot]", "nightjar[bot]")]
    await town.quiet()
    assert [pull.reactions(comment) for comment in bots] == [[], []]
    assert len(pull.comments) == 2


async def test_commands_in_an_edited_comment_of_the_bot_do_not_run(town: Town) -> None:
    """The bot's answers quote commands, and somebody who tidies one up asks for nothing."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    await town.quiet()
    (answer,) = pull.comments_by("nightjar[bot]")
    pull.edit_comment(answer, "@ci run slow tests", by="octocat")
    await town.quiet()
    assert pull.reactions(answer) == []
    assert slow(town, pull.head_sha) == OFF


async def test_commands_that_a_person_adds_to_another_bots_comment_run(town: Town) -> None:
    town.github.create_app("dependabot").install(town.repo)
    pull = town.repo.open_pull_request("dependabot[bot]", "Bump it", "@ci help")
    await town.quiet()
    assert town.answers(pull) == []
    pull.edit("hubot", body="@ci help\n\n@ci run slow tests")
    await town.quiet()
    (answer,) = town.answers(pull)
    assert "`@ci run slow tests`" in answer
    assert "`@ci help`" not in answer


async def test_commands_in_an_issue_are_ignored(town: Town) -> None:
    issue = town.repo.open_issue("hubot", "It is slow")
    comment = issue.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert issue.reactions(comment) == []
    assert len(issue.comments) == 1


async def test_the_bot_answers_to_other_configured_names(tmp_path: Path) -> None:
    """`mentions:` in app.yaml adds names."""
    config = f'mentions: ["@tvm-bot"]\n{CONFIG}'
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        deaf = pull.comment("hubot", "@ci run slow tests")
        heard = pull.comment("hubot", "@TVM-Bot run slow")
        typo = pull.comment("hubot", "@tvm-bot rerunn")
        await town.quiet()
        assert [pull.reactions(c) for c in (deaf, heard, typo)] == [[], ["eyes", "+1"], ["eyes", "confused"]]
        assert slow(town, pull.head_sha) == "On: requested by hubot. To turn off, comment: @tvm-bot skip slow tests"
        assert "Did you mean `@tvm-bot rerun`?" in town.answers(pull)[-1]


async def test_a_slash_command_mentions_no_stranger(tmp_path: Path) -> None:
    """`@ci` is somebody's login, and GitHub would notify them about every command."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=f'mentions: ["/ci"]\n{CONFIG}') as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        deaf, path = pull.comment("hubot", "@ci run slow tests"), pull.comment("hubot", "/ci/pr-head is slow")
        heard, typo = pull.comment("hubot", "/CI run slow tests"), pull.comment("hubot", "/ci rerunn")
        edited = pull.comment("hubot", "Words")
        pull.edit_comment(edited, "Words\n\n- /ci: help")
        await town.quiet()
        reactions = [pull.reactions(comment) for comment in (deaf, path, heard, typo, edited)]
        assert reactions == [[], [], ["eyes", "+1"], ["eyes", "confused"], ["eyes", "+1"]]
        assert slow(town, pull.head_sha) == "On: requested by hubot. To turn off, comment: /ci skip slow tests"
        assert "Did you mean `/ci rerun`?" in town.answers(pull)[-2]


async def test_a_slash_works_by_default_and_answers_use_the_form_of_the_person(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    slash, at = pull.comment("hubot", "/ci rerunn"), pull.comment("hubot", "@ci rerunn")
    link = pull.comment("hubot", "See https://example.org/ci run slow tests")
    await town.quiet()
    assert [pull.reactions(comment) for comment in (slash, at, link)] == [["eyes", "confused"]] * 2 + [[]]
    assert "Did you mean `/ci rerun`?" in town.answers(pull)[0]
    assert "Did you mean `@ci rerun`?" in town.answers(pull)[1]
    pull.comment("hubot", "/ci help")
    await town.quiet()
    assert "| `/ci run slow tests` |" in town.answers(pull)[-1]
    assert "@ci run" not in town.answers(pull)[-1]


async def test_help_shows_every_enabled_command_with_who_may_run_it(tmp_path: Path) -> None:
    config = f"{CONFIG}    rerun: false\n    slow_tests: {{allow: [write]}}\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        pull.comment("hubot", "@ci help")
        await town.quiet()
        (answer,) = town.answers(pull)
        rows = [line.strip() for line in answer.splitlines() if line.strip().startswith("| `")]
        assert [row.split("`")[1].partition(" [")[0] for row in rows] == [
            "@ci run slow tests",
            "@ci run level",
            "@ci skip slow tests",
            "@ci revert",
            "@ci help",
        ]
        assert "people with write access" in rows[0]
        assert "the pull request's author and people with triage access" in rows[-1]


async def test_a_disabled_command_is_answered_with_where_it_is_enabled(tmp_path: Path) -> None:
    config = f"{CONFIG}    rerun: false\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        comment = pull.comment("hubot", "@ci rerun")
        await town.quiet()
        assert pull.reactions(comment) == ["eyes", "confused"]
        (answer,) = town.answers(pull)
        assert "This command is off for `octocat/compiler`." in answer
        assert "add `rerun` to `.github/nightjar.yaml` or `app.yaml`" in answer


async def test_a_repository_missing_in_app_yaml_is_left_alone(town: Town) -> None:
    unlisted_repo = town.github.create_repository("octocat/elsewhere", people={"hubot": "write"})
    town.app.install(unlisted_repo)
    pull = unlisted_repo.open_pull_request("hubot", "Faster", "cc @octocat\n\n@ci run slow tests")
    await town.quiet()
    assert pull.reactions() == []
    assert (pull.requested_reviewers, unlisted_repo.statuses(pull.head_sha)) == ([], [])


async def test_a_comment_delivered_by_two_hooks_is_answered_once(town: Town) -> None:
    """Two deliveries under two GUIDs are one request."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    town.github.webhooks.send_under_new_guid(town.github.webhooks.find("issue_comment", "created")[-1])
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert len(town.answers(pull)) == 1
    assert town.github.requests.count("POST", REACT) == 2


async def test_the_apps_hook_and_a_repositorys_hook_deliver_one_command(town: Town) -> None:
    """A repository's own hook names no installation."""
    town.repo.add_webhook(f"{town.url}/webhook", SECRET, "issue_comment", "pull_request")
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci help")
    comment = pull.comment("hubot", "@ci help")
    await town.quiet()
    assert (pull.reactions(), pull.reactions(comment)) == (["eyes", "+1"], ["eyes", "+1"])
    assert len(town.answers(pull)) == 2
    town.github.webhooks.lose("issue_comment")
    alone = pull.comment("hubot", "@ci skip slow tests")
    await town.quiet()
    assert pull.reactions(alone) == ["eyes", "+1"]


async def test_a_delivery_that_comes_twice_is_handled_once(town: Town) -> None:
    town.github.webhooks.duplicate(3)
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert len(town.answers(pull)) == 1
    assert town.github.requests.count("POST", REACT) == 2


async def test_a_comment_that_is_deleted_before_the_reaction_causes_no_failure(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("hubot", "@ci run slow tests")
    pull.delete_comment(comment)
    town.github.webhooks.release()
    await town.quiet()
    assert await town.failures() == []
    assert slow(town, pull.head_sha) == ON


async def test_every_write_is_counted_in_the_database_that_all_replicas_share(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    writes_before = await booked_writes(town)
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert await booked_writes(town) - writes_before == 3  # two reactions and an answer


async def booked_writes(town: Town) -> int:
    rows = await town.bot.engine.database.connector.execute_query_all_async("SELECT number FROM nightjar_writes")
    return len(rows)
