"""`@ci revert`, with the whole bot: the draft, its slow tests, refusals, and the fix of what was reverted."""

from __future__ import annotations

from sandbox import PullRequest
from sandbox.model.repository import Repository
from tests.conversations.town import BOT, Town

ON = "On: requested by hubot. To turn off, comment: @ci skip slow tests"


def merged(repo: Repository, title: str = "Faster") -> PullRequest:
    pull = repo.open_pull_request("octocat", title, branch="faster")
    pull.merge("octocat", "squash")
    return pull


def slow_tests(town: Town, pull: PullRequest) -> str:
    status = town.repo.status(pull.head_sha, "ci/slow-tests")
    return status.description or "" if status else ""


async def test_a_revert_is_a_draft_with_slow_tests_and_its_fix_has_them_too(town: Town) -> None:
    repo = town.repo
    pull = merged(repo)
    sha = pull.merge_commit_sha or ""
    repo.set_status("hubot", sha, "gpu/branch", "failure", "3 tests failed @hubot", "https://ci.example.org/7")
    repo.set_status("hubot", sha, "cpu/branch", "success")
    reader, comment = pull.comment("triager", "@ci revert"), pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert (pull.reactions(reader)[-1], pull.reactions(comment)) == ("confused", ["eyes", "+1"])
    (made,) = (other for other in repo.pulls if other is not pull)
    assert (made.title, made.draft, made.user.login, made.base_ref) == ('Revert "Faster"', True, BOT, "main")
    assert repo.git.commits[made.head_sha].files == repo.git.commits[repo.git.commits[sha].parents[0]].files
    body = made.body or ""
    assert f"Reverts octocat/compiler#{pull.number}\n" in body
    assert "- `gpu/branch`: 3 tests failed @&#8203;hubot ([details](<https://ci.example.org/7>))" in body
    assert ("cpu/branch" in body, f"#issuecomment-{comment.id}" in body) == (False, True)
    assert slow_tests(town, made) == ON, "the person who asked for the revert, not the bot"
    assert len(town.answers(pull)) == 1, "only to the person who may not; GitHub links the draft"
    # Every later command answers with the same revert, in whichever state it is.
    for text in ("It is still open.", "has already reverted"):
        if "already" in text:
            made.merge("octocat", "squash")
        pull.comment("hubot", "@ci revert")
        await town.quiet()
        answer = town.answers(pull)[-1]
        assert (f"#{made.number}" in answer, text in answer) == (True, True), answer
    assert len(repo.pulls) == 2
    # The fix names what was reverted, or its revert; others do not.
    fix = repo.open_pull_request("octocat", "Faster, again", f"This is #{pull.number} without the race.")
    redone = repo.open_pull_request("octocat", 'Revert "Revert"', f"Reverts octocat/compiler#{made.number}")
    other = repo.open_pull_request("octocat", "Other", f"See hubot/else#{pull.number} and #{pull.number}0.")
    await town.quiet()
    on_fix = f"On: names #{pull.number}, which was reverted. To turn off, comment: @ci skip slow tests"
    assert [slow_tests(town, each) for each in (fix, redone)] == [on_fix, on_fix]
    assert slow_tests(town, other).startswith("Off")
    fix.comment("octocat", "@ci skip slow tests")
    await town.quiet()
    fix.push()
    await town.quiet()
    assert slow_tests(town, fix).startswith("Off: turned off by octocat")


async def test_a_refusal_says_why_and_a_revert_by_hand_counts(town: Town) -> None:
    repo = town.repo
    pull = repo.open_pull_request("octocat", "Faster", branch="faster", files={"a.py": "1"})
    pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert f"#{pull.number} is not merged, so there is nothing to revert." in town.answers(pull)[-1]
    pull.close("octocat")
    pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert "was closed without being merged" in town.answers(pull)[-1]
    pull.reopen("octocat")
    pull.merge("octocat")
    repo.push("main", {"a.py": "2"}, by="octocat")
    comment = pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert pull.reactions(comment)[-1] == "confused"
    assert f"GitHub can't revert #{pull.number}: `Sorry, this pull request couldn't be" in town.answers(pull)[-1]
    by_hand = repo.open_pull_request("octocat", "Undo", "", branch=f"revert-{pull.number}-faster")
    pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert f"#{by_hand.number} already reverts #{pull.number}. It is still open." in town.answers(pull)[-1]
    by_hand.close("octocat")
    pull.comment("hubot", "@ci revert")
    await town.quiet()
    assert f"#{by_hand.number} was to revert #{pull.number}, and somebody closed it." in town.answers(pull)[-1]
    assert town.repo.pulls == [pull, by_hand]
