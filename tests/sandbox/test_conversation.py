"""A pull request's life: people on one side, the bot's requests on the other."""

from __future__ import annotations

import asyncio

import pytest

from sandbox import App, GitHubSandbox, PullRequest, Repository

from .conftest import Client


async def test_a_wait_ends_with_the_bots_answer(client: Client, github: GitHubSandbox, pull: PullRequest) -> None:
    comment = pull.comment("monalisa", "@ci rerun")
    waiting = asyncio.create_task(github.until(lambda: pull.reactions(comment, by="nightjar[bot]") == ["eyes"]))
    path = f"issues/comments/{comment.id}/reactions"
    assert (await client.post(path, {"content": "eyes"})).status == 201
    assert (await client.post(path, {"content": "eyes"})).status == 200
    await waiting
    await client.post("issues/1/comments", {"body": "Nothing had to be run again."})
    assert [answer.body for answer in pull.comments_by("nightjar[bot]")] == ["Nothing had to be run again."]


async def test_a_failed_wait_shows_the_conversation(github: GitHubSandbox, pull: PullRequest) -> None:
    pull.comment("monalisa", "@ci rerun everything")
    with pytest.raises(AssertionError, match="@ci rerun everything"):
        await github.until(lambda: False, timeout=0.01)


async def test_comments_are_edited_in_place_and_deleted(client: Client, pull: PullRequest) -> None:
    made = (await client.post("issues/1/comments", {"body": "one"})).json
    assert (await client.patch(f"issues/comments/{made['id']}", {"body": "two"})).json["body"] == "two"
    assert made["performed_via_github_app"]["slug"] == "nightjar"
    assert made["user"]["login"] == "nightjar[bot]"
    assert (await client.ask("DELETE", f"issues/comments/{made['id']}")).status == 204
    assert pull.comments == []


async def test_reviews_take_reactions_through_graphql(client: Client, pull: PullRequest) -> None:
    review = pull.review("octocat", "@ci rerun", "CHANGES_REQUESTED")
    query = """mutation($subject: ID!, $content: ReactionContent!) {
      addReaction(input: {subjectId: $subject, content: $content}) { reaction { content } } }"""
    variables = {"subject": review.node_id, "content": "THUMBS_UP"}
    answer = await client.post("/graphql", {"query": query, "variables": variables})
    assert answer.json["data"]["addReaction"]["reaction"]["content"] == "THUMBS_UP"
    assert pull.reactions(review) == ["+1"]
    assert "errors" in (await client.post("/graphql", {"query": "query { viewer { login } }"})).json
    unknown = await client.post("/graphql", {"query": query, "variables": variables | {"subject": "PRR_x"}})
    assert unknown.json["errors"][0]["type"] == "NOT_FOUND"


async def test_reviewers_are_requested_once_and_removed_when_they_answer(
    client: Client, github: GitHubSandbox, app: App
) -> None:
    repo = github.create_repository("example-lab/kernels", people={"hubot": "write"}, teams={"adreno": ["monalisa"]})
    app.install(repo)
    token = github.tokens.issue(next(i for i in app.installations.values() if i.account is repo.owner))
    pull = repo.open_pull_request("octocat")
    path = "/repos/example-lab/kernels/pulls/1/requested_reviewers"
    bot = Client(client.session, token.value)
    answer = await bot.post(path, {"reviewers": ["hubot"], "team_reviewers": ["adreno"]})
    assert answer.status == 201
    assert [user["login"] for user in answer.json["requested_reviewers"]] == ["hubot"]
    pull.review("hubot", "", "APPROVED")
    listed = (await bot.get(path)).json
    assert (listed["users"], [team["slug"] for team in listed["teams"]]) == ([], ["adreno"])


async def test_statuses_are_combined_by_context(client: Client, repo: Repository, pull: PullRequest) -> None:
    sha = pull.head_sha
    assert (await client.get(f"commits/{sha}/status")).json["state"] == "pending"
    repo.set_status("octocat", sha, "jenkins/pr-head", "failure")
    await client.post(f"statuses/{sha}", {"state": "success", "context": "ci/slow-tests", "description": "off"})
    assert (await client.get(f"commits/{sha}/status")).json["state"] == "failure"
    repo.set_status("octocat", sha, "jenkins/pr-head", "success")
    combined = (await client.get(f"commits/{sha}/status")).json
    assert (combined["state"], combined["total_count"]) == ("success", 2)
    assert len((await client.get(f"commits/{sha}/statuses")).json) == 3
    status = repo.status(sha, "ci/slow-tests")
    assert status is not None
    assert status.description == "off"


