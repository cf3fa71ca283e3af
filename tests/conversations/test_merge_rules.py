"""What the branch and app.yaml require, how GitHub merges, what it refuses, and its merge queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app.registration import PERMISSIONS
from sandbox.model.rules import Rules
from tests.conversations.merges import BODY, approve, merge_town, message, ready, report, says, short
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

MERGE = "/repos/{owner}/{repo}/pulls/{pull_number}/merge"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


# Checks


async def test_only_required_checks_matter_whoever_reports_them(town: Town) -> None:
    """TVM's bot crashed on a commit without checks, and on check runs not from GitHub Actions."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    approve(pull)
    assert f"Nothing on {short(pull)} matches `*/pr-head` yet" in await says(town, pull, "@ci merge")
    foreign = town.github.create_app("lint", permissions={"checks": "write"})
    foreign.install(town.repo)
    town.repo.add_check_run(foreign, pull.head_sha, "style", conclusion="failure")
    town.repo.add_check_run(town.app, pull.head_sha, "hardware/example-lab/adreno", conclusion="neutral")
    town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    report(town, pull)
    assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_the_branchs_requirements_are_read_from_its_rules_and_its_protection(town: Town) -> None:
    """TVM #18780, #14618: job names in the code became outdated; here there are none."""
    town.repo.rules["main"] = Rules(required={"build": town.github.actions_app.id, "docs": None})
    town.repo.protect("main", "lint")
    pull = ready(town)
    town.repo.add_check_run(town.app, pull.head_sha, "build", conclusion="success")
    reply = await says(town, pull, "@ci merge")
    assert [line for line in reply.splitlines() if "hasn't started" in line] == [
        f"  - `build` hasn't started on {short(pull)} yet. The rules of `main` require it from the app with "
        f"ID {town.github.actions_app.id}. If nothing ever reports this name, fix those rules.",
        *(
            f"  - `{name}` hasn't started on {short(pull)} yet. The rules of `main` require it. If nothing ever "
            f"reports this name, fix those rules."
            for name in ("docs", "lint")
        ),
    ]
    town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "failure"})
    town.repo.add_workflow_run(pull.head_sha, "CI", "success", {"build": "success"})
    report(town, pull, context="docs")
    report(town, pull, context="lint")
    assert await says(town, pull, "@ci merge") == "eyes +1"


OWN = "    skip_ci: {}\n    lint: {}\n    nightly: {}\n"


async def test_the_bots_own_reports_do_not_count_as_tests(tmp_path: Path) -> None:
    """With `required: ["*"]` an untested pull request was merged, because `ci/slow-tests` was green at once."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", 'required: ["*"]', OWN) as town:
        pull = town.repo.open_pull_request("hubot", "Faster", BODY)
        approve(pull)
        await town.quiet()
        town.repo.set_status(town.app.bot, pull.head_sha, "nightly", "success")
        town.repo.add_check_run(town.app, pull.head_sha, "hardware/example-lab/adreno", conclusion="neutral")
        assert {status.context for status in town.repo.statuses(pull.head_sha)} == {
            "ci/slow-tests",
            "ci/skip",
            "nightly",
        }
        assert await says(town, pull, "@ci merge") == (
            f"eyes confused\n- 😕 `@ci merge`: Not merged:\n"
            f"  - Nothing on {short(pull)} matches `*` yet. `merge: required` in `app.yaml` requires it. If nothing "
            f"ever reports this name, fix `merge: required`."
        )
        report(town, pull)
        assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_the_bots_own_checks_do_not_count_as_tests_even_if_the_rules_require_them(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "", OWN) as town:
        town.repo.rules["main"] = Rules(required={"nightjar/lint": town.app.id, "ci/slow-tests": None})
        pull = town.repo.open_pull_request("hubot", "Faster", BODY)
        approve(pull)
        await town.quiet()
        assert f"No CI has reported on {short(pull)} yet." in await says(town, pull, "@ci merge")
        report(town, pull)
        assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_without_requirements_everything_that_ci_reports_must_be_green_and_it_must_report_something(
    tmp_path: Path,
) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "") as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        approve(pull)
        assert await says(town, pull, "@ci merge") == (
            f"eyes confused\n- 😕 `@ci merge`: Not merged:\n"
            f"  - No CI has reported on {short(pull)} yet. Neither the rules of `main` nor `merge: required` in "
            f"`app.yaml` name a check, so I wait for at least one."
        )
        report(town, pull, "success")
        report(town, pull, "failure", "gpu/pr-head")
        assert f"failed on {short(pull)}" in await says(town, pull, "@ci merge")
        report(town, pull, "success", "gpu/pr-head")
        assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_without_patterns_only_the_rules_of_the_branch_count(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "method: merge") as town:
        town.repo.rules["main"] = Rules(required={"lint": None})
        pull = town.repo.open_pull_request("hubot", "Faster")
        report(town, pull, "failure")
        report(town, pull, context="lint")
        approve(pull)
        assert await says(town, pull, "@ci merge") == "eyes +1"
        assert len(town.repo.git.commits[town.repo.branch("main")].parents) == 2
        assert message(town) == "Faster (#1)"


async def test_a_rebase_keeps_the_messages_of_the_commits(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "method: rebase") as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        pull.push(message="And smaller")
        approve(pull)
        report(town, pull)
        assert await says(town, pull, "@ci merge") == "eyes +1"
        assert [commit.message for commit in town.repo.git.ancestry(town.repo.branch("main"))[:2]] == [
            "And smaller",
            "Faster",
        ]


@pytest.mark.parametrize("words", ["Fix typos [skip ci]", "Fix typos\n\nskip-checks: true"])
async def test_a_rebase_keeps_no_message_that_makes_ci_skip_the_base(tmp_path: Path, words: str) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "method: rebase") as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        pull.push(message=words)
        approve(pull)
        report(town, pull)
        reply = await says(town, pull, "@ci merge")
        assert "A rebase keeps the message of" in reply
        assert pull.merged_at is None
        assert await town.failures() == []
        pull.push(message="Fix more typos")  # of all commits of a push, only the last one counts
        approve(pull)
        report(town, pull)
        assert (await says(town, pull, "@ci merge")).startswith("eyes +1")


# What GitHub refuses


async def test_a_refusal_by_github_is_quoted_without_a_traceback(town: Town) -> None:
    """TVM's bot put its tracebacks into comments."""
    town.repo.merge_methods = ("merge",)
    pull = ready(town)
    reply = await says(town, pull, "@ci merge")
    assert reply == (
        f"eyes confused\n- 😕 `@ci merge`: GitHub didn't merge {short(pull)}: `Squash merges are not allowed on this "
        f"repository.`."
    )
    assert "Traceback" not in reply
    assert await town.failures() == [], "an operator cannot do anything"


