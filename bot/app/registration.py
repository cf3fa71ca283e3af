"""What an App has to be registered with on GitHub: the permissions and events that the code needs, and no more.

The README's table and link come from here, and the demo and the conversations of the tests run an App with exactly
these, so none of them can promise what the others do not keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from bot.core.docs import table


@dataclass(frozen=True, slots=True)
class Permission:
    """One permission: its key in GitHub's API, its name on GitHub's pages, and what it is for.

    One that is `on_demand` is named in the README, and the link leaves it out: most repositories do without it.
    """

    key: str
    name: str
    access: str
    what_for: str
    on_demand: bool = False


# What reading and writing takes: https://docs.github.com/rest/authentication/permissions-required-for-github-apps
# What hearing of an event takes: https://docs.github.com/webhooks/webhook-events-and-payloads
NEEDS = (
    Permission("metadata", "Metadata", "read", "people's roles, the rules of branches; GitHub sets it by itself"),
    Permission(
        "pull_requests",
        "Pull requests",
        "write",
        "reading pull requests and reviews, asking for reviews, the merge queue; opening the one of `docker_update`",
    ),
    Permission(
        "issues",
        "Issues",
        "write",
        "comments, reactions; saying why a branch cannot move, and what fails on it; "
        "hearing of new issues, and of the one that lists teams",
    ),
    Permission(
        "statuses",
        "Commit statuses",
        "write",
        "`ci/slow-tests`, `ci/skip`, `nightly`; reading, and hearing, what Jenkins reported",
    ),
    Permission(
        "actions", "Actions", "write", "finding and rerunning workflows; hearing how they ended; artifacts of tests"
    ),
    Permission(
        "checks",
        "Checks",
        "write",
        "check runs of hardware labs, of `.github/nightjar.yaml` and of titles; finding a job by its name",
    ),
    Permission(
        "contents",
        "Contents",
        "write",
        "merging where somebody asks for it, moving the nightly and the last good branch and the branch of "
        "`docker_update`, and writing nothing else; "
        "hearing of pushes; which commits are on a branch, what protects it, the names of files, and of what is in "
        "them `.github/nightjar.yaml`, templates of pull requests, the lists of required tests and of "
        "images alone",
    ),
    Permission(
        "members", "Members, of the organization", "read", "`cc @octo-org/hexagon`; may be left out without teams"
    ),
    Permission(
        "merge_queues",
        "Merge queues",
        "read",
        "hearing of a merge queue's groups, to report `ci/slow-tests`, `ci/skip` and `nightjar/lint` on them; may be "
        "left out without a merge queue",
    ),
    Permission(
        "workflows",
        "Workflows",
        "write",
        "merging pull requests, and moving the nightly and the last good branch, across changes of "
        "`.github/workflows`; optional, and not in the link: where it is missing, the refusal names it",
        on_demand=True,
    ),
)
PERMISSIONS = {need.key: need.access for need in NEEDS if not need.on_demand}
ON_DEMAND = {need.key: need.access for need in NEEDS if need.on_demand}
"""What the bot does without, until it has to do the one thing that needs it."""
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
[This link]({url}) opens GitHub's form for a new App of your own with all of this filled in, but for its name and the
webhook's address and secret. For an organization's App, put `https://github.com/organizations/ORGANIZATION/settings/apps/new`
before the `?` of the address.

{permissions}

Events: {events}."""


def registration_url() -> str:
    """Return the address of GitHub's form for a new App with permissions and events filled in.

    https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-using-url-parameters
    """
    settings = [("public", "false"), ("webhook_active", "true"), ("webhook_url", "https://YOUR-HOST/webhook")]
    wanted = [(need.key, need.access) for need in NEEDS if need.key != "metadata" and not need.on_demand]
    return f"{NEW_APP}?{urlencode([*settings, *wanted, *(('events[]', event) for event in EVENTS)])}"


def registration_text() -> str:
    """Return what the README says of permissions and events, as Markdown."""
    rows = [(need.name, need.access, need.what_for) for need in NEEDS]
    events = ", ".join(f"*{event.replace('_', ' ').capitalize()}*" for event in EVENTS)
    permissions = table(("permission", "access", "for"), rows)
    return TEXT.format(url=registration_url(), permissions=permissions, events=events)
