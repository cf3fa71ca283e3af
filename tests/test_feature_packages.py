"""A package of its own adds a feature: the one of docs/architecture.md, built as a wheel, and installed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import GitHubSandbox
from sandbox.bot_process import BotProcess
from sandbox.processes import launch
from tests.running import run
from tests.test_adding_a_feature import BLOCK, PAGE, SECRET

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OURS, THEIRS = "handlers/wave/", "nightjar_wave/"


def write_package(folder: Path) -> None:
    """Write the package as the page says."""
    text = PAGE.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        place, code = match["place"], match["code"]
        if not place.startswith(OURS) and place != "pyproject.toml":
            continue
        file = folder / place.replace(OURS, THEIRS)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code.replace("handlers.wave", "nightjar_wave"), encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package's wheel, and install it into a folder."""
    folder = tmp_path_factory.mktemp("package")
    write_package(folder / "source")
    building = ("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", "dist", "./source")
    subprocess.run([*PIP, *building], cwd=folder, check=True)
    [wheel] = (folder / "dist").glob("*.whl")
    subprocess.run([*PIP, "install", "--no-deps", "--no-index", "--target", "site", wheel], cwd=folder, check=True)
    return folder / "site"


@pytest.mark.no_cover
async def test_a_feature_of_another_package_works_like_ours(tmp_path: Path, site: Path) -> None:
    config = tmp_path / "app.yaml"
    config.write_text("repositories:\n  octocat/compiler:\n    wave: {label: hello}\n")
    github = GitHubSandbox()
    async with github.serve() as url:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": url,
            "DATABASE_URL": f"sqlite:///{tmp_path / 'nightjar.db'}",
            "PYTHONPATH": str(site),
        }
        bot = BotProcess(environment, config=config)
        try:
            await bot.start()
            app.webhook_url = f"{bot.url}/webhook"
            pull = repository.open_pull_request("octocat")
            pull.comment("octocat", "@ci wave")
            await github.until(lambda: [label.name for label in pull.labels] == ["hello"])
            assert repository.status(pull.head_sha, "ci/wave")
            status, schema, _ = await bot.run("schema")
            assert (status, "Wave" in json.loads(schema)["$defs"]) == (0, True)
        finally:
            await bot.kill()
        assert not github.violations, github.violations


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        ("nightjar_gone.feature", "No module named 'nightjar_gone'"),
        ("nightjar_broken.feature", "it needs a newer server"),
    ],
)
@pytest.mark.parametrize("command", [("check-config",), ("doctor",)])
async def test_a_package_that_cannot_be_loaded_is_named_in_one_line(
    command: tuple[str, ...], point: str, problem: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(write_broken, tmp_path, point)
    finished = await run(*command, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, launch=launch)
    line = f"the feature {point}, an entry point nightjar.features of an installed package, cannot be loaded: {problem}"
    assert (finished.status, finished.out, finished.err.splitlines()) == (1, "", [line])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("module", "code", "line"),
    [
        ("config", "from handlers.merge.config import KEYS\n", "two features declare the key merge of app.yaml"),
        (
            "feature",
            "from handlers.merge.feature import FEATURE\n",
            "the command 'merge' of 'merge' already means 'merge'",
        ),
    ],
)
async def test_a_package_that_declares_what_exists_is_refused_in_one_line(
    module: str, code: str, line: str, tmp_path: Path
) -> None:
    """It ended with a traceback."""
    await asyncio.to_thread(write_broken, tmp_path, "nightjar_broken.feature")
    package = tmp_path / "nightjar_broken"
    (package / "config.py").write_text("KEYS = ()\n")
    (package / "feature.py").write_text("from bot.feature import Feature\n\nFEATURE = Feature(name='broken')\n")
    (package / f"{module}.py").write_text(code)
    private_key = GitHubSandbox().create_app("nightjar", webhook_secret=SECRET).private_key
    app = {"GITHUB_APP_ID": "1", "GITHUB_PRIVATE_KEY": private_key, "GITHUB_WEBHOOK_SECRET": SECRET}
    finished = await run("serve", env={"PYTHONPATH": str(tmp_path), **app}, cwd=tmp_path, launch=launch)
    assert finished.status == 1
    assert finished.err.splitlines() == [line]


def write_broken(folder: Path, point: str) -> None:
    """Install a package whose module cannot be imported, and write an app.yaml."""
    (folder / "app.yaml").write_text("repositories:\n  octocat/compiler:\n")
    (folder / "nightjar_broken").mkdir()
    (folder / "nightjar_broken/config.py").write_text("raise ImportError('it needs a newer server')\n")
    (folder / "nightjar_broken-1.0.dist-info").mkdir()
    (folder / "nightjar_broken-1.0.dist-info/METADATA").write_text("Name: nightjar-broken\nVersion: 1.0\n")
    (folder / "nightjar_broken-1.0.dist-info/entry_points.txt").write_text(f"[nightjar.features]\nbroken = {point}\n")
