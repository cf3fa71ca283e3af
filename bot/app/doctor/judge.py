"""Compare the App on GitHub with what the bot needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.app.doctor.findings import Check, Finding, findings_of
from bot.app.doctor.texts import (
    ACCEPT,
    ADD_PERMISSIONS,
    APP_LACKS_EVENTS,
    APP_LACKS_PERMISSIONS,
    CORRECT_WEBHOOK_URL,
    ENABLE_TLS,
    FORM_ENCODED,
    HOOK_OK,
    INSTALL,
    INSTALL_ON_ACCOUNT,
    INSTALLED,
    NEEDS_MET,
    NO_REPOSITORIES,
    NO_SECRET,
    NO_WEBHOOK_URL,
    NOT_ACCEPTED,
    NOT_INSTALLED,
    OTHER_HOST,
    OTHER_PATH,
    PATTERN_NOT_INSTALLED,
    REMOVE_OR_RESTORE,
    RENAME,
    RENAMED,
    SEE_DELIVERIES,
    SET_CONTENT_TYPE,
    SET_SECRET,
    SET_WEBHOOK_URL,
    SUBSCRIBE,
    SUSPENDED,
    SUSPENDED_BY,
    TIMERS_STOPPED,
    TLS_NOT_VERIFIED,
    UNEXPECTED_STATUS,
    UNSUSPEND,
    WRONG_SECRET,
)
from bot.app.registration import EVENTS, NEEDS, PERMISSIONS
from bot.github.repositories.installed import ListedRepository
from bot.github.repositories.known import KnownRepository, LeftAlone

OPTIONAL = frozenset({"members", "merge_queues"})
"""Permissions that an App may leave out, as docs/installing.md says. None has those `on_demand` until it needs them."""
OPTIONAL_EVENTS = frozenset({"merge_group"})
"""Events that an App without an optional permission does not receive."""
WEBHOOK_PATH = "/webhook"
JSON = "json"
UNAUTHORIZED, BAD_REQUEST, NOT_FOUND = 401, 400, 404

LEVELS = {"read": 1, "write": 2, "admin": 3}
TITLES = {need.key: need.name for need in NEEDS}


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """The App's webhook as GitHub describes it; `newest` is the status of the newest delivery, 0 for none."""

    url: str
    content_type: str
    has_secret: bool
    verifies_tls: bool
    newest: int = 0


@dataclass(frozen=True, slots=True)
class InstallationState:
    """The installation on a repository of app.yaml; `permissions` is None if there is none.

    `suspended_by` is the login of who has suspended it, if GitHub says. `listed` is the repository as GitHub describes
    it; None without an installation, and while it is suspended.
    """

    repository: str
    permissions: Mapping[str, str] | None = None
    suspended: bool = False
    installation: int = 0
    suspended_by: str = ""
    listed: ListedRepository | None = None


def lacking(granted: Mapping[str, str]) -> list[str]:
    """Return the needed permissions that are not granted, as GitHub's pages call them."""
    missing = [
        (name, level)
        for name, level in PERMISSIONS.items()
        if name not in OPTIONAL and LEVELS.get(granted.get(name, ""), 0) < LEVELS[level]
    ]
    return [f"{TITLES[name]}: {level}" for name, level in missing]


def judge_permissions(of_app: Mapping[str, str], installed: Iterable[InstallationState]) -> list[Finding]:
    """Check the permissions of the App, and which of them the owners of repositories have accepted."""
    problems = []
    missing = lacking(of_app)
    if missing:
        problems.append((APP_LACKS_PERMISSIONS.format(missing=", ".join(missing)), ADD_PERMISSIONS))
    for state in installed:
        unaccepted = [name for name in lacking(state.permissions or {}) if name not in missing]
        if state.permissions is not None and unaccepted:
            text = NOT_ACCEPTED.format(repository=state.repository, missing=", ".join(unaccepted))
            problems.append((text, ACCEPT))
    return findings_of(Check.PERMISSIONS, problems, NEEDS_MET)


def judge_events(subscribed: Iterable[str]) -> Finding:
    """Check the events that the App is subscribed to."""
    missing = sorted(set(EVENTS) - OPTIONAL_EVENTS - set(subscribed))
    if not missing:
        return Finding(Check.EVENTS, NEEDS_MET)
    named = ", ".join(event.replace("_", " ").capitalize() for event in missing)
    return Finding(Check.EVENTS, APP_LACKS_EVENTS.format(missing=named), SUBSCRIBE)


def judge_hook(hook: WebhookConfig, public_url: str | None) -> list[Finding]:
    """Check how GitHub delivers webhooks."""
    problems = []
    if not hook.url:
        problems.append((NO_WEBHOOK_URL, SET_WEBHOOK_URL))
    elif not hook.url.endswith(WEBHOOK_PATH):
        problems.append((OTHER_PATH.format(url=hook.url), CORRECT_WEBHOOK_URL))
    elif public_url and hook.url != public_url.rstrip("/") + WEBHOOK_PATH:
        problems.append((OTHER_HOST.format(url=hook.url, public=public_url), CORRECT_WEBHOOK_URL))
    if hook.content_type != JSON:
        problems.append((FORM_ENCODED, SET_CONTENT_TYPE))
    if not hook.has_secret:
        problems.append((NO_SECRET, SET_SECRET))
    if not hook.verifies_tls:
        problems.append((TLS_NOT_VERIFIED, ENABLE_TLS))
    # GitHub never shows the secret, so only our answers to deliveries show that GitHub has another one.
    if not problems and hook.newest == UNAUTHORIZED:
        problems.append((WRONG_SECRET, SET_SECRET))
    elif not problems and hook.newest in (BAD_REQUEST, NOT_FOUND):
        problems.append((UNEXPECTED_STATUS.format(status=hook.newest), SEE_DELIVERIES))
    return findings_of(Check.HOOK, problems, HOOK_OK.format(url=hook.url))


def judge_repositories(
    installed: Sequence[InstallationState],
    known: Iterable[KnownRepository] = (),
    uninstalled_patterns: Iterable[str] = (),
) -> list[Finding]:
    """Check that the App is installed and active on each repository of app.yaml, and that its name is current.

    `uninstalled_patterns` are the patterns of accounts without the App.
    """
    problems = [(PATTERN_NOT_INSTALLED.format(pattern=pattern), INSTALL_ON_ACCOUNT) for pattern in uninstalled_patterns]
    for seen in known:
        if seen.renamed:
            problems.append((RENAMED.format(repository=seen.name, now=seen.full_name), RENAME))
        if seen.away in (LeftAlone.ARCHIVED, LeftAlone.DELETED):
            problems.append((TIMERS_STOPPED.format(repository=seen.name, reason=seen.reason), REMOVE_OR_RESTORE))
    for state in installed:
        if state.suspended:
            person = SUSPENDED_BY.format(login=state.suspended_by) if state.suspended_by else ""
            text = SUSPENDED.format(repository=state.repository, installation=state.installation, by=person)
            problems.append((text, UNSUSPEND))
        elif state.permissions is None:
            problems.append((NOT_INSTALLED.format(repository=state.repository), INSTALL))
    count = "1 repository" if len(installed) == 1 else f"{len(installed)} repositories"
    return findings_of(Check.REPOSITORIES, problems, INSTALLED.format(count=count) if installed else NO_REPOSITORIES)
