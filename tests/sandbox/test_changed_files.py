"""The files of a pull request, as GitHub lists them."""

from __future__ import annotations

from sandbox import GitHubSandbox, Repository

from .conftest import Client


async def test_a_moved_file_is_listed_as_renamed(client: Client, github: GitHubSandbox, repo: Repository) -> None:
    repo.push("main", {"docs/a.md": "one\n", "docs/b.md": "two\n", "src/c.py": "three\n"}, by="octocat")
    changed = {"docs/a.md": None, "src/a.md": "one\n", "docs/b.md": None, "src/c.py": "four\n"}
    pull = repo.open_pull_request("hubot", "Move it", files=changed)
    listed = (await client.get(f"pulls/{pull.number}/files")).json
    message = [(file["filename"], file["status"], file.get("previous_filename")) for file in listed]
    assert message == [
        ("docs/b.md", "removed", None),
        ("src/a.md", "renamed", "docs/a.md"),
        ("src/c.py", "modified", None),
    ]
    assert (await client.get(f"pulls/{pull.number}")).json["changed_files"] == 3
    assert not github.violations
