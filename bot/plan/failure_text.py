"""Failures in words that may be shown to people: what to do next, never a traceback, never GitHub's text unescaped."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.errors import TryAgain, UserError
from bot.github.errors import NotInstalled, is_forbidden, is_refusal, message_of
from bot.github.forbidden import Cause, cause_of, is_generic
from bot.github.markdown import code, truncate

OUR_FAULT = "something went wrong on my side. The maintainers find it in the log under delivery {guid}."
NOT_REACHED = (
    "GitHub or the CI did not answer in spite of many tries, so I gave up. Nothing was lost: please ask again, "
    "or have a maintainer run {command}."
)
LACKS_PERMISSION = (
    "GitHub does not let me: the App lacks {permission} for this repository. "
    "Whoever owns the App grants it in the App's settings; an owner of the repository then accepts it."
)
NAMED_PERMISSION = "the permission {needed}"
UNNAMED_PERMISSION = "a permission"
REFUSED = "GitHub refused, saying {message}."
LONGEST_QUOTE = 300
"""Characters of GitHub's own words that are quoted."""
NEEDS_WORKFLOWS = (
    "GitHub does not let me: this changes files in `.github/workflows`, for which the App needs the permissions "
    "*Contents: write* and *Workflows: write*. Whoever owns the App grants them in the App's settings; an owner of the "
    "repository then accepts it. Somebody with write access can also do it on GitHub."
)
FORBIDDEN: Mapping[Cause, str] = {
    Cause.ARCHIVED: (
        "GitHub does not let me: the repository is archived, so nobody can write to it. Somebody with admin access can "
        "unarchive it in its settings."
    ),
    Cause.LOCKED: "GitHub does not let me: this conversation is locked, so only people with write access can comment.",
    Cause.WORKFLOWS: NEEDS_WORKFLOWS,
    Cause.ADDRESS: (
        "GitHub does not let me: the organization has an IP allow list, and the address of the server that I run on is "
        "not on it. An owner of the organization can add that address."
    ),
    Cause.SAML: (
        "GitHub does not let me: the organization requires SAML single sign-on, and the App is not authorized for it. "
        "An owner of the organization can authorize the App in the organization's settings."
    ),
}
"""What to say of a 403 whose cause GitHub's sentence names."""
NOT_INSTALLED = "the App is not installed here any more."

# The header in which GitHub names what a request would have needed, as in `actions=write`
# (https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api).
PERMISSIONS_HEADER = "x-accepted-github-permissions"


def failure_text(error: Exception, guid: str) -> str:
    """Say what an error means to the person whose wish it ended; `guid` is the delivery's, for the maintainers."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, TryAgain):
        return NOT_REACHED.format(command=code(f"nightjar replay {guid}"))
    return refusal_text(error) or OUR_FAULT.format(guid=code(guid))


def refusal_text(error: Exception) -> str | None:
    """Say what GitHub refused and why; None for an error that is no refusal."""
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
        headers = getattr(error, "headers", None) or {}
        needed = {key.lower(): value for key, value in headers.items()}.get(PERMISSIONS_HEADER)
        permission = NAMED_PERMISSION.format(needed=code(needed)) if needed else UNNAMED_PERMISSION
        return LACKS_PERMISSION.format(permission=permission)
    return quoted if is_refusal(error) else None
