"""Who may run what: roles, authors, and people without any right."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.features import COMMANDS
from bot.app.load import app_repository_model
from bot.config.repository_keys import ConfigKey
from tests.conversations.town import CONFIG, Town
from tests.conversations.town import town as start_town

ONLY = "Only the pull request's author and people with triage access can do this. Ask one of them"
ROLE = "/repos/{owner}/{repo}/collaborators/{username}/permission"


def slow(town: Town, sha: str) -> str | None:
    status = town.repo.status(sha, "ci/slow-tests")
    return status.description if status else None


@pytest.mark.parametrize("commenter", ["octocat", "hubot", "triager"])
async def test_people_with_triage_or_more_may_run_commands(town: Town, commenter: str) -> None:
    """By default, the author and people with the triage role or more may run commands."""
    pull = town.repo.open_pull_request("reader", "Faster", fork=True)
    comment = pull.comment(commenter, "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]


async def test_the_author_needs_no_role(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    comment = pull.comment("somebody", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert town.github.requests.count("GET", ROLE) == 1


@pytest.mark.parametrize("commenter", ["reader", "somebody"])
async def test_others_get_the_reason_and_who_may(town: Town, commenter: str) -> None:
    """The bot reacts with 😕 and answers."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment(commenter, "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert f"😕 `@ci run slow tests`: {ONLY}" in answer
    assert slow(town, pull.head_sha) == "Off: nobody requested them. To turn on, comment: @ci run slow tests"


@pytest.mark.parametrize("text", ["@ci rnu slow tests", "@ci", '@ci rerun "unit', "@ci is broken again"])
async def test_text_that_is_no_command_is_ignored_without_the_right_to_run_commands(town: Town, text: str) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("reader", text)
    await town.quiet()
    assert pull.reactions(comment) == []
    assert town.answers(pull) == []


