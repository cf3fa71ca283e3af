"""What people read about an error: what happened, why, and what to do. GitHub's own words are quoted as code."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.errors import TryAgain, UserError
from bot.core.patterns import Pattern
from bot.engine.retry import LostTooOften
from bot.github.access import permission_title
from bot.github.errors import AccessPaused, NotInstalled, is_forbidden, is_refusal, message_of
from bot.github.forbidden import Cause, cause_of, is_generic
from bot.github.text.markdown import code, truncate

OUR_FAULT = "Something went wrong on my side. Maintainers can find it in the log under delivery {guid}."
NOT_REACHED = (
    "GitHub or the CI didn't respond after many tries, so I gave up. Try again later, or ask a maintainer to run "
    "{command}."
)
ACCESS_PAUSED = (
    "The App had no access to this repository for three days, because it was suspended or taken off, so I gave up. Try "
    "again, or ask a maintainer to run {command}."
)
DENIED = "GitHub denied this: "
GRANT = "The App's owner grants it in the App's settings; then an owner of the repository accepts it."
CRASHED = (
    "My server stopped several times while it did this, so I stopped trying. {next_step} Maintainers can find it in "
    "the log under delivery {guid}."
)
AGAIN_IN_AN_HOUR = "I'll try again in an hour."
REPLAY_IT = "To try again, ask a maintainer to run {command}."
LACKS_PERMISSION = f"{DENIED}the App needs {{permission}}. {GRANT}"
UNNAMED_PERMISSION = "a permission that it doesn't have"
REFUSED = "GitHub refused this: {message}."
LONGEST_QUOTE = 300
"""The most characters of GitHub's own words that are quoted."""
NEEDS_WORKFLOWS = (
    f"{DENIED}it changes files in `.github/workflows`, so the App needs *Contents: write* and *Workflows: write*. "
    f"{GRANT} Someone with write access can also do it on GitHub."
)
FORBIDDEN: Mapping[Cause, str] = {
    Cause.ARCHIVED: f"{DENIED}the repository is archived. A repository admin can unarchive it in its settings.",
    Cause.LOCKED: f"{DENIED}this conversation is locked, and only people with write access can comment.",
    Cause.WORKFLOWS: NEEDS_WORKFLOWS,
    Cause.ADDRESS: (
        f"{DENIED}the organization has an IP allow list without the address of this bot's server. An owner of the "
        "organization can add that address."
    ),
    Cause.SAML: (
        f"{DENIED}the organization requires SAML single sign-on, and the App isn't authorized for it. An owner of the "
        "organization can authorize the App in the organization's settings."
    ),
    Cause.SUSPENDED: f"{DENIED}the App is suspended for this account. Whoever has suspended it can unsuspend it.",
}
"""The text for a 403 whose cause GitHub names."""
NOT_INSTALLED = "The App is no longer installed on this repository."

# The header in which GitHub names what a request would have needed, as in `actions=write`
# (https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api).
PERMISSIONS_HEADER = "x-accepted-github-permissions"
_NAME = Pattern(r"[a-z_]+=[a-z]+")


def failure_text(error: Exception, guid: str) -> str:
    """Return the text for the person whose request failed; `guid` is the delivery's, for the maintainers."""
    if isinstance(error, UserError):
        return str(error)
    replay_command = code(f"nightjar replay {guid}")
    if isinstance(error, TryAgain):
        text = ACCESS_PAUSED if isinstance(error, AccessPaused) else NOT_REACHED
        return text.format(command=replay_command)
    if isinstance(error, LostTooOften):
        next_step = AGAIN_IN_AN_HOUR if error.runs_again else REPLAY_IT.format(command=replay_command)
        return CRASHED.format(next_step=next_step, guid=code(guid))
    return refusal_text(error) or OUR_FAULT.format(guid=code(guid))


def refusal_text(error: Exception) -> str | None:
    """Return the text for a request that GitHub refused; None for any other error."""
    if isinstance(error, NotInstalled):
        return NOT_INSTALLED
    message = message_of(error)
    quoted = REFUSED.format(message=code(truncate(message, LONGEST_QUOTE)))
    if is_forbidden(error):  # GraphQL's as well, which has no headers
        cause = cause_of(message)
        if cause is not None:
            return FORBIDDEN[cause]
        if not is_generic(message):
            return quoted
        # Only errors with an HTTP answer of their own have headers; GraphQL's have none.
        headers = getattr(error, "headers", None) or {}
        needed = {key.lower(): value for key, value in headers.items()}.get(PERMISSIONS_HEADER, "")
        return LACKS_PERMISSION.format(permission=permissions_text(needed) or UNNAMED_PERMISSION)
    return quoted if is_refusal(error) else None


def permissions_text(header: str) -> str:
    """Return the permissions of `x-accepted-github-permissions` as GitHub's settings call them, in Markdown.

    A semicolon separates alternatives, a comma permissions that are needed together. Returns "" for any other text.
    """
    choices = [
        [tuple(permission.strip().split("=", 1)) for permission in choice.split(",")]
        for choice in header.split(";")
        if choice.strip()
    ]
    if not all(
        len(permission) == 2 and _NAME.fullmatch("=".join(permission)) for choice in choices for permission in choice
    ):
        return ""
    return " or ".join(
        " and ".join(f"*{permission_title(*permission)}*" for permission in choice) for choice in choices
    )
