"""Start the sandbox by itself, with a repository to look at: `python -m sandbox [port]`."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from sandbox.github import GitHubSandbox
from sandbox.model.repository import Repository

CONVERSATION = "Thanks! Does this help `softmax` too?\n\n<!-- a marker that nobody sees -->"
RESULTS = "| test | before | now |\n|---|---|---|\n| `test_softmax[fp16]` | passed | **failed** |\n"


def populate(github: GitHubSandbox) -> Repository:
    """Fill a sandbox with one repository and one pull request in the middle of its life."""
    app = github.create_app()
    repo = github.create_repository(
        "octocat/compiler",
        people={"hubot": "write", "monalisa": "triage"},
        files={"README.md": "# compiler\n", "src/codegen.py": "def lower(x):\n    return x\n"},
    )
    app.install(repo)
    change = {"src/codegen.py": "def lower(x):\n    return fuse(x)\n"}
    pull = repo.open_pull_request("hubot", "Fuse before lowering", "Saves a pass.\n\ncc @monalisa", files=change)
    pull.request_review(app.bot, "monalisa")
    pull.react(app.bot, "eyes", pull.comment("monalisa", CONVERSATION))
    pull.push(message="Fuse only what is used once")
    pull.review("octocat", "Nice.", "APPROVED", [("src/codegen.py", 2, "A comment on *why* would help.")])
    pull.label("octocat", "performance")
    repo.set_status(app.bot, pull.head_sha, "ci/slow-tests", "success", "off: ask with “@ci run slow tests”")
    repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "success", "test": "failure"})
    annotation = {"path": "src/codegen.py", "start_line": 2, "end_line": 2, "annotation_level": "warning"}
    repo.add_check_run(
        app, pull.head_sha, "hardware/example-lab/hexagon-v73", conclusion="neutral", title="1 new failure",
        summary=RESULTS, annotations=[annotation | {"title": "test_softmax[fp16]", "message": "max error 0.02 > 0.01"}],
    )  # fmt: skip
    return repo


async def _main(port: int) -> None:
    github = GitHubSandbox()
    async with github.serve(port) as url:
        repo = populate(github)
        sys.stdout.write(f"API and pages: {url}\nA pull request: {url}/{repo.full_name}/pull/1\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
