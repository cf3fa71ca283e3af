"""Apps, their installations, tokens, and the record of deliveries.

https://docs.github.com/rest/apps
"""

from __future__ import annotations

from typing import Any

from sandbox.clock import iso
from sandbox.errors import ApiError, not_found, refused
from sandbox.model.apps import Installation, InstallationToken
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import repositories, users
from sandbox.webhooks import SentDelivery

Json = dict[str, Any]
# https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/viewing-webhook-deliveries
REDELIVERY_WINDOW_DAYS = 3
DELIVERIES_PER_PAGE = 30


@route("GET", "/app", auth="app")
def get_app(call: Call) -> ApiResponse:
    """Return the App itself."""
    return ApiResponse(users.app(call.app) | {"installations_count": len(call.app.installations)})


@route("GET", "/app/installations", auth="app")
def list_installations(call: Call) -> ApiResponse:
    """List the App's installations."""
    return call.page(list(call.app.installations.values()), users.installation)


@route("GET", "/app/installations/{installation_id}", auth="app")
def get_installation(call: Call) -> ApiResponse:
    """Return one installation."""
    return ApiResponse(users.installation(_installation(call)))


@route("GET", "/repos/{owner}/{repo}/installation", auth="app")
def get_repository_installation(call: Call) -> ApiResponse:
    """Return the installation that includes a repository.

    A suspended one, too: requests fail only when they ask for a token, as in
    https://github.com/google-gemini/gemini-cli/issues/12033.
    """
    installation = call.app.selected(call.repository)
    if installation is None:
        raise not_found()
    return ApiResponse(users.installation(installation))


@route("POST", "/app/installations/{installation_id}/access_tokens", auth="app")
def create_token(call: Call) -> ApiResponse:
    """Issue an installation token, narrowed to repositories and permissions if asked."""
    installation = _installation(call)
    if installation.suspended_at:
        raise ApiError(403, "This installation has been suspended")
    names, numbers = call.body.get("repositories"), call.body.get("repository_ids")
    chosen = None
    if names is not None or numbers is not None:
        chosen = [r for r in installation.repositories if r.name in (names or []) or r.id in (numbers or [])]
        if len(chosen) != len(names or []) + len(numbers or []):
            raise refused("There is at least one repository that does not exist or is not accessible")
    permissions = call.body.get("permissions")
    for name, level in (permissions or {}).items():
        if installation.permissions.get(name) not in {level, "write"}:
            raise refused("The permissions requested are not granted to this installation.")
    # An empty object narrows nothing: GitHub then grants all permissions of the App.
    narrowed = [name for name in ("repositories", "repository_ids", "permissions") if call.body.get(name)]
    token = call.github.tokens.issue(installation, chosen, permissions, narrowed)
    return ApiResponse(_token(token, narrowed=names is not None or numbers is not None), 201)


def _token(token: InstallationToken, *, narrowed: bool) -> Json:
    body: Json = {
        "token": token.value,
        "expires_at": iso(token.expires_at),
        "permissions": dict(token.permissions),
        "repository_selection": "selected",
    }
    return body | ({"repositories": [repositories.repository(r) for r in token.repositories]} if narrowed else {})


def _installation(call: Call) -> Installation:
    installation = call.app.installations.get(call.path["installation_id"])
    if installation is None:
        raise not_found()
    return installation


@route("DELETE", "/installation/token")
def revoke_token(call: Call) -> ApiResponse:
    """Revoke the token that authenticates the request."""
    assert call.token is not None
    call.github.tokens.revoke(call.token)
    return ApiResponse(status=204)


@route("GET", "/installation/repositories", "metadata")
def list_repositories(call: Call) -> ApiResponse:
    """List the repositories that the token covers."""
    assert call.token is not None
    # The sandbox keeps a deleted repository in its installation; GitHub lists it no more.
    current = call.github.repositories
    existing = [
        repository for repository in call.token.repositories if current.get(repository.full_name.lower()) is repository
    ]
    answer = call.page(existing, repositories.repository, "repositories")
    assert isinstance(answer.body, dict)
    answer.body["repository_selection"] = "selected"
    return answer


