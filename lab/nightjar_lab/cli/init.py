"""`nightjar-lab init`: write the files that a lab's CI runs, and try them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from nightjar_lab.cli import texts
from nightjar_lab.cli.errors import BadSettings, CommandFailed, needed
from nightjar_lab.cli.options import (
    AS_WRITTEN,
    PACKAGE,
    SUITE,
    TARGET,
    bucket_option,
    lab_option,
    repository_option,
    url_option,
)
from nightjar_lab.init_files import SCRIPT, WORKFLOWS, lab_files, secrets_of

MATRIX = "nightjar_lab.suite.workflow"
NO_COMMIT = "0" * 40
"""The commit of a dry run, which is never uploaded."""


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab init --ci github --repository octocat/compiler --lab example-lab --url https://ci.example.org \\
          --target adreno --suite operators --package nightjar_lab-0.1.0-py3-none-any.whl -- pytest tests/python
      nightjar-lab init --matrix --repository octocat/compiler --lab example-lab --url https://ci.example.org \\
          --package nightjar_lab-0.1.0-py3-none-any.whl -- nightjar-lab suite run --flow tvm-llvm --suite onnx-node
    """,
)
@click.option("--ci", type=click.Choice(sorted(WORKFLOWS)), default="github", show_default=True, help="The lab's CI.")
@repository_option
@lab_option
@bucket_option
@url_option
@click.option("--target", type=TARGET, envvar="NIGHTJAR_TARGET", show_envvar=True, help="The target of this device.")
@click.option("--suite", type=SUITE, default="tests", show_default=True, help="The suite that COMMAND runs.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default=True,
    help="Where to write, such as a checkout of the lab's own repository.",
)
@click.option(
    "--package",
    type=PACKAGE,
    help="What the CI installs: a wheel, or git+https://git.example.org/nightjar@SHA#subdirectory=lab. Required.",
)
@click.option(
    "--matrix",
    "is_matrix",
    is_flag=True,
    help="For GitHub Actions: COMMAND is nightjar-lab suite run …, and each suite on each flow is a job of its own.",
)
@click.option("--dry-run/--no-dry-run", "tries", default=True, show_default=True, help="Run COMMAND once, here.")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def init(
    ci: str,
    repository: str | None,
    lab: str | None,
    bucket: str | None,
    url: str | None,
    target: str | None,
    suite: str,
    folder: Path,
    package: str | None,
    is_matrix: bool,
    tries: bool,
    command: tuple[str, ...],
) -> None:
    """Write the files that a lab's CI needs to test every night: a workflow, a script, and a file with the lab's names.

    Without --bucket, the runs will go through the bot at --url. Nothing is overwritten.

    Then COMMAND is run once in this folder, and its reports are checked; nothing is uploaded. With --matrix, there is
    only a workflow, and nothing is run.
    """
    variables: dict[str, Any] = {
        "NIGHTJAR_REPOSITORY": needed(repository, "--repository", "NIGHTJAR_REPOSITORY", texts.WHAT_REPOSITORY),
        "NIGHTJAR_LAB": needed(lab, "--lab", "NIGHTJAR_LAB", texts.WHAT_LAB),
        "NIGHTJAR_BUCKET": bucket or "",
        "NIGHTJAR_URL": (url or "") if bucket else needed(url, "--url", "NIGHTJAR_URL", texts.WHAT_URL),
    }
    if not is_matrix:
        variables["NIGHTJAR_TARGET"] = needed(target, "--target", "NIGHTJAR_TARGET", texts.WHAT_TARGET)
        variables["NIGHTJAR_SUITE"] = suite
    if not command:
        raise BadSettings(texts.NO_INIT_COMMAND)
    if package is None:
        raise BadSettings(texts.NO_PACKAGE)
    if is_matrix:
        files = _matrix_files(ci, package, variables, command)
    else:
        variables["NIGHTJAR_TEST_COMMAND"] = _in_shell(command)
        files = lab_files(ci, package, variables)
    present = [name for name in files if (folder / name).exists()]
    if present:
        raise CommandFailed(texts.FILES_EXIST.format(names=", ".join(present), folder=folder))
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            if name == SCRIPT:
                path.chmod(0o755)
            click.echo(texts.FILE_WRITTEN.format(path=path))
    except OSError as error:
        raise CommandFailed(texts.FOLDER_UNUSABLE.format(folder=folder, reason=error.strerror)) from None
    status = _try(variables, command) if tries and not is_matrix else 0
    next_steps = texts.NEXT_STEPS.format(secrets=" and ".join(secrets_of(variables)))
    click.echo(texts.DRY_RUN_FAILED.format(status=status) if status else next_steps, err=True)
    raise SystemExit(1 if status else 0)


def _matrix_files(ci: str, package: str, variables: dict[str, Any], command: tuple[str, ...]) -> dict[str, str]:
    """Return the workflow of a matrix. Raises BadSettings, and CommandFailed for a name that does not exist."""
    if ci != "github":
        raise BadSettings(texts.MATRIX_NEEDS_GITHUB.format(ci=ci))
    # By its name, as `lazy` does: only --matrix needs the suites, which need Linux or macOS.
    files: dict[str, str] = import_module(MATRIX).matrix_workflow(command, package, variables, secrets_of(variables))
    return files


def _in_shell(command: tuple[str, ...]) -> str:
    """Return a command in shell syntax; a single word already is in shell syntax."""
    return command[0] if len(command) == 1 else shlex.join(command)


def _try(variables: dict[str, Any], command: tuple[str, ...]) -> int:
    click.echo(texts.DRY_RUN, err=True)
    words = ["run", "--dry-run", "--sha", NO_COMMIT, "--suite", variables["NIGHTJAR_SUITE"], "--"]
    completed = subprocess.run(  # noqa: S603  # the lab's own command
        [sys.executable, "-m", "nightjar_lab", *words, "sh", "-c", variables["NIGHTJAR_TEST_COMMAND"]],
        env={**os.environ, **variables},
        check=False,
    )
    return completed.returncode
