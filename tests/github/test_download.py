"""Files that GitHub stores elsewhere: downloaded without our token, within limits, never named in errors."""

from __future__ import annotations

import io
import traceback

import pytest
from gidgethub import BadRequest, RedirectionException

from bot.github.client import GitHub
from bot.github.errors import Unavailable, is_not_found
from bot.github.transport.download import TooLong
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import refused

ARCHIVE, PATH = "/repos/{owner}/{repo}/actions/artifacts/{id}/zip", "/repos/octocat/compiler/actions/artifacts/5/zip"
VARS = {"owner": "octocat", "repo": "compiler", "id": "5"}
STORE, SECRET = "/store/5", "a-signature-that-opens-the-file"


def sent_to(scripted: ScriptedGitHub, status: int = 302) -> Say:
    return Say(status, headers={"location": f"{scripted.url}{STORE}?sig={SECRET}"})


async def fetched(gh: GitHub, limit: int = 100) -> bytes:
    file = io.BytesIO()
    await gh.download(ARCHIVE, VARS, file, limit=limit)
    return file.getvalue()


async def test_the_file_is_downloaded_from_the_address_that_github_names(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, sent_to(scripted))
    scripted.will("GET", STORE, Say(raw=b"PK"))
    assert await fetched(gh) == b"PK"
    (request,) = scripted.requests_for("GET", PATH)
    assert request.bearer.startswith("ghs_secret_")


async def test_the_token_is_not_sent_along(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, sent_to(scripted))
    scripted.will("GET", STORE, Say(raw=b"PK"))
    await fetched(gh)
    (request,) = scripted.requests_for("GET", STORE)
    assert "authorization" not in request.headers
    assert request.query == {"sig": SECRET}


async def test_no_more_is_read_than_allowed(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, sent_to(scripted))
    scripted.will("GET", STORE, Say(raw=b"x" * 100), Say(raw=b"x" * 101))
    assert len(await fetched(gh)) == 100
    with pytest.raises(TooLong, match="100"):
        await fetched(gh)


@pytest.mark.parametrize(
    "trouble", [Say(403), Say(404), Say(500), Say(drop=True), Say(302, headers={"location": "/elsewhere"})]
)
async def test_a_failing_store_is_asked_again_later(scripted: ScriptedGitHub, gh: GitHub, trouble: Say) -> None:
    """The address lasts a minute: the next try asks GitHub for a new one."""
    scripted.will("GET", PATH, sent_to(scripted))
    scripted.will("GET", STORE, trouble)
    with pytest.raises(Unavailable) as caught:
        await fetched(gh)
    message = "".join(traceback.format_exception(caught.value))
    assert SECRET not in message
    assert scripted.requests_for("GET", STORE)


async def test_a_removed_file_is_a_refusal(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, refused(410, "Artifact has expired"))
    with pytest.raises(BadRequest) as caught:
        await fetched(gh)
    assert is_not_found(caught.value)


async def test_a_moved_repository_is_reported_and_not_followed(scripted: ScriptedGitHub, gh: GitHub) -> None:
    """The file is behind a 302; a 301 leads to the API again, which finds nothing without our token."""
    scripted.will("GET", PATH, sent_to(scripted, 301))
    with pytest.raises(RedirectionException, match="renamed or moved"):
        await fetched(gh)
    assert scripted.requests_for("GET", STORE) == []


async def test_an_answer_without_an_address_is_an_error(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body={"message": "?"}))
    with pytest.raises(Unavailable, match="not a redirect"):
        await fetched(gh)
