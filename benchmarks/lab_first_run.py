"""Measure the time from an empty environment to a lab's first check run: `python -m benchmarks.lab_first_run`.

It runs the real bot with its defaults (`poll`, `settle`), the sandbox's GitHub and a simulated S3 over HTTP. The lab
installs `./lab` and pytest into an empty environment of `--python`, and runs three commands. The output has the seconds
of each step, and the MB that the installation takes beyond boto3.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from sandbox.bucket import BucketServer
from tests.conversations.town import REPOSITORY, Town, town

ROOT = Path(__file__).parents[1]
LAB, TARGET, BUCKET = "example-lab", "adreno", "device-results"
CONFIG = f"""
repositories:
  {REPOSITORY}:
    results:
      bucket: {BUCKET}
      labs: {{{LAB}: {{targets: [{TARGET}]}}}}
"""
TESTS = "def test_adds():\n    assert 1 + 1 == 2\n\n\ndef test_fails():\n    assert 1 + 1 == 3\n"
BOTO3_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "python_dateutil", "dateutil", "six", "urllib3")
PYTEST_PACKAGES = (
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "typing_ext",
)
VENV_PACKAGES = ("pip", "setuptools", "_distutils_hack", "distutils-precedence", "pkg_resources", "__pycache__")
MOST_SECONDS = 300.0


def beyond_boto3(packages: Path) -> dict[str, float]:
    """Return the MB of each package that belongs neither to boto3, nor to pytest, nor to an empty environment."""
    other_packages = (*BOTO3_PACKAGES, *PYTEST_PACKAGES, *VENV_PACKAGES)
    sizes = {}
    for path in packages.iterdir():
        if not path.name.lower().startswith(other_packages):
            files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
            sizes[path.name] = sum(file.stat().st_size for file in files) / 1e6
    return sizes


async def first_run(folder: Path) -> dict[str, float]:
    """Return the seconds of each step."""
    steps: dict[str, float] = {}
    began = time.monotonic()

    async def step(name: str, *command: str, env: dict[str, str], good: tuple[int, ...] = (0,)) -> None:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(*command, env=env, cwd=folder / "project")
        status = await process.wait()
        assert status in good, (name, status)
        steps[name] = time.monotonic() - started

    (folder / "project").mkdir()
    (folder / "project/test_ops.py").write_text(TESTS)
    with BucketServer() as bucket:
        bucket.create_bucket(BUCKET)
        os.environ.update(bucket.environment)
        async with town(f"sqlite:///{folder}/nightjar.db", config=CONFIG) as lab_town:
            sha = lab_town.repo.push("nightly", {"test_ops.py": TESTS}, by="octocat").sha
            env = {
                **bucket.environment,
                "PATH": f"{folder}/venv/bin:{os.environ['PATH']}",
                "HOME": str(folder),
                "NIGHTJAR_REPOSITORY": REPOSITORY,
                "NIGHTJAR_LAB": LAB,
                "NIGHTJAR_BUCKET": BUCKET,
                "NIGHTJAR_URL": lab_town.url,
            }
            bare = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
            began = time.monotonic()
            pip = str(folder / "venv/bin/pip")
            await step("pip install", pip, "install", "-q", f"{folder / 'lab'}[s3]", "pytest", env=bare)
            kit = str(folder / "venv/bin/nightjar-lab")
            await step("nightjar-lab doctor", kit, "doctor", env=env)
            tests = ("--", "pytest", "-q", "--junitxml=results.xml")
            words = ("run", "--target", TARGET, "--sha", sha)
            await step("nightjar-lab run --dry-run", kit, *words, "--dry-run", *tests, env=env, good=(1,))
            await step("nightjar-lab run", kit, *words, *tests, env=env, good=(1,))
            steps["until the check run"] = await _until_check(lab_town, sha)
            steps["all"] = time.monotonic() - began
    return steps


async def _until_check(lab_town: Town, sha: str) -> float:
    started = time.monotonic()
    while time.monotonic() - started < MOST_SECONDS:
        runs = [run for suite in lab_town.repo.suites if suite.head_sha == sha for run in suite.runs]
        if any(run.name == f"hardware/{LAB}/{TARGET}" for run in runs):
            return time.monotonic() - started
        await asyncio.sleep(0.2)
    raise AssertionError("no check run appeared")


@click.command()
@click.option("--python", default=sys.executable, show_default=True, help="The lab's Python.")
def main(python: str) -> None:
    """Measure and print the steps."""
    with tempfile.TemporaryDirectory(prefix="nightjar-first-run-") as name:
        folder = Path(name)
        # A build leaves files in the source folder.
        shutil.copytree(ROOT / "lab", folder / "lab", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        steps = asyncio.run(first_run(folder))
        (packages,) = (folder / "venv/lib").glob("python*/site-packages")
        sizes = beyond_boto3(packages)
    for step, seconds in steps.items():
        click.echo(f"{step}: {seconds:.1f} s")
    for package, size in sorted(sizes.items()):
        click.echo(f"{package}: {size:.1f} MB")
    click.echo(f"beyond boto3: {sum(sizes.values()):.1f} MB")


if __name__ == "__main__":
    main()
