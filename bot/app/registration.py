"""The permissions and events that the App needs on GitHub.

The table and the link in docs/installing.md come from here. The demo and the tests run an App with exactly these.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from urllib.parse import urlencode

from bot.core.docs import table
from bot.web.login import CALLBACK_PATH


@dataclass(frozen=True, slots=True)
class Permission:
    """One permission: its key in GitHub's API, its name on GitHub's pages, and its purpose.

    A permission that is `on_demand` is in the table but not in the link: most repositories don't need it.
    """

    key: str
    name: str
    access: str
    what_for: str
    on_demand: bool = False


# Permissions of each request: https://docs.github.com/rest/authentication/permissions-required-for-github-apps
# Permissions of each event: https://docs.github.com/webhooks/webhook-events-and-payloads
NEEDS = (
    Permission("metadata", "Metadata", "read", "roles of people, rules of branches; GitHub adds it automatically"),
    Permission(
        "pull_requests",
        "Pull requests",
        "write",
        "read pull requests and reviews, request reviews, use the merge queue, open the pull requests of "
        "`docker_update` and `mute`, and reverts",
    ),
    Permission(
        "issues",
        "Issues",
        "write",
        "comments, reactions, issues about blocked branches and failures; events about new issues and the list of "
        "teams",
    ),
    Permission(
        "statuses",
        "Commit statuses",
        "write",
        "write `ci/slow-tests`, `ci/skip` and `nightly`; read what Jenkins reports",
    ),
    Permission(
        "actions", "Actions", "write", "find, rerun and approve workflow runs; read their results and artifacts"
    ),
    Permission(
        "checks",
        "Checks",
        "write",
        "check runs of hardware labs, of `.github/nightjar.yaml` and of titles; find jobs by name",
    ),
    Permission(
        "contents",
        "Contents",
        "write",
        "merge, and move the nightly branch, the last good branch and the branches of `docker_update`, of `mute` "
        "and of reverts; nothing else is written. Reads pushes, commits of branches, branch protection and names of "
        "files, and the content of `.github/nightjar.yaml`, pull request templates, and the lists of required tests "
        "and images only",
    ),
    Permission(
        "members", "Members, of the organization", "read", "`cc @octo-org/hexagon`; optional if you don't use teams"
    ),
    Permission(
        "merge_queues",
        "Merge queues",
        "read",
        "report `ci/slow-tests`, `ci/skip` and `nightjar/lint` on merge groups; optional without a merge queue",
    ),
    Permission(
        "workflows",
        "Workflows",
        "write",
        "merge, and move branches, across changes of `.github/workflows`. Optional, and not in the link: without it "
        "the bot says what it cannot do",
        on_demand=True,
    ),
)
PERMISSIONS = {need.key: need.access for need in NEEDS if not need.on_demand}
EVENTS = (
    "check_run",
    "check_suite",
    "issue_comment",
    "issues",
    "merge_group",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "repository",
    "status",
    "workflow_run",
)

NEW_APP = "https://github.com/settings/apps/new"
TEXT = """\
[This link]({url}) opens GitHub's form for a new App with all of this filled in.
You add the name, the webhook's address and its secret.

For an organization's App, replace the address before the `?` with
`https://github.com/organizations/ORGANIZATION/settings/apps/new`.

{permissions}

{events}"""
MOST_COLUMNS = 118


def registration_url() -> str:
    """Return the address of GitHub's form for a new App with permissions and events filled in.

    https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-using-url-parameters
    """
    settings = [
        ("public", "false"),
        ("webhook_active", "true"),
        ("webhook_url", "https://YOUR-HOST/webhook"),
        ("callback_urls[]", f"https://YOUR-HOST{CALLBACK_PATH}"),
    ]
    permissions = [(need.key, need.access) for need in NEEDS if need.key != "metadata" and not need.on_demand]
    return f"{NEW_APP}?{urlencode([*settings, *permissions, *(('events[]', event) for event in EVENTS)])}"


def registration_text() -> str:
    """Return the list of permissions and events for docs/installing.md, as Markdown."""
    rows = [(need.name, need.access, need.what_for) for need in NEEDS]
    names = ", ".join(f"*{event.replace('_', ' ').capitalize()}*" for event in EVENTS)
    events = fill(f"Events: {names}.", MOST_COLUMNS)
    permissions = table(("permission", "access", "for"), rows)
    return TEXT.format(url=registration_url(), permissions=permissions, events=events)
