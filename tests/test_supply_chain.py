"""Only reviewed versions are installed and run: versions, hashes, actions, images."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML

from tests.running import ROOT

LOCKED = ("requirements.txt", "requirements-dev.txt", "requirements-build.txt", "requirements-mutants.txt")
ALL_LOCKED = (*LOCKED, "lab/requirements.txt", "requirements-helm.txt", "requirements-suite.txt")
INSTALLS = re.compile(r"install |\$\((?:PIP|UV)\)")
INSTALLERS = re.compile(
    r"\b(?:pip3?|uv pip|uv tool)(?: --?[\w=-]+)* (?:install|download|wheel)\b(?P<words>[^\"].*)"
    r"|\b(?:uvx|pipx (?:install|run)) (?P<tool>.*)"
)
WITH_VALUE = ("-r", "--wheel-dir", "--python", "--find-links", "--report", "--target", "--upgrade-strategy")
NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w,]+\])?(?:[=<>~!]=?.*)?")
OURS = re.compile(r"(?<!\^)\bnightjar-(?:lab|ci)(?:\[[\w,]*\])?[=~!<>]=\d")
"""A version of ours, as an index has it."""
FOLDERS = (".ci", ".github", "benchmarks", "bot", "deploy", "docs", "handlers", "lab", "sandbox", "scripts")
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def workflow(name: str = "ci.yml") -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(ROOT / ".github/workflows" / name)
    return loaded


def logical_lines(path: Path) -> list[str]:
    joined = path.read_text().replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("name", ALL_LOCKED)
def test_every_locked_package_has_one_version_and_its_hashes(name: str) -> None:
    for line in logical_lines(ROOT / name):
        assert re.match(r"[a-z0-9.-]+==\S+(?: ; [^-]+)? +--hash=sha256:[0-9a-f]{64}", line), line[:100]


@pytest.mark.parametrize("name", ALL_LOCKED)
def test_lock_files_name_no_registry_and_no_path(name: str) -> None:
    assert not re.search(r"://|^-|index-url|find-links", (ROOT / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_installations_from_a_lock_file_check_its_hashes(name: str) -> None:
    installs = [line for line in logical_lines(ROOT / name) if " -r " in line and INSTALLS.search(line)]
    assert installs
    for line in installs:
        assert line.count(" -r ") == line.count("--require-hashes"), line


def documents() -> list[Path]:
    """Return what people read and programs run, but not the tests, which name strangers' packages."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    roots = [path for path in ROOT.iterdir() if not path.name.startswith("requirements")]
    binary = (".png", ".gz", ".pyc", ".svg")
    return sorted(path for path in (*roots, *files) if path.is_file() and path.suffix not in binary)


def installed_names(line: str) -> set[str]:
    """Return the names that a command in a line takes from an index: no path, address, file or variable."""
    match = INSTALLERS.search(line)
    if match is None:
        return set()
    words = re.split(r"[;&|`#)<>]| \(| \\$", match["words"] or match["tool"] or "")[0].split()
    options = {word for number, word in enumerate(words) if word.startswith("-") or words[number - 1] in WITH_VALUE}
    names = [NAME.fullmatch(word.strip("'\".:")) for word in words if word not in options]
    return {canonicalize_name(name["name"]) for name in names if name is not None}


def test_no_file_installs_a_name_that_is_not_published() -> None:
    """Whoever registers such a name on an index would run code where the file is used."""
    locked = {canonicalize_name(line.split("==")[0]) for name in ALL_LOCKED for line in logical_lines(ROOT / name)}
    lines = [
        (f"{path.relative_to(ROOT)}:{number}", line)
        for path in documents()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="ignore").splitlines(), 1)
    ]
    assert [place for place, line in lines if installed_names(line) - locked] == []
    assert [place for place, line in lines if OURS.search(line)] == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("$ pip install nightjar-lab==0.1.0 pytest", {"nightjar-lab", "pytest"}),
        ("RUN python3 -m venv .venv && .venv/bin/pip install --quiet 'nightjar_lab[onnx]>=1'", {"nightjar-lab"}),
        ("uvx nightjar-ci serve", {"nightjar-ci", "serve"}),
        ("pipx run nightjar-ci", {"nightjar-ci"}),
        ("pip install ./lab . git+https://git.example.org/nightjar@SHA#subdirectory=lab", set()),
        ("pip install --require-hashes -r requirements.txt && echo done", set()),
        ("pip install --upgrade --upgrade-strategy eager ./lab .", set()),
        ('.venv/bin/pip install --quiet @PACKAGE@ "$NIGHTJAR_ACTION"', set()),
    ],
)
def test_names_are_read_from_commands_that_install(line: str, names: set[str]) -> None:
    assert installed_names(line) == names


