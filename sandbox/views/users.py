"""Users, teams, Apps and installations as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from sandbox.clock import iso, iso_or_none
from sandbox.model.apps import App, Installation
from sandbox.users import Team, User, node_id

Json = dict[str, Any]
GHOST_ID = 10137
"""https://github.com/ghost"""


def page_name(account: User) -> str:
    """Return the last part of the address of somebody's page; for a bot, its App's page."""
    return f"apps/{account.login.removesuffix('[bot]')}" if account.type == "Bot" else account.login


def picture(account: User) -> str:
    """Return the address of somebody's picture; for a bot, the picture of its App."""
    return f"{account.github.url}/avatars/{f'in/{account.app_id}' if account.app_id else account.id}?v=4"


def author(account: User) -> Json | None:
    """Return the `simple-user` who wrote something, null if the account was deleted."""
    return None if account.deleted else user(account)


def opener(account: User) -> Json:
    """Return the `simple-user` who opened a pull request; @ghost if the account was deleted."""
    return user(replace(account, id=GHOST_ID, login="ghost", type="User") if account.deleted else account)


def user(account: User) -> Json:
    """Return a `simple-user`."""
    login = quote(account.login)
    url, page = f"{account.github.url}/users/{login}", f"{account.github.url}/{page_name(account)}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": account.node_id,
        "avatar_url": picture(account),
        "gravatar_id": "",
        "url": url,
        "html_url": page,
        "followers_url": f"{url}/followers",
        "following_url": f"{url}/following{{/other_user}}",
        "gists_url": f"{url}/gists{{/gist_id}}",
        "starred_url": f"{url}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{url}/subscriptions",
        "organizations_url": f"{url}/orgs",
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events{{/privacy}}",
        "received_events_url": f"{url}/received_events",
        "type": account.type,
        "site_admin": False,
    }


def public_user(account: User) -> Json:
    """Return a `public-user`: what `GET /users/{login}` answers."""
    missing = ("name", "company", "location", "email", "hireable", "bio")
    counts = ("public_repos", "public_gists", "followers", "following")
    moment = iso(account.created_at)
    return {
        **user(account),
        **dict.fromkeys(missing),
        **dict.fromkeys(counts, 0),
        "blog": "",
        "created_at": moment,
        "updated_at": moment,
    }


def organization(account: User) -> Json:
    """Return an `organization-simple-webhooks`."""
    url = f"{account.github.url}/orgs/{account.login}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": account.node_id,
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"{account.github.url}/avatars/{account.id}",
        "description": None,
    }


def team(team: Team) -> Json:
    """Return a `team`."""
    github, org = team.organization.github, team.organization
    url = f"{github.url}/organizations/{org.id}/team/{team.id}"
    return {
        "id": team.id,
        "node_id": team.node_id,
        "name": team.slug,
        "slug": team.slug,
        "description": None,
        "privacy": "closed",
        "notification_setting": "notifications_enabled",
        "permission": "push",
        "url": url,
        "html_url": f"{github.url}/orgs/{org.login}/teams/{team.slug}",
        "members_url": f"{url}/members{{/member}}",
        "repositories_url": f"{url}/repos",
        "type": "organization",
        "parent": None,
    }


def app(app: App) -> Json:
    """Return an `integration`."""
    moment = iso(app.created_at)
    return {
        "id": app.id,
        "client_id": app.client_id,
        "slug": app.slug,
        "node_id": app.node_id,
        "owner": user(app.owner),
        "name": app.slug,
        "description": None,
        "external_url": f"{app.github.url}/apps/{app.slug}",
        "html_url": f"{app.github.url}/apps/{app.slug}",
        "created_at": moment,
        "updated_at": moment,
        "permissions": app.permissions,
        "events": list(app.events),
    }


def installation(installation: Installation) -> Json:
    """Return an `installation`."""
    github, moment = installation.app.github, iso(installation.created_at)
    return {
        "id": installation.id,
        "account": user(installation.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{github.url}/app/installations/{installation.id}/access_tokens",
        "repositories_url": f"{github.url}/installation/repositories",
        "html_url": f"{github.url}/settings/installations/{installation.id}",
        "app_id": installation.app.id,
        "app_slug": installation.app.slug,
        "target_id": installation.account.id,
        "target_type": installation.account.type,
        "permissions": installation.permissions,
        "events": list(installation.app.events),
        "created_at": moment,
        "updated_at": moment,
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": user(installation.suspended_by) if installation.suspended_by else None,
        "suspended_at": iso_or_none(installation.suspended_at),
    }


def installation_reference(installation: Installation) -> Json:
    """Return the `simple-installation` of webhook bodies."""
    return {"id": installation.id, "node_id": node_id("MDIzOk", installation.id)}
