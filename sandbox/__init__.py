"""A GitHub on your own machine, in memory, behind real HTTP: for tests and `make demo`.

People act through Python, Apps over HTTP with tokens; both send the webhooks that GitHub would send:

    github = GitHubSandbox()
    async with github.serve() as base_url:                     # GITHUB_API_URL
        app = github.create_app("nightjar", webhook_url=bot_url, webhook_secret=SECRET)  # app.id, app.private_key
        repo = github.create_repository("octocat/compiler", people={"hubot": "write"})
        app.install(repo)
        pull = repo.open_pull_request("hubot", "Faster", "cc @octocat")
        comment = pull.comment("hubot", "@ci rerun")
        await github.until(lambda: pull.reactions(comment, by="nightjar[bot]") == ["eyes", "+1"])
        assert [user.login for user in pull.requested_reviewers] == ["octocat"]
        assert not github.violations

`github.until` wakes on every change, and shows the whole conversation when it fails. `github.delivered()` waits until
every webhook was answered. See `Faults` for errors and lost connections, `Courier` (`github.webhooks`) for webhooks
that are lost, late, doubled or out of order, `RequestJournal` (`github.requests`) for counts, and `Clock` for time.
"""

from sandbox.faults import Fault
from sandbox.github import GitHubSandbox
from sandbox.journal import Request, Violation
from sandbox.model.apps import App, Installation
from sandbox.model.pulls import PullRequest
from sandbox.model.repository import Repository
from sandbox.webhooks import SentDelivery

__all__ = [
    "App",
    "Fault",
    "GitHubSandbox",
    "Installation",
    "PullRequest",
    "Repository",
    "Request",
    "SentDelivery",
    "Violation",
]