def bases_of(name: str) -> list[str]:
    return re.findall(r"^FROM (\S+)", (ROOT / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["Dockerfile", "lab/Dockerfile"])
def test_an_image_is_built_from_one_full_version(name: str) -> None:
    bases = bases_of(name)
    assert bases
    for base in bases:
        assert re.fullmatch(r"python:3\.13\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", base), base


def a_docker(folder: Path, newest: str) -> dict[str, str]:
    """Make a program `docker` that says which Python is in the image of a series."""
    (folder / "docker").write_text(
        f'#!/bin/sh\ncase "$*" in *" python:3.13-slim-bookworm "*) echo "Python {newest}";; esac\n'
    )
    (folder / "docker").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_an_image_on_an_older_python_than_the_newest_of_its_series_is_refused(tmp_path: Path) -> None:
    steps = [step.get("run", "") for step in workflow()["jobs"]["image"]["steps"]]
    assert "scripts/newest-base" in steps
    bases = {base for name in ("Dockerfile", "lab/Dockerfile") for base in bases_of(name)}
    assert len(bases) == 1, "both images have one base, so that one update refreshes both"
    version = bases.pop().removeprefix("python:").partition("-")[0]
    for newest, status in ((version, 0), (f"{version}9", 1)):
        finished = subprocess.run(
            [ROOT / "scripts/newest-base"], env=a_docker(tmp_path, newest), capture_output=True, text=True
        )
        assert finished.returncode == status, finished.stderr
    assert f"is outdated; the newest of its series is Python {version}9" in finished.stderr


def test_an_image_that_runs_next_to_ours_has_one_full_version() -> None:
    images = re.findall(r"image: (\S+:\S+)", (ROOT / "compose.yaml").read_text())
    assert images
    for image in images:
        assert re.fullmatch(r"[a-z]+:\d+\.\d+(?:\.\d+)?-[a-z]+(@sha256:[0-9a-f]{64})?", image), image


def test_updates_are_proposed_for_everything_pinned() -> None:
    updates = YAML(typ="safe").load(ROOT / ".github/dependabot.yml")["updates"]
    watched = {
        (update["package-ecosystem"], folder)
        for update in updates
        for folder in update.get("directories", [update.get("directory")])
    }
    pinned = {
        ("github-actions", "/"),
        *(("pip", _folder(path)) for path in (*ROOT.glob("requirements*.txt"), *ROOT.glob("*/requirements*.txt"))),
        *(("docker", _folder(path)) for path in (*ROOT.glob("Dockerfile"), *ROOT.glob("*/Dockerfile"))),
        *(("docker-compose", _folder(path)) for path in ROOT.glob("compose*.yaml")),
    }
    assert len(pinned) == 6
    assert watched == pinned


def _folder(path: Path) -> str:
    return f"/{path.parent.relative_to(ROOT)}".removesuffix(".")


def test_the_workflow_tests_every_supported_python() -> None:
    assert workflow()["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS


def test_only_pythons_for_which_re2_has_wheels_are_accepted() -> None:
    """Without a wheel, pip would compile RE2 and Abseil, and fail after minutes with a compiler's message."""
    accepted = SpecifierSet(distribution("nightjar-ci").metadata["Requires-Python"])
    newest = int(PYTHONS[-1].partition(".")[2])
    assert [f"3.{minor}" for minor in range(9, newest + 3) if f"3.{minor}.1" in accepted] == PYTHONS


def test_the_newest_versions_are_tested_every_week() -> None:
    newest = YAML(typ="safe").load(ROOT / ".github/workflows/newest.yml")
    assert newest["permissions"] == {"contents": "read"}
    assert len(newest["on"]["schedule"]) == 1
    steps = "\n".join(step.get("run", "") for step in newest["jobs"]["test"]["steps"])
    assert "--upgrade-strategy eager" in steps


def test_the_workflow_has_read_access_only() -> None:
    loaded = workflow()
    assert loaded["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in loaded["jobs"].values())


def test_only_jobs_for_a_tag_may_write_and_uploads_need_a_variable_or_an_environment() -> None:
    loaded = workflow("release.yml")
    assert loaded["permissions"] == {"contents": "read"}
    jobs = {name: job for name, job in loaded["jobs"].items() if "permissions" in job}
    assert set(jobs) == {"attest", "index", "registry", "notes"}
    for name, job in jobs.items():
        assert job["if"].startswith("startsWith(github.ref, 'refs/tags/v')"), name
        assert name == "attest" or (job["environment"] == "release" and "vars." in job["if"]), name


def test_nothing_in_the_image_installs_packages() -> None:
    [*_, final] = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    assert "pip uninstall --yes --quiet --root-user-action=ignore setuptools wheel pip" in final
    assert "--without-pip /opt/nightjar" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("python", ["3.9", "3.10", *PYTHONS])
def test_what_the_kit_requires_is_locked_for_every_python_of_a_lab(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    pins: dict[str, str] = {}
    for line in logical_lines(ROOT / "lab/requirements.txt"):
        pin = Requirement(line.partition("--hash")[0])
        if pin.marker is None or pin.marker.evaluate(environment):
            assert pins.setdefault(canonicalize_name(pin.name), str(pin.specifier)[2:]) == str(pin.specifier)[2:]
    project = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for requirement in map(Requirement, needed):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_actions_are_pinned_by_commit_with_their_full_version() -> None:
    files = (*ROOT.glob(".github/workflows/*.yml"), ROOT / "action.yml")
    used = [action for path in files for action in re.findall(r"uses: (.*)", path.read_text())]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_packages_that_another_python_needs_are_locked_too(name: str, python: str) -> None:
    """A lock file made with one Python lacks packages that only another needs; installing by hash then fails."""
    locked = {canonicalize_name(line.split("==")[0]) for line in logical_lines(ROOT / name)}
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    missing = {
        f"{package} needs {needed.name}"
        for package in locked
        for needed in map(Requirement, distribution(package).requires or ())
        if needed.marker is None or needed.marker.evaluate(environment)
        if canonicalize_name(needed.name) not in locked
    }
    assert missing == set()


def an_index(folder: Path) -> Path:
    """Make an index with an empty wheel for each package that is locked, and one of a stranger's `nightjar-lab`."""
    folder.mkdir()
    names = re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    for name, version in [*names, ("nightjar-lab", "99.0")]:
        stem = f"{name.replace('-', '_')}-{version}"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        extras = "".join(f"Provides-Extra: {extra}\n" for extra in ("binary", "crypto"))
        with ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{stem}.dist-info/METADATA", metadata + extras)
            wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return folder


@pytest.mark.exhaustive("arguments1")
@pytest.mark.parametrize("arguments", [["."], ["./lab", "."], ["--editable", "."]])
def test_an_installation_from_a_checkout_takes_the_lab_kit_from_its_folder(
    tmp_path: Path, arguments: list[str]
) -> None:
    checkout = tmp_path / "a checkout"
    shutil.copytree(ROOT / "lab", checkout / "lab", ignore=shutil.ignore_patterns("*.egg-info", "build"))
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, checkout / name)
    for name in ("bot", "handlers"):
        (checkout / name).mkdir()
        (checkout / name / "__init__.py").touch()
    options = ["--dry-run", "--ignore-installed", "--no-build-isolation", "--no-index", "--report", "report.json"]
    links = ["--find-links", str(an_index(tmp_path / "index"))]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *options, *links]
    subprocess.run([*pip, *arguments], cwd=checkout, check=True)
    installed = json.loads((checkout / "report.json").read_text())["install"]
    [lab] = [package["download_info"] for package in installed if package["metadata"]["name"] == "nightjar-lab"]
    assert lab["url"] == (checkout / "lab").as_uri()


def test_a_copy_without_the_lab_kit_names_the_right_command(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--no-build-isolation"]
    finished = subprocess.run([*pip, "--no-index", "."], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode != 0
    assert "run: pip install ./lab ." in finished.stdout + finished.stderr