async def test_annotations_are_appended_and_only_the_latest_run_of_a_name_counts(
    client: Client, repo: Repository, pull: PullRequest
) -> None:
    place = {"path": "a.py", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
    output = {"title": "1 new failure", "summary": "s", "annotations": [place]}
    body = {"name": "hardware/x", "head_sha": pull.head_sha, "status": "in_progress", "external_id": "run-1"}
    made = (await client.post("check-runs", body | {"output": output})).json
    done = await client.patch(f"check-runs/{made['id']}", {"conclusion": "neutral", "output": output})
    assert (done.json["status"], done.json["output"]["annotations_count"]) == ("completed", 2)
    assert len((await client.get(f"check-runs/{made['id']}/annotations")).json) == 2
    await client.post("check-runs", body | {"external_id": "run-2"})
    listed = (await client.get(f"commits/{pull.head_sha}/check-runs?check_name=hardware%2Fx")).json
    assert [run["external_id"] for run in listed["check_runs"]] == ["run-2"]
    runs = (await client.get(f"commits/{pull.head_sha}/check-runs?filter=all")).json
    assert runs["total_count"] == 2


async def test_a_merge_updates_the_base_branch(client: Client, repo: Repository, pull: PullRequest) -> None:
    sha = pull.push({"src/a.py": "a = 1\n"}).sha
    assert (await client.get("pulls/1")).json["mergeable"] is True
    merged = await client.ask("PUT", "pulls/1/merge", {"sha": sha, "merge_method": "squash"})
    assert merged.json["merged"] is True
    assert repo.branch("main") == merged.json["sha"]
    assert repo.git.commits[repo.branch("main")].files["src/a.py"] == "a = 1\n"
    assert (await client.get("pulls/1")).json["merged_by"]["login"] == "nightjar[bot]"
    assert [p["number"] for p in (await client.get(f"commits/{merged.json['sha']}/pulls")).json] == [1]


async def test_drafts_conflicts_and_missing_checks_prevent_a_merge(client: Client, repo: Repository) -> None:
    pull = repo.open_pull_request("hubot", draft=True, files={"README.md": "mine\n"})
    assert (await client.ask("PUT", "pulls/1/merge", {})).json["message"] == "Pull Request is still a draft"
    pull.ready_for_review("hubot")
    repo.protect("main", "cpu/pr-head")
    assert "cpu/pr-head" in (await client.ask("PUT", "pulls/1/merge", {})).json["message"]
    repo.set_status("octocat", pull.head_sha, "cpu/pr-head", "success")
    repo.push("main", {"README.md": "theirs\n"}, by="octocat")
    answer = await client.ask("PUT", "pulls/1/merge", {})
    assert (answer.status, answer.json["message"]) == (405, "Pull Request is not mergeable")


async def test_files_comparisons_and_branches_follow_the_commits(
    client: Client, repo: Repository, pull: PullRequest
) -> None:
    pull.push({"src/a.py": "a = 1\n", "README.md": None})
    repo.push("main", {"b.txt": "b\n"}, by="octocat")
    compared = (await client.get(f"compare/main...{pull.head_sha}")).json
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 2, 1)
    files = {file["filename"]: file["status"] for file in (await client.get("pulls/1/files")).json}
    assert (files["src/a.py"], files["README.md"]) == ("added", "removed")
    raw = await client.get(f"contents/src/a.py?ref={pull.head_ref}", Accept="application/vnd.github.raw+json")
    assert raw.text == "a = 1\n"
    assert [item["name"] for item in (await client.get(f"contents/src?ref={pull.head_ref}")).json] == ["a.py"]
    moved = await client.patch("git/refs/heads/main", {"sha": pull.head_sha, "force": True})
    assert moved.json["object"]["sha"] == repo.branch("main") == pull.head_sha


async def test_a_forced_push_replaces_the_commits(repo: Repository, pull: PullRequest) -> None:
    old_sha = pull.head_sha
    pull.push({"a.txt": "1\n"}, force=True)
    assert [commit.sha for commit in pull.commits] == [pull.head_sha]
    assert old_sha not in [commit.sha for commit in repo.git.ancestry(pull.head_sha)]
