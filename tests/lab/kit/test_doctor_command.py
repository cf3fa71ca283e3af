"""`nightjar-lab doctor`: the problems of a lab's setup, in one line each, without leftovers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bucket import World
from tests.conversations.device_lab import device_lab
from tests.lab.kit.running import LAB, TARGET, kit_environment, run_here, run_kit
from tests.running import Finished


async def states(*words: str, env: dict[str, str], folder: Path) -> dict[str, tuple[str, str]]:
    """Run it, and return the state and text of each check."""
    return read(await run_kit("doctor", *words, "--json", env=env, cwd=folder))


def read(done: Finished) -> dict[str, tuple[str, str]]:
    """Return the state and text of each check."""
    assert "Traceback" not in done.err, done
    states_of_checks = {check["name"]: (check["state"], check["text"]) for check in json.loads(done.out)}
    assert done.status == int(any(state == "failed" for state, _ in states_of_checks.values()))
    return states_of_checks


async def test_a_good_setup_and_its_possible_problems(sqlite_url: str, tmp_path: Path, aws_world: World) -> None:
    async with device_lab(sqlite_url, aws_world) as lab:
        await lab.asked_for()
        good = kit_environment(tmp_path, aws_world, NIGHTJAR_URL=lab.town.url, NIGHTJAR_LAB_TOKEN=lab.token)
        states_of_checks = await states("--target", TARGET, env=good, folder=tmp_path)
        assert {name for name, (state, _) in states_of_checks.items() if state != "ok"} == {"nightly"}, states_of_checks
        assert states_of_checks["nightly"][0] == "warning"
        assert states_of_checks["targets"] == ("ok", f"app.yaml has {TARGET}")
        assert (await lab.store.find(LAB, "job")).state == "queued", "no job was claimed"
        left = [key for key in aws_world.keys("results/") if key not in states_of_checks["bucket"][1]]
        assert left == [], "nothing is left but the named object"

        states_of_checks = await states("--target", "hexagon-v99", env=good, folder=tmp_path)
        assert states_of_checks["targets"][0] == "failed"
        assert "hexagon-v99" in states_of_checks["targets"][1]
        assert TARGET in states_of_checks["targets"][1]

        states_of_checks = await states(env={**good, "NIGHTJAR_LAB_TOKEN": "nightjar_lab_nonsense"}, folder=tmp_path)
        assert "the bot does not accept NIGHTJAR_LAB_TOKEN for example-lab" in states_of_checks["token"][1]
        states_of_checks = await states(env={**good, "NIGHTJAR_LAB": "no-such-lab"}, folder=tmp_path)
        assert (
            "app.yaml has no lab no-such-lab for octocat/compiler; correct NIGHTJAR_LAB" in states_of_checks["lab"][1]
        )
        states_of_checks = await states(env={**good, "NIGHTJAR_REPOSITORY": "octocat/nothing"}, folder=tmp_path)
        assert "the bot accepts no results for octocat/nothing" in states_of_checks["repository"][1]


def test_missing_settings_are_named(tmp_path: Path) -> None:
    env = {**kit_environment(tmp_path), "NIGHTJAR_REPOSITORY": "", "NIGHTJAR_LAB": ""}
    done = run_here("doctor", env=env)
    assert (done.status, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("failed   NIGHTJAR_REPOSITORY: is not set; set it to the repository")
    assert all(line.split()[0] in ("ok", "failed", "warning", "skipped") for line in lines)


@pytest.mark.parametrize(
    ("changes", "check", "message"),
    [
        ({"NIGHTJAR_BUCKET": "no-such-bucket"}, "bucket", "bucket no-such-bucket does not exist"),
        ({"AWS_SECRET_ACCESS_KEY": ""}, "credentials", "AWS_SECRET_ACCESS_KEY is not set, but AWS_ACCESS_KEY_ID is"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "bucket", "could not reach bucket"),
        ({"NIGHTJAR_URL": "http://127.0.0.1:9"}, "bot", "check NIGHTJAR_URL and the network"),
    ],
)
def test_each_problem_is_named(
    changes: dict[str, str], check: str, message: str, tmp_path: Path, aws_world: World
) -> None:
    states_of_checks = read(run_here("doctor", "--json", env={**kit_environment(tmp_path, aws_world), **changes}))
    assert states_of_checks[check][0] == "failed"
    assert message in states_of_checks[check][1]


def test_a_denied_upload_names_the_policy(tmp_path: Path, aws_world: World) -> None:
    aws_world.server.forbid(aws_world.name, "s3:PutObject")
    states_of_checks = read(run_here("doctor", "--json", env=kit_environment(tmp_path, aws_world)))
    assert states_of_checks["bucket"][0] == "failed"
    assert "ask the maintainers for the policy" in states_of_checks["bucket"][1]
