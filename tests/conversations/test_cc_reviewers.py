"""`cc @octocat` in the text of a pull request."""

from __future__ import annotations

from tests.conversations.town import Town


async def test_those_named_are_asked_in_one_request(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", "Speeds up matmul.\n\ncc @octocat, @triager and @reader")
    await here.quiet()
    assert [user.login for user in pull.requested_reviewers] == ["octocat", "triager", "reader"]
    assert here.github.requests.count("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers") == 1
