"""Commands: where they are allowed, what is not a command, and how the bot acknowledges them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversations.town import CONFIG, SECRET, Town, town

ON = "On: requested by hubot. To turn off, comment: @ci skip slow tests"
OFF = "Off: nobody requested them. To turn on, comment: @ci run slow tests"
REACT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"


def slow(here: Town, sha: str) -> str | None:
    status = here.repo.status(sha, "ci/slow-tests")
    return status.description if status else None


async def test_several_commands_of_one_comment_get_one_pair_of_eyes_and_one_answer(here: Town) -> None:
    """A comment may hold any number of commands, each on its own line."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    run = here.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    comment = pull.comment("hubot", "Once more, please.\n\n@ci skip slow tests\n@ci rerun\n\n- @ci help")
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert run.attempt == 2
    (answer,) = here.answers(pull)
    assert [line[:25] for line in answer.splitlines() if line.startswith("- ")] == [
        "- `@ci rerun`: Restarting",
        "- `@ci help`: Put each co",
    ]
    assert here.github.requests.count("POST", REACT) == 2


async def test_the_bots_own_answer_is_ignored_when_it_comes_back_as_a_webhook(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    pull.comment("hubot", "@ci help")
    await here.quiet()
    (answer,) = here.answers(pull)
    assert "@ci help" in answer
    sent = here.github.webhooks.find("issue_comment")
    records = await here.bot.engine.journal.deliveries([one.guid for one in sent])
    by_person, by_bot = (records[one.guid] for one in sent)
    assert (by_person.state, [plan.handler for plan in by_person.plans]) == ("done", ["commands", "commands"])
    assert (by_bot.state, by_bot.plans) == ("ignored", ())


async def test_polite_words_around_a_command_are_ignored(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    thanks = pull.comment("hubot", "@ci thanks!")
    await here.quiet()
    assert pull.reactions(thanks) == []
    assert here.answers(pull) == []


@pytest.mark.parametrize(
    "said",
    ["@CI   Run  Slow Tests", "@ci: run slow tests.", "  @ci run slow tests please", "**@ci run slow tests**"],
)
async def test_case_and_spacing_do_not_matter(here: Town, said: str) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", f"Hello\n\n{said}\r\n\r\nBye")
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert slow(here, pull.head_sha) == ON


@pytest.mark.parametrize(
    "said",
    [
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
    ],
)
async def test_code_quotes_html_comments_and_links_are_not_commands(here: Town, said: str) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", said)
    await here.quiet()
    assert pull.reactions(comment) == []
    assert here.answers(pull) == []
    assert slow(here, pull.head_sha) == OFF


async def test_a_typo_is_answered_with_the_nearest_command_and_help(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci rnu slow tests")
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = here.answers(pull)
    assert "😕 `@ci rnu slow tests`: I don't know this command. Did you mean `@ci run slow tests`?" in answer
    assert "`@ci help` lists all commands." in answer
    assert slow(here, pull.head_sha) == OFF


async def test_a_malformed_command_gets_an_error_and_the_others_are_carried_out(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", '@ci rerun "unit\n@ci help me\n@ci run slow tests')
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = here.answers(pull)
    assert "A quotation mark has no closing mark." in answer
    assert "😕 `@ci help me`: This command takes no arguments." in answer
    assert "- `@ci run slow tests`: done." in answer
    assert slow(here, pull.head_sha) == ON


async def test_commands_in_a_review_work_and_get_their_reactions_through_graphql(here: Town) -> None:
    """REST has no reactions for reviews."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.\n\n@ci help", "APPROVED")
    await here.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert here.github.requests.count("POST", "/graphql") == 2
    (answer,) = here.answers(pull)
    assert "About [your review](" in answer


async def test_an_edited_review_runs_only_its_new_commands(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.")
    await here.quiet()
    pull.edit_review(review, "Looks right.\n\n@ci run slow tests")
    await here.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]


async def test_a_second_edit_of_a_review_in_the_same_moment_runs_its_new_commands(here: Town) -> None:
    """GitHub reports no time of a review's last edit."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.")
    pull.edit_review(review, "Looks right!")
    pull.edit_review(review, "Looks right!\n\n@ci help")
    await here.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert len(here.answers(pull)) == 1


async def test_commands_in_a_comment_on_the_diff_work(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"a.py": "a = 1\n"})
    comment = pull.review_comment("octocat", "Is this slow?\n\n@ci run slow tests", path="a.py", line=1)
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    pull.edit_review_comment(comment, "Is this slow?\n\n@ci skip slow tests")
    await here.quiet()
    assert slow(here, pull.head_sha) == "Off: turned off by octocat. To turn on, comment: @ci run slow tests"


async def test_commands_in_the_description_run_at_the_opening_and_after_an_edit(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", "@ci run slow tests")
    await here.quiet()
    assert pull.reactions() == ["eyes", "+1"]
    assert slow(here, pull.head_sha) == ON
    pull.edit("hubot", body="@ci run slow tests\n@ci skip slow tests")
    await here.quiet()
    assert slow(here, pull.head_sha) == "Off: turned off by hubot. To turn on, comment: @ci run slow tests"
    pull.edit("hubot", body="@ci run slow tests\n@ci help")
    await here.quiet()
    (answer,) = here.answers(pull)
    assert "`@ci help`" in answer
    assert "- `@ci run slow tests`" not in answer
    assert "About [the description](" in answer


async def test_correcting_a_typo_removes_the_confused_reaction(here: Town) -> None:
    """Wherever the typo was; other people's reactions stay."""
    pull = here.repo.open_pull_request("hubot", "Faster", "@ci rnu", files={"a.py": "a = 1\n"})
    comment, review = pull.comment("octocat", "@ci rnu"), pull.review("octocat", "@ci rnu")
    note = pull.review_comment("octocat", "@ci rnu", path="a.py", line=1)
    pull.react("octocat", "confused", subject=comment)
    await here.quiet()
    said = (None, comment, review, note)
    assert [pull.reactions(one, by="nightjar[bot]") for one in said] == [["eyes", "confused"]] * 4
    pull.edit("hubot", body="@ci help")
    pull.edit_comment(comment, "@ci help")
    pull.edit_review(review, "@ci help")
    pull.edit_review_comment(note, "@ci help")
    await here.quiet()
    assert [pull.reactions(one, by="nightjar[bot]") for one in said] == [["eyes", "+1"]] * 4
    assert pull.reactions(comment, by="octocat") == ["confused"]


async def test_editing_the_title_runs_nothing(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", "@ci help")
    await here.quiet()
    pull.edit("hubot", title="Much faster")
    await here.quiet()
    assert len(here.answers(pull)) == 1


async def test_an_edit_runs_only_new_commands(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    await here.quiet()
    here.github.clock.advance(seconds=5)
    pull.edit_comment(comment, "Hm.\n\n@ci help\n@ci run slow tests")
    await here.quiet()
    (only,) = here.answers(pull)
    assert "`@ci help`:" in only
    assert slow(here, pull.head_sha) == ON
    here.github.clock.advance(seconds=5)
    pull.edit_comment(comment, "Never mind.")
    await here.quiet()
    assert len(here.answers(pull)) == 1
    assert slow(here, pull.head_sha) == ON


async def test_the_bot_answers_neither_itself_nor_other_bots(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    here.github.create_app("dependabot").install(here.repo)
    bots = [pull.comment(name, "@ci help") for name in ("dependabot[bot]", "nightjar[bot]")]
    await here.quiet()
    assert [pull.reactions(comment) for comment in bots] == [[], []]
    assert len(pull.comments) == 2


async def test_commands_in_an_edited_comment_of_the_bot_do_not_run(here: Town) -> None:
    """The bot's answers quote commands, and somebody who tidies one up asks for nothing."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    await here.quiet()
    (answer,) = pull.comments_by("nightjar[bot]")
    pull.edit_comment(answer, "@ci run slow tests", by="octocat")
    await here.quiet()
    assert pull.reactions(answer) == []
    assert slow(here, pull.head_sha) == OFF


async def test_commands_that_a_person_adds_to_another_bots_comment_run(here: Town) -> None:
    here.github.create_app("dependabot").install(here.repo)
    pull = here.repo.open_pull_request("dependabot[bot]", "Bump it", "@ci help")
    await here.quiet()
    assert here.answers(pull) == []
    pull.edit("hubot", body="@ci help\n\n@ci run slow tests")
    await here.quiet()
    (answer,) = here.answers(pull)
    assert "`@ci run slow tests`" in answer
    assert "`@ci help`" not in answer


async def test_commands_in_an_issue_are_ignored(here: Town) -> None:
    issue = here.repo.open_issue("hubot", "It is slow")
    comment = issue.comment("hubot", "@ci run slow tests")
    await here.quiet()
    assert issue.reactions(comment) == []
    assert len(issue.comments) == 1


async def test_the_bot_answers_to_other_configured_names(tmp_path: Path) -> None:
    """`mentions:` in app.yaml adds names."""
    config = f'mentions: ["@tvm-bot"]\n{CONFIG}'
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        deaf = pull.comment("hubot", "@ci run slow tests")
        heard = pull.comment("hubot", "@TVM-Bot run slow")
        typo = pull.comment("hubot", "@tvm-bot rerunn")
        await here.quiet()
        assert [pull.reactions(c) for c in (deaf, heard, typo)] == [[], ["eyes", "+1"], ["eyes", "confused"]]
        assert slow(here, pull.head_sha) == "On: requested by hubot. To turn off, comment: @tvm-bot skip slow tests"
        assert "Did you mean `@tvm-bot rerun`?" in here.answers(pull)[-1]


async def test_a_slash_command_mentions_no_stranger(tmp_path: Path) -> None:
    """`@ci` is somebody's login, and GitHub would notify them about every command."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=f'mentions: ["/ci"]\n{CONFIG}') as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        deaf, path = pull.comment("hubot", "@ci run slow tests"), pull.comment("hubot", "/ci/pr-head is slow")
        heard, typo = pull.comment("hubot", "/CI run slow tests"), pull.comment("hubot", "/ci rerunn")
        edited = pull.comment("hubot", "Words")
        pull.edit_comment(edited, "Words\n\n- /ci: help")
        await here.quiet()
        reactions = [pull.reactions(comment) for comment in (deaf, path, heard, typo, edited)]
        assert reactions == [[], [], ["eyes", "+1"], ["eyes", "confused"], ["eyes", "+1"]]
        assert slow(here, pull.head_sha) == "On: requested by hubot. To turn off, comment: /ci skip slow tests"
        assert "Did you mean `/ci rerun`?" in here.answers(pull)[-2]


async def test_help_shows_every_enabled_command_with_who_may_run_it(tmp_path: Path) -> None:
    config = f"{CONFIG}    rerun: false\n    slow_tests: {{allow: [write]}}\n"
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        pull.comment("hubot", "@ci help")
        await here.quiet()
        (answer,) = here.answers(pull)
        rows = [line.strip() for line in answer.splitlines() if line.strip().startswith("| `")]
        assert [row.split(" | ")[0] for row in rows] == [
            "| `@ci run slow tests`",
            "| `@ci skip slow tests`",
            "| `@ci help`",
        ]
        assert "people with write access" in rows[0]
        assert "the pull request's author and people with triage access" in rows[2]


async def test_a_disabled_command_is_answered_with_where_it_is_enabled(tmp_path: Path) -> None:
    config = f"{CONFIG}    rerun: false\n"
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        comment = pull.comment("hubot", "@ci rerun")
        await here.quiet()
        assert pull.reactions(comment) == ["eyes", "confused"]
        (answer,) = here.answers(pull)
        assert "This command is off for `octocat/compiler`." in answer
        assert "add `rerun` to `.github/nightjar.yaml` or `app.yaml`" in answer


async def test_a_repository_missing_in_app_yaml_is_left_alone(here: Town) -> None:
    other = here.github.create_repository("octocat/elsewhere", people={"hubot": "write"})
    here.app.install(other)
    pull = other.open_pull_request("hubot", "Faster", "cc @octocat\n\n@ci run slow tests")
    await here.quiet()
    assert pull.reactions() == []
    assert (pull.requested_reviewers, other.statuses(pull.head_sha)) == ([], [])


async def test_a_comment_delivered_by_two_hooks_is_answered_once(here: Town) -> None:
    """Two deliveries under two GUIDs are one request."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    here.github.webhooks.send_under_new_guid(here.github.webhooks.find("issue_comment", "created")[-1])
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert len(here.answers(pull)) == 1
    assert here.github.requests.count("POST", REACT) == 2


async def test_the_apps_hook_and_a_repositorys_hook_deliver_one_command(here: Town) -> None:
    """A repository's own hook names no installation."""
    here.repo.add_webhook(f"{here.url}/webhook", SECRET, "issue_comment", "pull_request")
    pull = here.repo.open_pull_request("hubot", "Faster", "@ci help")
    comment = pull.comment("hubot", "@ci help")
    await here.quiet()
    assert (pull.reactions(), pull.reactions(comment)) == (["eyes", "+1"], ["eyes", "+1"])
    assert len(here.answers(pull)) == 2
    here.github.webhooks.lose("issue_comment")
    alone = pull.comment("hubot", "@ci skip slow tests")
    await here.quiet()
    assert pull.reactions(alone) == ["eyes", "+1"]


async def test_a_delivery_that_comes_twice_is_handled_once(here: Town) -> None:
    here.github.webhooks.duplicate(3)
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci help")
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert len(here.answers(pull)) == 1
    assert here.github.requests.count("POST", REACT) == 2


async def test_a_comment_that_is_deleted_before_the_reaction_causes_no_failure(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    here.github.webhooks.hold()
    comment = pull.comment("hubot", "@ci run slow tests")
    pull.delete_comment(comment)
    here.github.webhooks.release()
    await here.quiet()
    assert await here.failures() == []
    assert slow(here, pull.head_sha) == ON


async def test_every_write_is_counted_in_the_database_that_all_replicas_share(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    before = await booked(here)
    pull.comment("hubot", "@ci help")
    await here.quiet()
    assert await booked(here) - before == 3  # two reactions and an answer


async def booked(here: Town) -> int:
    rows = await here.bot.engine.database.connector.execute_query_all_async("SELECT number FROM nightjar_writes")
    return len(rows)