async def test_without_the_right_only_the_commands_are_answered(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("reader", "@ci rnu\n@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert "`@ci rerun`" in answer
    assert "rnu" not in answer


async def test_app_yaml_says_who_may_run_each_feature(tmp_path: Path) -> None:
    """The right to run one feature does not include another."""
    config = f"{CONFIG}    slow_tests: {{allow: [maintain]}}\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        by_author = pull.comment("hubot", "@ci run slow tests\n@ci help")
        await town.quiet()
        assert pull.reactions(by_author) == ["eyes", "confused"]
        (answer,) = town.answers(pull)
        assert "You need maintain access for this." in answer
        assert "- `@ci help`: Put each command" in answer
        by_owner = pull.comment("octocat", "@ci run slow tests")
        await town.quiet()
        assert pull.reactions(by_owner) == ["eyes", "+1"]


async def test_an_edit_by_somebody_else_counts_as_the_editors_command(town: Town) -> None:
    """The editor's role decides about a harmless command; one that acts for others needs a comment of their own."""
    pull = town.repo.open_pull_request("octocat", "Faster")
    pull.comment("octocat", "@ci run slow tests")
    hubot_comment = pull.comment("hubot", "Is this slow?")
    reader_comment = pull.comment("reader", "Is this slow?")
    await town.quiet()
    on_status = slow(town, pull.head_sha)
    assert on_status == "On: requested by octocat. To turn off, comment: @ci skip slow tests"
    pull.edit_comment(hubot_comment, "Is this slow?\n\n@ci skip slow tests", by="reader")
    await town.quiet()
    assert pull.reactions(hubot_comment) == ["eyes", "confused"]
    assert ONLY in town.answers(pull)[-1]
    assert slow(town, pull.head_sha) == on_status
    pull.edit_comment(reader_comment, "Is this slow?\n\n@ci skip slow tests", by="hubot")
    await town.quiet()
    assert pull.reactions(reader_comment) == ["eyes", "+1"]
    off_status = slow(town, pull.head_sha)
    assert off_status == "Off: turned off by hubot. To turn on, comment: @ci run slow tests"
    pull.edit_comment(reader_comment, "Is this slow?\n\n@ci run slow tests", by="hubot")
    await town.quiet()
    assert "You edited this into a comment by `reader`, so I ignored it." in town.answers(pull)[-1]
    assert slow(town, pull.head_sha) == off_status


HARMLESS = {"help", "cancel", "skip slow tests"}
"""Commands that change nothing for others: an edit of somebody else's comment may contain them."""
ON = {
    key.name
    for key in app_repository_model().KEYS
    if isinstance(key, ConfigKey) and not any(field.is_required() for field in key.model.model_fields.values())
}
"""The features that `true` switches on. Commands of others, such as those of labs, have conversations of their own."""
ACTING = {spec.name: spec.feature for spec, _ in COMMANDS if spec.name not in HARMLESS and spec.feature in ON}
"""All other commands, each with its feature."""


@pytest.mark.parametrize("command", ACTING)
async def test_a_command_that_acts_for_others_does_not_count_if_edited_into_somebody_elses_comment(
    tmp_path: Path, command: str
) -> None:
    config = f"{CONFIG}    {ACTING[command]}: true\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
        comment = pull.comment("somebody", "Please look")
        pull.edit_comment(comment, f"Please look\n\n@ci {command}", by="hubot")
        await town.quiet()
        assert pull.reactions(comment) == ["eyes", "confused"]
        assert (run.attempt, pull.merged_by) == (1, None)
        assert (
            f"😕 `@ci {command}`: You edited this into a comment by `somebody`, so I ignored it. "
            f"Post `@ci {command}` in a comment of your own."
        ) in town.answers(pull)[0]
        own_comment = pull.comment("hubot", "Let me see")
        pull.edit_comment(own_comment, f"Let me see\n\n@ci {command}")
        await town.quiet()
        assert "of your own" not in town.answers(pull)[-1] or len(town.answers(pull)) == 1
        assert "eyes" in pull.reactions(own_comment)


HIDDEN = (
    "```\n@ci merge\n```",
    "```\n@ci merge",
    "<!--\n@ci merge",
    "<!-- @ci merge -->",
    "`@ci merge`",
    "@ci help\n" + "\n".join(f"@ci rerun n{number}" for number in range(19)) + "\n@ci merge",
)


@pytest.mark.parametrize("writer", ["somebody", "hubot"])
async def test_an_edit_that_uncovers_an_old_command_does_not_run_it(tmp_path: Path, writer: str) -> None:
    """A maintainer closed a fence, or tidied up a long comment, and the pull request was merged."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=f"{CONFIG}    merge: true\n") as town:
        pulls = [town.repo.open_pull_request("somebody", "Faster", fork=True) for _ in HIDDEN]
        comments = [pull.comment(writer, hidden) for pull, hidden in zip(pulls, HIDDEN, strict=True)]
        await town.quiet()
        answers = [len(town.answers(pull)) for pull in pulls]
        for pull, comment in zip(pulls, comments, strict=True):
            pull.edit_comment(comment, "@ci merge", by="hubot")
        await town.quiet()
        assert [pull.merged_by for pull in pulls] == [None] * len(pulls)
        assert [len(town.answers(pull)) for pull in pulls] == answers


async def test_a_login_that_changed_hands_gives_its_first_owner_no_access(town: Town) -> None:
    """People are identified by ID: between the comment and the role check, the login `reader` went to somebody else."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("reader", "@ci run slow tests")
    renamed = town.github.users.pop("reader")
    renamed.login = "formerly-reader"
    town.github.users["formerly-reader"] = renamed
    town.repo.set_role("reader", "admin")
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert ONLY in town.answers(pull)[0]


async def test_somebody_who_takes_over_the_authors_login_is_not_the_author(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    renamed = town.github.users.pop("somebody")
    renamed.login = "somebody-once"
    town.github.users["somebody-once"] = renamed
    comment = pull.comment("somebody", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]


async def test_an_author_who_changes_their_login_is_still_the_author(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("somebody", "@ci run slow tests")
    renamed = town.github.users.pop("somebody")
    renamed.login = "somebody-else"
    town.github.users["somebody-else"] = renamed
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]


async def test_somebody_with_a_deleted_account_may_run_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("passer-by", "@ci run slow tests")
    del town.github.users["passer-by"]
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]


async def test_a_new_role_counts_after_at_most_a_minute(town: Town) -> None:
    """A role check is cached: a second comment right after the first costs no second check."""
    pull = town.repo.open_pull_request("octocat", "Faster")
    for command in ("@ci rerun", "@ci rerun all", "@ci help"):
        pull.comment("triager", command)
    await town.quiet()
    assert town.github.requests.count("GET", ROLE) == 1
    assert len(town.answers(pull)) == 3
