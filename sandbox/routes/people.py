"""Tell whose user access token this is, and revoke it.

https://docs.github.com/rest/users/users#get-the-authenticated-user
"""

from __future__ import annotations

from sandbox.errors import not_found
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import users


@route("GET", "/user", auth="person")
def get_authenticated_user(call: Call) -> ApiResponse:
    """Return the person who signed in."""
    assert call.person is not None
    return ApiResponse(users.public_user(call.person.user))


@route("DELETE", "/applications/{client_id}/token", auth="client")
def delete_token(call: Call) -> ApiResponse:
    """Revoke a token that the calling App got for a person."""
    value = call.body["access_token"]
    if value not in call.github.sign_ins.valid or call.path["client_id"] != call.app.client_id:
        raise not_found()
    call.github.sign_ins.revoke(value)
    return ApiResponse(status=204)
