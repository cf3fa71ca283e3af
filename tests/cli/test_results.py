"""`nightjar results check` and `upload`: what a lab sees, even after a careless mistake."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import click
import pytest
from aiohttp import web
from click.testing import CliRunner

from bot.cli.main import cli
from bot.cli.results.group import results
from tests.bucket import Script, World
from tests.cli.uploads import APP_YAML, JUNIT, RUN, SHA, arguments, content, folder, nightjar, upload
from tests.running import run, start
from tests.waiting import DEADLINE

__all__ = ["folder"]


async def test_check_says_what_would_be_read_and_what_could_be_better(folder: Path) -> None:
    finished = await run("results", "check", "ops.xml", env={}, cwd=folder)
    assert finished.status == 0, finished
    assert finished.err == ""
    first, advice, last = finished.out.splitlines()
    assert first == "ops.xml: junit: 1 passed"
    assert advice.startswith("advice: ops.xml: no case names its file")
    assert last == "OK to upload"


def test_check_names_every_file_that_would_be_refused_and_ends_with_1(folder: Path) -> None:
    (folder / "core\x1b[2J.bin").write_bytes(bytes(3000))
    (folder / "cut.xml").write_text(JUNIT[:-20])
    finished = nightjar("check", "core\x1b[2J.bin", "cut.xml", "missing.xml", "ops.xml")
    assert (finished.exit_code, finished.stderr) == (1, "")
    assert "\x1b" not in finished.stdout
    lines = finished.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines if ": refused: " in line] == [
        "core\\x1b[2J.bin",
        "cut.xml",
    ]
    assert "missing.xml: cannot be read: no such file or directory" in lines
    assert "ops.xml: junit: 1 passed" in lines
    assert lines[-1] == "The bot would refuse these files. Fix them before you upload."


@pytest.mark.parametrize("path", ["missing.xml", "missing/manifest.json"])
def test_check_does_not_claim_that_the_bot_refuses_a_missing_file(folder: Path, path: str) -> None:
    finished = nightjar("check", path, "ops.xml")
    assert finished.exit_code == 1
    assert "refuse" not in finished.stdout
    last = finished.stdout.splitlines()[-1]
    assert last == "Some files cannot be read here. Correct the paths or permissions, and check again."


def test_check_counts_all_files_together_and_gives_each_advice_once(folder: Path) -> None:
    (folder / "more.xml").write_text(JUNIT.replace("test_add", "test_sub"))
    lines = nightjar("check", "ops.xml", "more.xml").stdout.splitlines()
    assert "all files: 2 passed" in lines
    assert [line.split(": ")[1] for line in lines if line.startswith("advice")] == ["ops.xml, more.xml"]


def test_check_has_json_for_programs(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "manifest.json").write_text("{}")
    finished = nightjar("check", "ops.xml", "run", "--json")
    assert finished.exit_code == 1
    files, run = json.loads(finished.stdout)
    assert (files["good"], run["good"]) == (True, False)
    assert files["files"][0]["counts"]["passed"] == 1
    assert "schema must be 1" in run["problems"][0]


async def test_upload_writes_the_run_and_prints_its_key(folder: Path, aws_world: World) -> None:
    message: dict[str, Any] = {"exit_status": 0, "shard": "1/4", "environment": "device=Pixel 9"}
    words = arguments(bucket=aws_world.name, **message)
    finished = await run("results", *words, env=aws_world.server.environment, cwd=folder)
    assert finished.status == 0, finished
    assert finished.out == f"s3://{aws_world.name}/{RUN}manifest.json\n"
    assert "ops.xml (93 bytes): uploaded\nmanifest.json: uploaded\n" in finished.err
    assert f"hardware/example-lab/adreno appears on {SHA}" in finished.err
    objects = content(aws_world)
    assert objects[f"{RUN}ops.xml"] == JUNIT.encode()
    manifest = json.loads(objects[f"{RUN}manifest.json"])
    assert (manifest["shard"], manifest["environment"]) == ({"index": 1, "total": 4}, {"device": "Pixel 9"})
    repeated = upload(aws_world, "ops.xml", "--json", **message)
    assert json.loads(repeated.stdout)["uploaded"] == {"ops.xml": False, "manifest.json": False}


def test_upload_invents_a_run_id_that_differs_every_time(aws_world: World) -> None:
    for _ in range(2):
        assert upload(aws_world, run_id=None).exit_code == 0
    assert len(content(aws_world)) == 4


def test_a_dry_run_sends_nothing_and_needs_no_s3() -> None:
    finished = upload(None, "ops.xml", "--dry-run", bucket="device-results")
    assert finished.exit_code == 0, finished
    first, rest = finished.stdout.split("\n", 1)
    assert first == f"s3://device-results/{RUN}manifest.json"
    assert json.loads(rest)["suite"] == "operators"


@pytest.mark.parametrize("name", ["NIGHTJAR_REPOSITORY", "NIGHTJAR_BUCKET", "NIGHTJAR_PREFIX", "NIGHTJAR_LAB"])
def test_help_names_the_variables_for_the_destination(name: str) -> None:
    assert name in nightjar("upload", "--help").stdout


def test_the_destination_comes_from_the_environment(aws_world: World) -> None:
    env = {"NIGHTJAR_BUCKET": aws_world.name, "NIGHTJAR_REPOSITORY": "octocat/compiler", "NIGHTJAR_LAB": "example-lab"}
    finished = upload(aws_world, env=env, repository=None, bucket=None, lab=None)
    assert finished.stdout == f"s3://{aws_world.name}/{RUN}manifest.json\n", finished


def test_the_destination_comes_from_an_app_yaml_that_names_it(folder: Path, aws_world: World) -> None:
    (folder / "app.yaml").write_text(APP_YAML.format(bucket=aws_world.name))
    finished = upload(aws_world, repository=None, bucket=None)
    assert finished.stdout == f"s3://{aws_world.name}/{RUN.replace('results/', 'device/')}manifest.json\n", finished


def test_an_unknown_lab_or_target_is_reported_before_anything_is_sent(folder: Path, aws_world: World) -> None:
    (folder / "app.yaml").write_text(APP_YAML.format(bucket=aws_world.name))
    unknown = upload(aws_world, target="hexagon")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "app.yaml has no target hexagon for the lab example-lab; available: adreno" in unknown.stderr
    refused = upload(aws_world, repository="octocat/other", bucket=None)
    assert "app.yaml has no results for octocat/other" in refused.stderr
    assert content(aws_world) == {}


def test_a_repository_that_matches_a_pattern_has_its_destination(folder: Path, aws_world: World) -> None:
    text = APP_YAML.format(bucket=aws_world.name)
    assert "octocat/compiler" in text
    (folder / "app.yaml").write_text(text.replace("octocat/compiler", "octocat/*"))
    finished = upload(aws_world, bucket=None)
    assert finished.stdout == f"s3://{aws_world.name}/{RUN.replace('results/', 'device/')}manifest.json\n", finished
    refused = upload(aws_world, repository="hubot/compiler", bucket=None)
    assert "app.yaml has no results for hubot/compiler" in refused.stderr


def test_a_repository_missing_in_app_yaml_is_refused_even_if_the_bucket_is_given(
    folder: Path, aws_world: World
) -> None:
    (folder / "app.yaml").write_text(APP_YAML.format(bucket=aws_world.name))
    refused = upload(aws_world, repository="octocat/other")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "app.yaml has no results for octocat/other; nothing was uploaded" in refused.stderr
    assert content(aws_world) == {}


def test_a_repository_in_another_letter_case_is_uploaded_to_the_folder_of_app_yaml(
    folder: Path, aws_world: World
) -> None:
    (folder / "app.yaml").write_text(APP_YAML.format(bucket=aws_world.name))
    finished = upload(aws_world, repository="OctoCat/Compiler")
    assert finished.stdout == f"s3://{aws_world.name}/{RUN.replace('results/', 'device/')}manifest.json\n", finished


def test_an_unverified_upload_promises_no_check_run(aws_world: World) -> None:
    finished = upload(aws_world)
    assert finished.exit_code == 0
    assert "Uploaded, but not verified: without --url" in finished.stderr
    assert "If it does, the check run hardware/example-lab/adreno appears" in finished.stderr


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ({"repository": None}, "--repository is missing: there is no app.yaml to read it from"),
        ({"bucket": None}, "--bucket is missing: there is no app.yaml to read it from"),
        ({"config": "other.yaml"}, "other.yaml:1:1: the file does not exist"),
    ],
)
def test_missing_options_are_named_in_one_line(without: dict[str, Any], words: str) -> None:
    finished = upload(None, **{"bucket": "device-results", **without})
    assert (finished.exit_code, finished.stdout) == (1, "")
    [line] = finished.stderr.splitlines()
    assert line.startswith(words)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sha": "main"}, "the full SHA of a commit"),
        ({"sha": SHA[:12]}, "the full SHA of a commit"),
        ({"lab": "example/lab"}, "a name of letters"),
        ({"target": "../adreno"}, "a name of letters"),
        ({"run_id": "a/b"}, "a name of up to 100"),
        ({"repository": "compiler"}, "OWNER/NAME"),
        ({"shard": "4"}, "the shard's number"),
        ({"environment": "device"}, "KEY=VALUE"),
        ({"suite": None}, "--suite"),
    ],
)
def test_invalid_usage_ends_with_2(wrong: dict[str, Any], words: str) -> None:
    finished = upload(None, **wrong)
    assert (finished.exit_code, finished.stdout) == (2, "")
    assert words in finished.stderr


def test_files_that_would_be_refused_are_not_sent_without_an_option(folder: Path, aws_world: World) -> None:
    (folder / "ops.xml").write_text(JUNIT[:-20])
    finished = upload(aws_world)
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert "ops.xml: refused: " in finished.stderr
    last = finished.stderr.splitlines()[-1]
    assert last == "nothing was uploaded; fix the files, or upload them unchanged with --no-check"
    assert content(aws_world) == {}
    assert upload(aws_world, "ops.xml", "--no-check").exit_code == 0
    assert set(content(aws_world)) == {f"{RUN}ops.xml", f"{RUN}manifest.json"}


@pytest.mark.parametrize("name", ["missing.xml", ".", "manifest.json"])
def test_a_path_that_is_no_file_for_a_run_is_named(name: str) -> None:
    finished = upload(None, name, bucket="device-results")
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert len(finished.stderr.splitlines()) == 1


def test_an_unusable_s3_is_named_in_a_line_without_secrets(aws_world: World) -> None:
    wrong = upload(aws_world, bucket="no-such-bucket", env={"AWS_SECRET_ACCESS_KEY": "hunter2hunter2"})
    assert wrong.exit_code == 1
    assert wrong.stderr.splitlines()[-1].startswith("bucket no-such-bucket does not exist")
    assert "hunter2" not in wrong.stderr
    nobody = upload(aws_world, env={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
    assert nobody.exit_code == 1
    assert "no AWS credentials were found" in nobody.stderr.splitlines()[-1]
    half = upload(aws_world, env={"AWS_SECRET_ACCESS_KEY": ""})
    assert half.stderr.splitlines()[-1].startswith("AWS_SECRET_ACCESS_KEY is not set, but AWS_ACCESS_KEY_ID is")


async def test_an_upload_killed_before_its_manifest_leaves_none_and_a_repetition_continues_it(
    folder: Path, aws_world: World, script: Script
) -> None:
    at_the_manifest, ended = asyncio.Event(), asyncio.Event()

    async def sharing_files(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("manifest.json"):
            at_the_manifest.set()
            await ended.wait()
            return web.Response(status=503)
        url = aws_world.server.url + request.path_qs
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=await request.read(), headers=request.headers) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())

    script.answers.append(sharing_files)
    words = arguments("ops.xml", bucket=aws_world.name)
    env = {**aws_world.server.environment, "AWS_ENDPOINT_URL": script.url}
    process = await start("results", *words, env=env, cwd=folder)
    await asyncio.wait_for(at_the_manifest.wait(), DEADLINE)
    process.kill()
    await process.communicate()
    ended.set()
    assert set(content(aws_world)) == {f"{RUN}ops.xml"}
    repeated = await run("results", *words, env=aws_world.server.environment, cwd=folder)
    assert repeated.status == 0, repeated
    assert "ops.xml (93 bytes): already uploaded\nmanifest.json: uploaded\n" in repeated.err
    assert set(content(aws_world)) == {f"{RUN}ops.xml", f"{RUN}manifest.json"}


def test_without_a_database_there_are_no_runs_to_list(folder: Path) -> None:
    finished = nightjar("runs", env={"DATABASE_URL": f"sqlite:///{folder}/typo.db"})
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert "typo.db does not exist" in finished.stderr
    assert not (folder / "typo.db").exists()


def test_an_abbreviated_commit_is_not_shown_as_one_without_runs() -> None:
    finished = nightjar("runs", "--sha", SHA[:10])
    assert (finished.exit_code, finished.stdout) == (2, "")
    assert "the full SHA of a commit" in finished.stderr


@pytest.mark.parametrize("command", results.list_commands(click.Context(results)))
def test_every_command_has_help_with_an_example(command: str) -> None:
    finished = CliRunner().invoke(cli, ["results", command, "--help"], prog_name="nightjar")
    assert finished.exit_code == 0
    assert f"Usage: nightjar results {command}" in finished.stdout
    assert f"nightjar results {command}" in finished.stdout.partition("Example")[2]
