"""`nightjar results upload` with the address of a bot: it waits until the run is stored, and for its check run."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from tests.bucket import Script, World
from tests.cli.uploads import SHA, arguments, content, folder
from tests.running import run

__all__ = ["folder"]

CHECK = "https://github.com/octocat/compiler/runs/7"


def listed_run(state: str, reason: str = "", check_run: str | None = None) -> web.Response:
    listed = {"run_id": "run-1", "state": state, "reason": reason, "check_run": check_run}
    return web.json_response({"runs": [listed], "next": None})


async def upload_to_bot(
    folder: Path, world: World, script: Script, *answers: web.Response, wait: float = 60, words: tuple[str, ...] = ()
) -> tuple[int, str]:
    """Upload with the address of a bot that gives these answers in order; return the exit status and standard error."""
    script.answers += answers
    command_line = arguments("ops.xml", *words, bucket=world.name, api=script.url, timeout=wait)
    finished = await run("results", *command_line, env=world.server.environment, cwd=folder)
    return finished.status, finished.err + finished.out


async def test_an_upload_succeeds_once_the_bot_has_stored_the_run_and_names_its_check_run(
    folder: Path, aws_world: World, script: Script
) -> None:
    none = web.json_response({"runs": [], "next": None})
    stored = [listed_run("stored"), listed_run("stored", check_run=CHECK)]
    status, err = await upload_to_bot(folder, aws_world, script, none, *stored)
    assert status == 0, err
    page, pending, check = err.splitlines()[-4:-1]
    assert page == f"The bot stored the run: {script.url}/r/octocat/compiler/runs/example-lab/adreno/{SHA}/run-1"
    assert pending.startswith("Waiting for the check run hardware/example-lab/adreno;")
    assert check == f"Check run hardware/example-lab/adreno: {CHECK}"


@pytest.mark.parametrize(
    "last", [listed_run("stored"), web.json_response({"detail": "Removed."}, status=404)], ids=["unwritten", "removed"]
)
async def test_an_upload_succeeds_even_if_the_check_run_is_not_written_in_time(
    folder: Path, aws_world: World, script: Script, last: web.Response
) -> None:
    none = web.json_response({"runs": [], "next": None})
    status, err = await upload_to_bot(folder, aws_world, script, none, listed_run("stored"), last, wait=0.001)
    assert status == 0, err
    assert f"check run hardware/example-lab/adreno is not written yet; it will appear on {SHA}." in err


async def test_json_has_the_address_of_the_check_run(folder: Path, aws_world: World, script: Script) -> None:
    none = web.json_response({"runs": [], "next": None})
    answers = none, listed_run("stored", check_run=CHECK)
    status, err = await upload_to_bot(folder, aws_world, script, *answers, words=("--json",))
    assert status == 0, err
    assert f'"check_run": "{CHECK}"' in err


@pytest.mark.parametrize("state", ["refused", "incomplete"])
async def test_an_upload_that_the_bot_does_not_store_ends_with_1_and_the_reason(
    folder: Path, aws_world: World, script: Script, state: str
) -> None:
    none = web.json_response({"runs": [], "next": None})
    refused = listed_run(state, "app.yaml has no target adreno for the lab example-lab")
    status, err = await upload_to_bot(folder, aws_world, script, none, refused)
    assert status == 1
    assert f"the bot did not store the run ({state}): app.yaml has no target adreno" in err
    assert "Check run" not in err


async def test_a_repository_unknown_to_the_bot_is_refused_before_anything_is_uploaded(
    folder: Path, aws_world: World, script: Script
) -> None:
    unknown = web.json_response({"detail": "No such repository here."}, status=404)
    status, err = await upload_to_bot(folder, aws_world, script, unknown)
    assert status == 1
    assert "cannot upload for octocat/compiler: No such repository here" in err
    assert content(aws_world) == {}


async def test_a_run_that_the_bot_does_not_read_in_time_ends_with_1(
    folder: Path, aws_world: World, script: Script
) -> None:
    answers = [web.json_response({"runs": [], "next": None}) for _ in range(2)]
    status, err = await upload_to_bot(folder, aws_world, script, *answers, wait=0.001)
    assert status == 1
    assert "the bot has not stored or refused the run after 0.001 s; ask later: " in err