@route("GET", "/users/{username}", auth="either")
def get_user(call: Call) -> ApiResponse:
    """Return a user or bot."""
    account = call.github.users.get(call.path["username"].lower())
    if account is None:
        raise not_found()
    return ApiResponse(users.public_user(account))


@route("GET", "/rate_limit", auth="either")
def get_rate_limit(call: Call) -> ApiResponse:
    """Return the current limits. This request does not count against them, as on GitHub."""
    caller = f"installation ID {call.token.installation.id}" if call.token else f"app ID {call.app.id}"
    window = call.github.rate_limits.window(caller)
    window.used -= 1
    limits = {
        "limit": window.limit,
        "used": window.used,
        "remaining": window.limit - window.used,
        "reset": int(window.reset.timestamp()),
    }
    return ApiResponse({"resources": {"core": limits, "search": limits}, "rate": limits})


@route("GET", "/app/hook/config", auth="app")
def get_hook_config(call: Call) -> ApiResponse:
    """Return the configuration of the App's webhook, with the secret masked."""
    app = call.app
    hook = {"content_type": app.hook_content_type, "insecure_ssl": app.hook_insecure_ssl}
    optional = {"url": app.webhook_url, "secret": app.webhook_secret and "********"}
    return ApiResponse(hook | {name: value for name, value in optional.items() if value})


@route("GET", "/app/hook/deliveries", auth="app")
def list_deliveries(call: Call) -> ApiResponse:
    """List deliveries, newest first, in pages that a cursor links."""
    size, cursor = call.query.get("per_page", DELIVERIES_PER_PAGE), call.query.get("cursor")
    recorded = [d for d in reversed(_deliveries(call)) if _seen(d)]
    if cursor is not None:
        try:
            recorded = [d for d in recorded if d.id <= int(cursor.removeprefix("v1_"))]
        except ValueError:
            raise ApiError(400, "Invalid cursor", mistake=True) from None
    outcome = call.query.get("status")
    if outcome is not None:
        recorded = [d for d in recorded if (outcome == "success") == (200 <= (d.status_code or 0) < 400)]
    headers = {}
    if len(recorded) > size:
        link = call.url.update_query(cursor=f"v1_{recorded[size].id}")
        headers["Link"] = f'<{link}>; rel="next"'
    return ApiResponse([_delivery(d) for d in recorded[:size]], headers=headers)


@route("GET", "/app/hook/deliveries/{delivery_id}", auth="app")
def get_delivery(call: Call) -> ApiResponse:
    """Return one delivery with its request and response."""
    delivery = _found(call)
    request = {"headers": delivery.request_headers, "payload": delivery.body}
    response = {"headers": delivery.response_headers, "payload": delivery.response}
    return ApiResponse(_delivery(delivery) | {"request": request, "response": response, "url": str(call.url)})


@route("POST", "/app/hook/deliveries/{delivery_id}/attempts", auth="app")
def redeliver(call: Call) -> ApiResponse:
    """Send a delivery again under the same GUID."""
    delivery = _found(call)
    if (call.github.clock.now() - delivery.created_at).days >= REDELIVERY_WINDOW_DAYS:
        raise refused("The delivery is too old to be redelivered")
    call.github.webhooks.redeliver(delivery)
    return ApiResponse({}, 202)


def _deliveries(call: Call) -> list[SentDelivery]:
    return [d for d in call.github.webhooks.deliveries if d.target is call.app]


def _seen(delivery: SentDelivery) -> bool:
    """Return whether GitHub lists a delivery: only once it has an outcome."""
    return delivery.status_code is not None


def _found(call: Call) -> SentDelivery:
    delivery = next((d for d in _deliveries(call) if d.id == call.path["delivery_id"]), None)
    if delivery is None:
        raise not_found()
    return delivery


def _delivery(delivery: SentDelivery) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": iso(delivery.created_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code or 0,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": None,
    }
