"""A person's role: GitHub's answers, read and cached."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.events import Person
from bot.github.client import GitHub
from bot.github.repositories.permissions import Permissions
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import refused

OCTOCAT = Person(id=583231, login="octocat", is_bot=False)
PATH = "/repos/octocat/compiler/collaborators/octocat/permission"


def answer(permission: str, role: str | None, user: Any = "octocat") -> Say:
    person = {"login": "octocat", "id": OCTOCAT.id} if user == "octocat" else user
    return Say(body={"permission": permission, "role_name": role, "user": person})


@pytest.mark.parametrize(
    ("reply", "role"),
    [
        (answer("admin", "admin"), "admin"),
        (answer("write", "maintain"), "maintain"),
        (answer("read", "triage"), "triage"),
        (answer("none", "none"), "none"),
        (answer("write", "hardware-team"), "write"),
        (answer("write", None), "write"),
        (answer("write", "write", None), "none"),
        (answer("admin", "admin", {"login": "octocat", "id": 1}), "none"),
        (refused(404), "none"),
    ],
    ids=[
        "admin",
        "maintain is more than write",
        "triage is more than read",
        "none",
        "an organization's own role counts as the nearest of the old four",
        "an older Enterprise Server names no role",
        "no user, so the owner of the login is unknown",
        "the login now belongs to somebody else",
        "unknown to the repository",
    ],
)
async def test_the_role_is_read_from_githubs_answer(
    scripted: ScriptedGitHub, gh: GitHub, reply: Say, role: str
) -> None:
    scripted.will("GET", PATH, reply)
    assert await Permissions().role(gh, "octocat/compiler", OCTOCAT) == role


async def test_a_role_is_looked_up_once_in_a_while_whatever_the_case_of_the_name(
    scripted: ScriptedGitHub, gh: GitHub
) -> None:
    scripted.will("GET", PATH, answer("write", "write"))
    permissions = Permissions()
    for name in ("octocat/compiler", "Octocat/Compiler"):
        assert await permissions.role(gh, name, OCTOCAT) == "write"
    assert len(scripted.requests_for("GET", PATH)) == 1


async def test_people_are_identified_by_id_and_not_by_login(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, answer("admin", "admin"))
    permissions = Permissions()
    assert await permissions.role(gh, "octocat/compiler", OCTOCAT) == "admin"
    assert await permissions.role(gh, "octocat/compiler", Person(id=1, login="octocat", is_bot=False)) == "none"