async def test_an_app_that_may_not_merge_says_which_permission_it_lacks(tmp_path: Path) -> None:
    permissions = {**PERMISSIONS, "contents": "read"}
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as town:
        reply = await says(town, ready(town), "@ci merge")
        assert "GitHub denied this: the App needs *Contents: write*." in reply
        assert len(await town.failures()) == 1, "the App's owner must grant it"


WORKFLOW = {".github/workflows/ci.yml": "on: push"}
NEEDS_WORKFLOWS = (
    "GitHub denied this: it changes files in `.github/workflows`, so the App needs *Contents: write* and *Workflows: "
    "write*. The App's owner grants it in the App's settings; then an owner of the repository accepts it. Someone with "
    "write access can also do it on GitHub."
)


async def test_a_merge_that_changes_workflows_names_the_required_permission(town: Town) -> None:
    """GitHub only says "Resource not accessible by integration" (chdsbd/kodiak#641)."""
    pull = ready(town, files=WORKFLOW)
    assert await says(town, pull, "@ci merge") == f"eyes confused\n- 😕 `@ci merge`: {NEEDS_WORKFLOWS}"
    assert await town.failures() == [NEEDS_WORKFLOWS]


async def test_with_that_permission_changes_of_workflows_are_merged(tmp_path: Path) -> None:
    permissions = {**PERMISSIONS, "workflows": "write"}
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as town:
        assert await says(town, ready(town, files=WORKFLOW), "@ci merge") == "eyes +1"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Protected branch update failed for refs/heads/main.", "GitHub refused this: `Protected branch update"),
        (
            "Although you appear to have the correct authorization credentials, the `octocat` organization has an IP "
            "allow list enabled, and your IP address is not permitted to access this resource.",
            "GitHub denied this: the organization has an IP allow list without the address of this bot's server. An "
            "owner of the organization can add that address.",
        ),
        (
            "Resource protected by organization SAML enforcement. You must grant your OAuth token access to this "
            "organization.",
            "GitHub denied this: the organization requires SAML single sign-on, and the App isn't authorized",
        ),
    ],
)
async def test_a_403_is_answered_with_its_cause(town: Town, sentence: str, words: str) -> None:
    pull = ready(town)
    await town.quiet()
    town.github.faults.add("PUT", MERGE, status=403, message=sentence)
    assert words in await says(town, pull, "@ci merge")


async def test_a_command_in_a_locked_conversation_is_carried_out_and_counts_no_failure(town: Town) -> None:
    """GitHub lets no App comment or react there, so the bot cannot report anything."""
    pull = ready(town)
    await town.quiet()
    pull.locked = True
    assert await says(town, pull, "@ci merge") == ""
    assert pull.merged_at is not None
    assert await says(town, pull, "@ci merge") == ""
    assert await town.failures() == []
    record = (await town.bot.engine.journal.recent(limit=1))[0]
    assert (record.state, record.reason) == (
        "refused",
        "Unable to create reaction because issue is locked.; Unable to create comment because issue is locked.",
    )


async def test_nothing_is_written_to_an_archived_repository_and_the_reason_is_recorded(town: Town) -> None:
    pull = ready(town)
    await town.quiet()
    town.repo.archived = True
    assert await says(town, pull, "@ci merge") == ""
    assert "Repository was archived so is read-only." in "".join(await town.failures())


async def test_the_merge_waits_while_github_checks_for_conflicts(town: Town) -> None:
    pull = ready(town)
    await town.quiet()
    pull.undecided = 1
    assert await says(town, pull, "@ci merge") == "eyes +1"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_merge_whose_answer_is_lost_is_found_and_not_tried_again(town: Town, moment: str) -> None:
    pull = ready(town)
    await town.quiet()
    town.github.faults.add("PUT", MERGE, drop="after" if moment == "after" else "before")
    assert await says(town, pull, "@ci merge") == "eyes +1"
    assert town.answers(pull) == []
    assert len(town.repo.git.ancestry(town.repo.branch("main"))) == 2


# The merge queue


@pytest.mark.parametrize("classic", [True, False])
async def test_a_branch_with_a_merge_queue_is_merged_through_it(town: Town, classic: bool) -> None:
    if classic:
        town.repo.classic_queues.add("main")
    else:
        town.repo.rules["main"] = Rules(queue=True, methods=("rebase",))
    pull = ready(town)
    answer = (
        "" if classic else f"{short(pull)} is in the merge queue of `main`. GitHub merges it when it reaches the front."
    )
    reply = await says(town, pull, "@ci merge")
    assert reply == (f"eyes +1\n- `@ci merge`: {answer}" if answer else "eyes +1")
    assert pull.queued is not None
    assert (str(pull.queued.enqueuer), pull.queued.head_sha) == ("@nightjar[bot]", pull.head_sha)
    assert town.github.requests.count("PUT", MERGE) == 0
    assert await says(town, pull, "@ci merge") == reply, "it stays in the queue"
    reply = await says(town, pull, "@ci cancel", by="hubot")
    assert reply == f"eyes +1\n- `@ci cancel`: Cancelled the merge of {short(pull)} that `octocat` asked for."
    assert pull.queued is None


async def test_an_enterprise_server_without_merge_queues_still_merges(town: Town) -> None:
    """Before 3.12 it refuses queries with the queue's fields."""
    town.github.knows_merge_queues = False
    pull = ready(town)
    assert await says(town, pull, "@ci merge") == "eyes +1"
    assert pull.merged_at
    assert town.github.requests.count("POST", "/graphql") == 2


DEQUEUED = [
    ("CI_FAILURE", "a check that the queue requires failed"),
    ("MERGE_CONFLICT", "it conflicts with a pull request ahead of it in the queue"),
    ("CI_TIMEOUT", "a check that the queue requires didn't finish in time"),
    ("MANUAL", "`hubot` removed it"),
    ("QUEUE_CLEARED", "someone cleared the queue"),
    ("UNKNOWN_REMOVAL_REASON", "GitHub doesn't say why"),
]


@pytest.mark.parametrize(("reason", "words"), DEQUEUED)
async def test_a_pull_request_that_leaves_the_queue_unmerged_gets_githubs_reason(
    town: Town, reason: str, words: str
) -> None:
    town.repo.classic_queues.add("main")
    pull = ready(town)
    await says(town, pull, "@ci merge")
    pull.dequeue("hubot", reason)
    await town.quiet()
    comment = pull.comments_by("octocat")[-1]
    url = f"{town.github.url}/octocat/compiler/pull/1#issuecomment-{comment.id}"
    assert town.answers(pull)[-1].splitlines()[-1] == (
        f"I won't merge {short(pull)}, which `octocat` [asked for]({url}). GitHub removed it from the merge queue "
        f"of `main`: {words} (`{reason}`). Ask again to add it back."
    )
    assert len(town.answers(pull)) == 1
    assert await says(town, pull, "@ci merge") == "eyes +1", "it may enter the queue again"


@pytest.mark.parametrize("reason", ["MERGE", "ALREADY_MERGED"])
async def test_a_merge_by_the_queue_gets_no_message(town: Town, reason: str) -> None:
    town.repo.classic_queues.add("main")
    pull = ready(town)
    await says(town, pull, "@ci merge")
    pull.dequeue("hubot", reason)
    pull.merge("hubot")
    await town.quiet()
    assert town.answers(pull) == []


async def test_a_pull_request_that_a_person_queued_gets_no_message(town: Town) -> None:
    town.repo.classic_queues.add("main")
    pull = ready(town)
    pull.enqueue("hubot")
    pull.dequeue("hubot", "CI_FAILURE")
    await town.quiet()
    assert town.answers(pull) == []


async def test_a_pull_request_that_the_queue_rejects_gets_the_reason(town: Town) -> None:
    town.repo.classic_queues.add("main")
    pull = ready(town)
    await town.quiet()
    held = town.github.faults.pause("POST", "/graphql", when="before", skip=1)
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    old = pull.head_sha
    pull.push()
    held.resume()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert (
        f"GitHub didn't add `{old[:7]}` to the merge queue: `Expected head oid does not match the current head oid`."
    ) in town.answers(pull)[0]


async def test_if_merging_is_off_the_answer_says_who_can_switch_it_on(tmp_path: Path) -> None:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db") as town:
        pull = ready(town)
        reply = await says(town, pull, "@ci merge")
        assert (
            "This command is off for `octocat/compiler`. A maintainer can turn it on: add `merge` to `app.yaml`."
            in reply
        )
        assert pull.state == "open"
