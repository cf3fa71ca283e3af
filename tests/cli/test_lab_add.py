"""`nightjar lab add`: what it prints is all that a lab needs, shown by doing exactly that."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from nightjar_lab.cli.options import TARGET as TARGET_TYPE

from bot.app.lab_lines import app_yaml_lines
from bot.app.load import parse_config
from handlers.results.config import LAB_RESULTS
from tests.conversations.town import REPOSITORY, town
from tests.lab.agent_rack import git
from tests.running import run
from tests.tables import with_tables

EMPTY = f"repositories:\n  {REPOSITORY}:\n"


async def test_four_commands_lead_from_nothing_to_a_check_run(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(EMPTY)
    env = {"DATABASE_URL": with_tables(sqlite_url)}
    added = await run("lab", "add", "my-lab", "--target", "board", "--json", env=env, cwd=tmp_path)
    assert added.status == 0, added
    answer = json.loads(added.out)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "--quiet")
    (checkout / "test_ops.py").write_text("def test_add(): pass\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "one")
    sha = git(checkout, "rev-parse", "HEAD")
    async with town(sqlite_url, config=answer["app_yaml"]) as place:
        commits, refs = place.repo.git.commits, place.repo.refs
        commits[sha] = replace(commits[place.repo.branch("main")], sha=sha)
        refs["refs/heads/main"] = sha
        script = "\n".join(answer["commands"]).replace("http://127.0.0.1:8080", place.url)
        # As `pip install` would leave them: `nightjar-lab` and `pytest` are on the path.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        bash = await asyncio.create_subprocess_exec(
            "bash", "-euc", script, cwd=checkout, env={"PATH": path, "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await bash.communicate()
        assert bash.returncode == 0, output.decode()
        runs = [run for suite in place.repo.suites for run in suite.runs if run.name == "hardware/my-lab/board"]
        assert [(run.head_sha, run.conclusion) for run in runs] == [(sha, "success")], output.decode()


async def test_a_lab_that_is_known_gets_a_token_and_no_lines(sqlite_url: str, tmp_path: Path) -> None:
    lines = app_yaml_lines(REPOSITORY, "my-lab", ["board"], bucket="device-results")
    (tmp_path / "app.yaml").write_text(f"{lines}\npublic_url: https://ci.example.org\n")
    env = {"DATABASE_URL": with_tables(sqlite_url)}
    added = await run("lab", "add", "my-lab", "--target", "board", env=env, cwd=tmp_path)
    assert added.status == 0, added
    assert added.out.startswith("app.yaml has this lab and these targets.\n")
    assert "NIGHTJAR_URL=https://ci.example.org NIGHTJAR_LAB_TOKEN=" in added.out
    other = await run("lab", "add", "my-lab", "--target", "other", env=env, cwd=tmp_path)
    assert "      bucket: device-results\n" in other.out
    assert "my-lab: {targets: [other]}" in other.out


async def test_the_repository_must_be_named_where_app_yaml_has_several(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(f"{EMPTY}  octocat/other:\n")
    env = {"DATABASE_URL": with_tables(sqlite_url)}
    words = ("lab", "add", "my-lab", "--target", "board")
    done = await run(*words, env=env, cwd=tmp_path)
    assert (done.status, "--repo OWNER/NAME" in done.err) == (1, True), done
    done = await run(*words, "--repository", "Octocat/Other", env=env, cwd=tmp_path)
    assert "  octocat/other:\n" in done.out


async def test_postgresql_needs_a_bucket_before_a_token_is_made(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(EMPTY)
    env = {"DATABASE_URL": postgres_url}
    done = await run("lab", "add", "my-lab", "--target", "board", env=env, cwd=tmp_path)
    assert (done.status, "results.bucket is not set" in done.err, done.out) == (1, True, "")


@pytest.mark.parametrize("name", ["board", "rpi-4@lab:1", "yes", "1.5", "2026-01-01", "null", "a.b"])
def test_every_name_is_written_as_yaml_reads_it(name: str) -> None:
    assert TARGET_TYPE.convert(name, None, None) == name
    lab = name if "@" not in name else "lab"
    config = parse_config(app_yaml_lines(REPOSITORY, lab, [name]).encode(), "app.yaml")
    results = config.configured[REPOSITORY].of(LAB_RESULTS)
    assert results is not None
    assert [(key, list(settings.targets)) for key, settings in results.labs.items()] == [(lab, [name])]
