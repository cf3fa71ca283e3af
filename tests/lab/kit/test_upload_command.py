"""`nightjar-lab check` and `upload` without an app.yaml; tests/cli/test_results.py covers what both commands share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bucket import World
from tests.lab.kit.running import LAB, REPOSITORY, TARGET, kit_environment, run_here

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
JUNIT = '<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"/></testsuite>'
OPTIONS = ("upload", "--target", TARGET, "--sha", SHA, "--suite", "operators", "--run-id", "run-1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ops.xml").write_text(JUNIT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_uploads_to_the_configured_place_and_continues_where_it_stopped(folder: Path, aws_world: World) -> None:
    env = kit_environment(folder, aws_world)
    place = f"results/{REPOSITORY}/{LAB}/{TARGET}/{SHA}/run-1/"
    aws_world.put(f"{place}ops.xml", JUNIT.encode())
    done = run_here(*OPTIONS, "ops.xml", env=env)
    assert (done.status, done.out) == (0, f"s3://{aws_world.name}/{place}manifest.json\n"), done
    assert "ops.xml (93 bytes): already uploaded\nmanifest.json: uploaded\n" in done.err
    second = run_here(*OPTIONS, "ops.xml", "--json", env=env)
    assert json.loads(second.out)["uploaded"] == {"ops.xml": False, "manifest.json": False}
    assert json.loads(run_here("check", "ops.xml", "--json", env=env).out)[0]["good"]


@pytest.mark.parametrize(
    ("changes", "words", "status", "message"),
    [
        ({"NIGHTJAR_LAB": ""}, ("ops.xml",), 2, "--lab (NIGHTJAR_LAB) is not set; give the lab's name in app.yaml"),
        ({"NIGHTJAR_BUCKET": ""}, ("ops.xml",), 2, "--url (NIGHTJAR_URL) is not set; give the bot's address to upload"),
        ({"NIGHTJAR_REPOSITORY": ""}, ("ops.xml",), 2, "--repository (NIGHTJAR_REPOSITORY) is not set"),
        ({"NIGHTJAR_BUCKET": "no-such-bucket"}, ("ops.xml",), 1, "bucket no-such-bucket does not exist"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, ("ops.xml",), 1, "no AWS credentials were found"),
        ({}, (".",), 1, "is a folder; name the files in it"),
        ({}, ("ops.xml", "--wait"), 2, "--url (NIGHTJAR_URL) is not set; --wait needs the bot's address"),
        ({}, ("ops.xml", "--sha", "0d1a26e"), 2, "is not the full SHA of a commit"),
        ({"NIGHTJAR_URL": "http://127.0.0.1:9"}, ("ops.xml",), 1, "cannot upload for octocat/compiler: "),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_uploaded(
    changes: dict[str, str], words: tuple[str, ...], status: int, message: str, folder: Path, aws_world: World
) -> None:
    done = run_here(*OPTIONS, *words, env={**kit_environment(folder, aws_world), **changes})
    assert (done.status, done.out) == (status, ""), done
    assert message in done.err.splitlines()[-1]
    assert aws_world.keys("results/") == []
