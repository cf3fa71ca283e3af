"""The sandbox's conditions for a merge, as on GitHub: rules, protection, methods, and the merge queue."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox import App, GitHubSandbox, PullRequest, Repository
from sandbox.model.rules import Rules
from tests.sandbox.conftest import Client, Receiver

QUEUED = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequestTemplates { body }
    pullRequest(number: $number) { id isInMergeQueue isMergeQueueEnabled }
  }
}
"""
ENQUEUE = """
mutation($id: ID!, $sha: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $sha}) { mergeQueueEntry { position } }
}
"""
DEQUEUE = "mutation($id: ID!) { dequeuePullRequest(input: {id: $id}) { mergeQueueEntry { position } } }"


async def tried(client: Client, **body: Any) -> tuple[int, str]:
    answer = await client.ask("PUT", "pulls/1/merge", body)
    return answer.status, answer.json["message"]


async def graphql(client: Client, query: str, **variables: Any) -> Any:
    return (await client.post("/graphql", {"query": query, "variables": variables})).json


async def asked(client: Client) -> Any:
    return (await graphql(client, QUEUED, owner="octocat", name="compiler", number=1))["data"]["repository"]


async def test_the_rules_of_a_branch_are_listed_and_the_branch_shows_classic_protection(
    client: Client, repo: Repository
) -> None:
    repo.rules["main"] = Rules(required={"cpu": None, "lint": 15368}, approvals=1, methods=("squash",), queue=True)
    repo.protect("main", "gpu")
    listed = (await client.get("rules/branches/main")).json
    assert [rule["type"] for rule in listed] == ["required_status_checks", "pull_request", "merge_queue"]
    assert listed[0]["parameters"]["required_status_checks"] == [
        {"context": "cpu"},
        {"context": "lint", "integration_id": 15368},
    ]
    checks = (await client.get("branches/main")).json["protection"]["required_status_checks"]
    assert checks["checks"] == [{"context": "gpu", "app_id": None}]
    assert (await client.get("rules/branches/no-such-branch")).json == []


async def test_a_required_check_counts_only_from_the_named_app(
    client: Client, repo: Repository, pull: PullRequest, app: App
) -> None:
    repo.rules["main"] = Rules(required={"lint": app.id})
    repo.add_check_run(repo.github.actions_app, pull.head_sha, "lint", conclusion="success")
    assert await tried(client) == (405, 'Required status check "lint" is expected.')
    repo.set_status(app.bot, pull.head_sha, "lint", "success")
    assert (await tried(client))[0] == 200


async def test_approvals_and_methods_are_required(client: Client, repo: Repository, pull: PullRequest) -> None:
    repo.rules["main"] = Rules(approvals=1, methods=("squash",))
    repo.merge_methods = ("squash", "merge")
    pull.review("monalisa", state="APPROVED")
    assert (await tried(client))[1].startswith("At least 1 approving review")
    pull.review("octocat", state="APPROVED")
    assert (await tried(client, merge_method="rebase"))[1] == "Rebase merges are not allowed on this repository."
    assert (await tried(client, merge_method="merge"))[1].endswith("must not be merged with merge")
    assert (await tried(client, merge_method="squash", sha="0" * 40))[0] == 409
    assert (await tried(client, merge_method="squash"))[0] == 200
    assert repo.git.commits[repo.branch("main")].author == pull.user


async def test_a_rebase_creates_every_commit_again(client: Client, repo: Repository, pull: PullRequest) -> None:
    pull.push({"a.py": "1\n"}, message="Second")
    repo.push("main", {"b.py": "2\n"}, by="octocat")
    assert (await tried(client, merge_method="rebase", commit_title="unused"))[0] == 200
    merged = repo.git.ancestry(repo.branch("main"))
    assert [commit.message for commit in merged[:2]] == ["Second", "Fuse before lowering"]
    assert set(merged[0].files) >= {"a.py", "b.py"}


async def test_conflicts_are_determined_only_after_a_request(client: Client, pull: PullRequest) -> None:
    pull.undecided = 1
    assert (await client.get("pulls/1")).json["mergeable"] is None
    assert (await client.get("pulls/1")).json["mergeable"] is True


@pytest.mark.parametrize("classic", [True, False])
async def test_a_merge_queue_takes_ready_pull_requests_and_returns_them(
    github: GitHubSandbox,
    client: Client,
    repo: Repository,
    pull: PullRequest,
    app: App,
    receiver: Receiver,
    classic: bool,
) -> None:
    app.webhook_url = receiver.url
    if classic:
        repo.classic_queues.add("main")
        repo.protect("main", "cpu")
    else:
        repo.rules["main"] = Rules(required={"cpu": None}, queue=True)
    assert await tried(client) == (405, "Changes must be made through the merge queue")
    pull_request = (await asked(client))["pullRequest"]
    assert pull_request == {"id": pull.node_id, "isInMergeQueue": False, "isMergeQueueEnabled": True}
    refused = await graphql(client, ENQUEUE, id=pull_request["id"], sha=pull.head_sha)
    assert refused["errors"][0]["message"] == 'Required status check "cpu" is expected.'
    repo.set_status("octocat", pull.head_sha, "cpu", "success")
    moved = await graphql(client, ENQUEUE, id=pull_request["id"], sha="0" * 40)
    assert moved["errors"][0]["type"] == "UNPROCESSABLE"
    answer = await graphql(client, ENQUEUE, id=pull_request["id"], sha=pull.head_sha)
    assert answer["data"]["enqueuePullRequest"]["mergeQueueEntry"] == {"position": 1}
    assert (await asked(client))["pullRequest"]["isInMergeQueue"] is True
    assert "errors" in await graphql(client, ENQUEUE, id=pull_request["id"], sha=pull.head_sha)
    await graphql(client, DEQUEUE, id=pull_request["id"])
    assert "errors" in await graphql(client, DEQUEUE, id=pull_request["id"])
    await github.delivered()
    assert [name for name in receiver.names if "queued" in name] == ["pull_request.enqueued", "pull_request.dequeued"]


async def test_a_push_takes_a_pull_request_out_of_the_queue(repo: Repository, pull: PullRequest) -> None:
    repo.rules["main"] = Rules(queue=True)
    pull.enqueue("octocat")
    pull.push()
    assert pull.queued is None


async def test_templates_of_pull_requests_are_found_in_each_folder(
    client: Client, repo: Repository, pull: PullRequest
) -> None:
    assert (await asked(client))["pullRequestTemplates"] == []
    repo.push("main", {".github/pull_request_template.md": "## Why\n", "docs/template.md": "no"}, by="octocat")
    assert (await asked(client))["pullRequestTemplates"] == [{"body": "## Why\n"}]
    assert pull.number == 1
