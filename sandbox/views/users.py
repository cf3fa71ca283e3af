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


def page_name(who: User) -> str:
    """Return the last part of the address of somebody's page; for a bot, its App's page."""
    return f"apps/{who.login.removesuffix('[bot]')}" if who.type == "Bot" else who.login


def picture(who: User) -> str:
    """Return the address of somebody's picture; for a bot, the picture of its App."""
    return f"{who.github.url}/avatars/{f'in/{who.app_id}' if who.app_id else who.id}?v=4"


def author(who: User) -> Json | None:
    """Return the `simple-user` who wrote something, null if the account was deleted."""
    return None if who.deleted else user(who)


def opener(who: User) -> Json:
    """Return the `simple-user` who opened a pull request; @ghost if the account was deleted."""
    return user(replace(who, id=GHOST_ID, login="ghost", type="User") if who.deleted else who)


def user(who: User) -> Json:
    """Return a `simple-user`."""
    login = quote(who.login)
    url, page = f"{who.github.url}/users/{login}", f"{who.github.url}/{page_name(who)}"
    return {
        "login": who.login,
        "id": who.id,
        "node_id": who.node_id,
        "avatar_url": picture(who),
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
        "type": who.type,
        "site_admin": False,
    }


def public_user(who: User) -> Json:
    """Return a `public-user`: what `GET /users/{login}` answers."""
    missing = ("name", "company", "location", "email", "hireable", "bio")
    counts = ("public_repos", "public_gists", "followers", "following")
    moment = iso(who.created_at)
    return {
        **user(who),
        **dict.fromkeys(missing),
        **dict.fromkeys(counts, 0),
        "blog": "",
        "created_at": moment,
        "updated_at": moment,
    }


def organization(who: User) -> Json:
    """Return an `organization-simple-webhooks`."""
    url = f"{who.github.url}/orgs/{who.login}"
    return {
        "login": who.login,
        "id": who.id,
        "node_id": who.node_id,
        "url": url,
        "repos_url": f"{url}/repos",
        "events_url": f"{url}/events",
        "hooks_url": f"{url}/hooks",
        "issues_url": f"{url}/issues",
        "members_url": f"{url}/members{{/member}}",
        "public_members_url": f"{url}/public_members{{/member}}",
        "avatar_url": f"{who.github.url}/avatars/{who.id}",
        "description": None,
    }


def team(found: Team) -> Json:
    """Return a `team`."""
    github, org = found.organization.github, found.organization
    url = f"{github.url}/organizations/{org.id}/team/{found.id}"
    return {
        "id": found.id,
        "node_id": found.node_id,
        "name": found.slug,
        "slug": found.slug,
        "description": None,
        "privacy": "closed",
        "notification_setting": "notifications_enabled",
        "permission": "push",
        "url": url,
        "html_url": f"{github.url}/orgs/{org.login}/teams/{found.slug}",
        "members_url": f"{url}/members{{/member}}",
        "repositories_url": f"{url}/repos",
        "type": "organization",
        "parent": None,
    }


def app(found: App) -> Json:
    """Return an `integration`."""
    moment = iso(found.created_at)
    return {
        "id": found.id,
        "client_id": found.client_id,
        "slug": found.slug,
        "node_id": found.node_id,
        "owner": user(found.owner),
        "name": found.slug,
        "description": None,
        "external_url": f"{found.github.url}/apps/{found.slug}",
        "html_url": f"{found.github.url}/apps/{found.slug}",
        "created_at": moment,
        "updated_at": moment,
        "permissions": found.permissions,
        "events": list(found.events),
    }


def installation(found: Installation) -> Json:
    """Return an `installation`."""
    github, moment = found.app.github, iso(found.created_at)
    return {
        "id": found.id,
        "account": user(found.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{github.url}/app/installations/{found.id}/access_tokens",
        "repositories_url": f"{github.url}/installation/repositories",
        "html_url": f"{github.url}/settings/installations/{found.id}",
        "app_id": found.app.id,
        "app_slug": found.app.slug,
        "target_id": found.account.id,
        "target_type": found.account.type,
        "permissions": found.permissions,
        "events": list(found.app.events),
        "created_at": moment,
        "updated_at": moment,
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": user(found.suspended_by) if found.suspended_by else None,
        "suspended_at": iso_or_none(found.suspended_at),
    }


def installation_reference(found: Installation) -> Json:
    """Return the `simple-installation` of webhook bodies."""
    return {"id": found.id, "node_id": node_id("MDIzOk", found.id)}
