"""`bot` is a platform: but for `bot.app` and `bot.cli`, which join it with the features, it knows none of them."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from bot.app.load import app_repository_model
from bot.config.assemble import OWN_KEYS
from bot.config.repository_keys import ConfigKey

ROOT = Path(__file__).parents[1]
JOINING = {"app", "cli"}
"""The folders of `bot` that may know features."""
OTHER_MEANINGS = {
    ("bot/ci/rerun_actions.py", "rerun"): "an address of GitHub's API",
    ("bot/results/service.py", "results"): "the library of results, which is no feature",
    ("bot/results/settings/results.py", "nightly"): "examples of a target that tests nightly commits, and of a branch",
    ("bot/results/settings/targets.py", "nightly"): "a tier of targets",
}
"""Strings that are also the name of something else, with what they mean there."""
LOADED_BY_CONFIG = {"bot.app", "bot.app.load", "bot.results"}
FOLDERS_LOADED_BY_CONFIG = ("bot.config.", "bot.core.", "bot.results.settings.")
"""The modules, and the folders of modules, that a command may load to read app.yaml."""


def names_of_features() -> set[str]:
    """Return the names of features' keys and timers, and by default their contexts and branches."""
    names = set[str]()
    for key in set(app_repository_model().KEYS) - set(OWN_KEYS):
        names.add(key.name)
        if isinstance(key, ConfigKey):
            section = key.model.model_construct()
            named = [names_in(section) for names_in in (key.contexts, key.branches) if names_in is not None]
            names |= {key.timer, *(name for group in named for name in group)} - {""}
    return names


def strings_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string of a module with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_the_platform_has_no_name_of_a_feature() -> None:
    names, found, known = names_of_features(), list[str](), set[tuple[str, str]]()
    assert {"merge", "merges", "ci/slow-tests", "last-successful"} <= names
    for path in sorted((ROOT / "bot").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.split("/")[1] not in JOINING:
            for line, text in strings_in(path.read_text(encoding="utf-8")):
                if text in names and (place, text) in OTHER_MEANINGS:
                    known.add((place, text))
                elif text in names:
                    found.append(f"{place}:{line}: {text}")
    assert found == [], "declare it in handlers/<feature>/config.py, and let the ConfigKey tell the platform"
    assert known == OTHER_MEANINGS.keys()


def test_every_folder_of_the_platform_is_held_away_from_features() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = (contract for contract in contracts if contract["name"] == "The platform knows no feature")
    folders = {path.parent.name for path in (ROOT / "bot").glob("*/__init__.py")}
    assert set(contract["source_modules"]) == {f"bot.{folder}" for folder in folders - JOINING}


def test_a_command_that_reads_app_yaml_loads_no_feature() -> None:
    code = "import sys; from bot.app.load import load_config; load_config('app.yaml'); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = [name.split(".") for name in run.stdout.split()]
    features = {tuple(parts) for parts in loaded if parts[0] == "handlers" and len(parts) > 2}
    assert features
    # Warnings about keys are texts; a module of texts imports nothing of its feature.
    assert {parts[2] for parts in features} <= {"config", "keys", "texts"}
    platform = {".".join(parts) for parts in loaded if parts[0] == "bot" and len(parts) > 1} - LOADED_BY_CONFIG
    assert [name for name in platform if not f"{name}.".startswith(FOLDERS_LOADED_BY_CONFIG)] == []
