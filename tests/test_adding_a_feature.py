"""Follow `docs/architecture.md`, *Adding a feature*, literally: create its files, add its line, and run the feature."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from bot.core.patterns import Pattern
from sandbox import GitHubSandbox
from sandbox.bot_process import BotProcess
from tests.waiting import until

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BLOCK = Pattern(r"```[a-z]+\n(?:#|<!--) (?P<place>[^\n]+?)(?: -->)?\n(?P<code>.*?)```\n", dot_is_any=True)
JOINS, END = "handlers/__init__.py, in MODULES", "\n)\n"
SECRET = "only-the-tests-know-this-secret"


OWN_FOLDERS = ("handlers/wave/", "tests/handlers/wave/")
NOT_COPIED = shutil.ignore_patterns("*-pytest-*.pyc", ".*", "texts.md")
"""Compiled modules are copied, or each process would compile the bot anew; compiled tests name their own file."""
pytestmark = pytest.mark.xdist_group("adding a feature")  # so that one worker makes `checkout`, once
GATES = (
    "tests/handlers/wave",
    "tests/config/test_docs.py",
    "tests/config/test_load.py",
    "tests/config/test_repository_file.py",
    "tests/conversations/test_dry_runs.py::test_every_handler_and_every_kind_of_effect_has_a_scene",
    "tests/conversations/test_dry_runs.py::test_a_dry_run_shows_exactly_what_the_bot_plans_and_applies"
    "[people_wave_and_the_bot_forgets]",
    "tests/conversations/test_who_may.py::test_a_command_that_acts_for_others_does_not_count_if_edited_into_somebody_"
    "elses_comment[wave]",
    "tests/plan/test_codec.py",
    "tests/robustness/test_crashes.py::test_the_conversations_use_every_kind_of_effect",
    "tests/test_class_names.py",
    "tests/test_docs_pages.py",
    "tests/test_durable.py",
    "tests/test_layout.py",
    "tests/test_mutants.py",
    "tests/test_platform.py",
    "tests/test_texts.py",
)
"""Tests that go through all features, their keys, effects, records, handlers, texts and pages."""


class Checkout(NamedTuple):
    """A copy of the checkout, and the files that the page creates in it."""

    folder: Path
    created: list[str]


def follow_the_page(folder: Path) -> list[str]:
    """Follow the page in a copy of the checkout; return the files that it creates."""
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    section = PAGE.read_text(encoding="utf-8").partition("\n## Adding a feature\n")[2].partition("\n## Adding an")[0]
    blocks = {match["place"]: match["code"] for match in BLOCK.finditer(section)}
    line = blocks.pop(JOINS)
    assert len(line.splitlines()) == 1
    joins = folder / "handlers" / "__init__.py"
    head, end, rest = joins.read_text(encoding="utf-8").partition(END)
    joins.write_text(head + "\n" + line.rstrip() + end + rest, encoding="utf-8")
    for place, code in blocks.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
    return sorted(blocks)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the checkout with the feature of the page, and with the pages that `make docs` writes."""
    folder = tmp_path_factory.mktemp("checkout") / "code"
    created = follow_the_page(folder)
    run_in(folder, "scripts/docs.py")
    return Checkout(folder, created)


def run_in(folder: Path, *command: str) -> None:
    """Run a Python command in a copy of the checkout, on its code."""
    paths = f"{folder}:{folder / 'lab'}"
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    run = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def nightjar(folder: Path, environment: dict[str, str], *command: str) -> str:
    """Run a command of the bot with the feature; return what it prints."""
    run = subprocess.run(
        [sys.executable, "-m", "bot", *command],
        cwd=folder,
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout


@pytest.mark.exhaustive
@pytest.mark.no_cover
def test_only_the_line_and_the_changelog_are_edited_outside_the_folders_of_a_feature(checkout: Checkout) -> None:
    """With the files of its folders, its line, and what `make` writes, the tests of all features pass."""
    code = checkout.folder
    run_in(code, "-m", "tests.durable")
    run_in(code, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "--no-cov", *GATES)
    run_in(code, "-m", "ruff", "check", "--no-cache", "--ignore", "D100", *OWN_FOLDERS)


async def test_a_feature_is_added_as_the_page_says(checkout: Checkout, tmp_path: Path) -> None:
    code = checkout.folder
    assert [place for place in checkout.created if not place.startswith(OWN_FOLDERS)] == []
    assert "`wave.label`" in (code / "docs" / "configuration" / "wave.md").read_text(encoding="utf-8")
    assert "Wave" in json.loads((code / "docs" / "app.schema.json").read_text(encoding="utf-8"))["$defs"]
    assert "Wave" in json.loads((code / "docs" / "nightjar.schema.json").read_text(encoding="utf-8"))["$defs"]
    assert "## Waves" in (code / "docs" / "features.md").read_text(encoding="utf-8")
    config = tmp_path / "app.yaml"
    config.write_text("repositories:\n  octocat/compiler:\n    wave: {status: ci/how-to-wave}\n")
    github = GitHubSandbox()
    async with github.serve() as url, aiohttp.ClientSession() as client:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": url,
            "DATABASE_URL": f"sqlite:///{tmp_path / 'nightjar.db'}",
            "PYTHONPATH": f"{code}:{code / 'lab'}",
            "PYTHONSAFEPATH": "1",
        }
        bot = BotProcess(environment, config=config)
        try:
            await bot.start()
            app.webhook_url = f"{bot.url}/webhook"
            repository.push("main", {".github/nightjar.yaml": "wave: {label: hello}\n"}, by="octocat")

            async def file_is_in_force() -> bool:
                return "is in force" in await asyncio.to_thread(nightjar, tmp_path, environment, "deliveries", "--json")

            await until(file_is_in_force)
            pull = repository.open_pull_request("octocat")
            pull.comment("octocat", "@ci wave")
            await github.until(lambda: [label.name for label in pull.labels] == ["hello"])
            assert repository.status(pull.head_sha, "ci/how-to-wave")
            address = f"{bot.url}/api/v1/repos/octocat/compiler/waves"
            async with client.get(address) as answer:
                assert (answer.status, await answer.json()) == (200, {"waved": {str(pull.number): "octocat"}})
            async with client.get(f"{bot.url}/r/octocat/compiler/waves") as answer:
                assert f"<li>#{pull.number}: octocat</li>" in await answer.text()
            async with client.get(f"{bot.url}/api/v1/openapi.json") as answer:
                assert "/api/v1/repos/{owner}/{repo}/waves" in json.loads(await answer.text())["paths"]
            ran = await asyncio.to_thread(nightjar, tmp_path, environment, "timer", "run", "waves")
            assert "removed waved:" in ran
            async with client.get(address) as answer:
                assert await answer.json() == {"waved": {}}
        finally:
            await bot.kill()
        assert not github.violations, github.violations
