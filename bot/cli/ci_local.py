"""`nightjar ci local`: run a step of the project in a checkout, with the variables that CI would set."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from nightjar_formats.terminal import escape_controls
from nightjar_lab.ci.decision import CiDecision
from nightjar_lab.ci.forms import variables

from bot.app.load import app_repository_model, load_config, load_repository_file
from bot.cli.checkout import Checkout, read_checkout
from bot.cli.ci_decide import only_repository, repository_option
from bot.cli.ci_images import choose_images_at, images_in_file
from bot.cli.support import (
    AS_WRITTEN,
    SECRET_VARIABLES,
    config_option,
    json_option,
    stopping_at_faults,
)
from bot.cli.texts import (
    COMPARED_WITH,
    IMAGE_WITHOUT_STEP,
    IN_AN_IMAGE,
    NO_BRANCH,
    NO_ENGINE,
    NO_SETTINGS_FILE,
    NO_STEPS,
    NOTHING_TO_COMPARE,
    ON_THIS_MACHINE,
    REPOSITORY_NOT_LISTED,
    STEP_HEADERS,
    UNKNOWN_STEP,
    VARIABLE_HEADERS,
)
from bot.config import RepositoryConfig
from bot.config.environment import Settings, is_secret
from bot.config.own_file import REPOSITORY_FILE
from bot.config.shared import PATH, overlaid
from bot.core.errors import UserError
from bot.core.terminal import table
from handlers.changed_files.changes import SHOWN_OF_SHA
from handlers.ci_decisions.ask_github import alone
from handlers.ci_decisions.config import CI, CiSteps
from handlers.ci_decisions.decide import decide_for_checkout
from handlers.docker_update.config import DOCKER_UPDATE, DockerUpdate

ENGINES = ("docker", "podman")
"""The programs that run containers; the first that is installed is used."""
SECRETS = frozenset(
    {
        *SECRET_VARIABLES,
        "NIGHTJAR_LAB_TOKEN",
        *(field.alias or "" for field in Settings.model_fields.values() if is_secret(field.annotation)),
    }
)
"""The variables of server and labs that no step gets; each may also name a file, with `_FILE` at its end."""


@dataclass(frozen=True, slots=True)
class LocalStep:
    """A step, and how it runs here: `image` is empty on the machine itself, `engine` if there is none."""

    name: str
    command: str
    image: str
    engine: str

    @property
    def place(self) -> str:
        """Say on what the step runs."""
        if not self.image:
            return ON_THIS_MACHINE
        return (IN_AN_IMAGE if self.engine else NO_ENGINE).format(image=self.image, engine=self.engine)

    def arguments(self, top: Path, values: Mapping[str, str]) -> list[str]:
        """Return the program to start in the top folder of the checkout, and its arguments."""
        shell = ["sh", "-c", self.command]
        if not (self.image and self.engine):
            return shell
        # As in TVM's docker/bash.sh, paths and owners of files are the same inside and outside. In a container of
        # Podman without root, root is already this person, and SELinux would refuse the folder.
        owner = ["--security-opt", "label=disable"]
        if self.engine == "docker":
            owner = ["--user", f"{os.getuid()}:{os.getgid()}"]
        terminal = ["--interactive", "--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
        pairs = [word for name, value in values.items() for word in ("--env", f"{name}={value}")]
        folder = ["--volume", f"{top}:{top}", "--workdir", str(top)]
        return [self.engine, "run", "--rm", *terminal, *owner, *folder, *pairs, self.image, *shell]


@click.command(
    short_help="Run a step of the project in this checkout, or list the steps.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar ci local                    # the steps, the variables, and why each has its value
      nightjar ci local unit
      nightjar ci local unit --slow-tests --base upstream/main
      nightjar ci local unit --dry-run
    """,
)
@click.argument("name", metavar="[STEP]", default="")
@click.option(
    "--base",
    default="",
    help="The branch or commit that the checkout is compared with. Default: the default branch of the remote "
    "upstream or origin.",
)
@click.option("--slow-tests", "requests_slow_tests", is_flag=True, help="Run slow tests too.")
@repository_option
@click.option("--dry-run", is_flag=True, help="Print what would run, and run nothing.")
@json_option
@config_option
@click.pass_context
def local(
    ctx: click.Context,
    name: str,
    base: str,
    requests_slow_tests: bool,
    repository: str | None,
    dry_run: bool,
    as_json: bool,
    config_path: Path,
) -> None:
    """Run a step of the project in this checkout, with the variables that CI would set. Without STEP, list the steps.

    Steps are below ci: steps: in .github/nightjar.yaml of the checkout, or in the app.yaml that --config names. The
    variables are those of `nightjar ci decide`, for a pull request with all that is in the checkout: commits, other
    changes, and new files.

    A step whose name is below ci: images: runs in that image of `nightjar ci docker-images`, if Docker or Podman is
    there. The step gets no secrets of the bot or of a lab. The exit status is that of the step; with --json, its output
    goes to standard error.
    """
    is_named = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
    with stopping_at_faults():
        checkout = read_checkout(Path.cwd(), base)
        config, path = _settings(checkout, config_path, repository, is_named=is_named)
        ci = config.of(CI) or CiSteps()
        _check(ci, name, path)
        decision = decide_for_checkout(
            config, checkout.sha, checkout.branch, checkout.changes, requests_slow_tests=requests_slow_tests
        )
        images = _images(config, ci, [name] if name else ci.steps, checkout.top, asks_registry=bool(name))
    values = variables(decision)
    steps = [
        LocalStep(step, command, images.get(step, ""), _engine())
        for step, command in ci.steps.items()
        if name in ("", step)
    ]
    runs_step = bool(name) and not dry_run
    if not as_json:
        # The output of a step is all that is on standard output.
        click.echo(_description(checkout, decision, steps), err=runs_step)
    status = _run(steps[0], checkout.top, values, prints_json=as_json) if runs_step else None
    if as_json:
        click.echo(json.dumps(_as_json(checkout, decision, steps, status), indent=2))
    elif name and dry_run:
        click.echo(f"\n{escape_controls(shlex.join(steps[0].arguments(checkout.top, values)))}")
    raise SystemExit(status or 0)


def _settings(
    checkout: Checkout, path: Path, repository: str | None, *, is_named: bool
) -> tuple[RepositoryConfig, Path]:
    """Return the settings of the repository, and the file that has them. Raises `UserError` and `ConfigError`.

    The checkout's own file counts: what is checked out is what runs.
    """
    own = checkout.top / PATH
    own_keys = load_repository_file(own) if own.exists() else None
    if own_keys is not None and not is_named:
        return alone(own_keys, app_repository_model()), own
    if not is_named and not path.exists():
        raise UserError(NO_SETTINGS_FILE.format(own=PATH, path=path))
    repository = repository or only_repository(path)
    config = load_config(path).configured.settings_if_installed(repository)
    if config is None:
        raise UserError(REPOSITORY_NOT_LISTED.format(path=path, repository=repository))
    return (overlaid(config, own_keys) if own_keys is not None and config.of(REPOSITORY_FILE) else config), path


def _check(ci: CiSteps, name: str, path: Path) -> None:
    """Raise `UserError` without steps, for an unknown one, and for an image of an unknown one."""
    if not ci.steps:
        raise UserError(NO_STEPS.format(path=path))
    known = ", ".join(ci.steps)
    if name and name not in ci.steps:
        raise click.UsageError(UNKNOWN_STEP.format(name=name, known=known))
    for step in ci.images:
        if step not in ci.steps:
            raise UserError(IMAGE_WITHOUT_STEP.format(name=step, known=known))


def _engine() -> str:
    """Return the program that runs containers here, empty if there is none."""
    return next(filter(shutil.which, ENGINES), "")


def _images(
    config: RepositoryConfig, ci: CiSteps, steps: Sequence[str] | Mapping[str, str], top: Path, *, asks_registry: bool
) -> dict[str, str]:
    """Return the image of each step that has one: its name in the file if no engine is there to run it.

    Without `asks_registry`, it is the released one, even if the registry does not have it. Raises `UserError`.
    """
    names = {step: ci.images[step] for step in steps if step in ci.images}
    if not names or not _engine():
        return names
    docker = config.of(DOCKER_UPDATE) or DockerUpdate()
    images = images_in_file(list(names.values()), top / docker.file)
    if asks_registry:
        images = asyncio.run(choose_images_at(images, docker.registry, docker.staging))
    return {step: images[image] for step, image in names.items()}


def _run(step: LocalStep, top: Path, values: Mapping[str, str], *, prints_json: bool) -> int:
    """Run a step to its end; return its exit status, as a shell has it."""
    inherited = {
        name: value for name, value in os.environ.items() if SECRETS.isdisjoint({name, name.removesuffix("_FILE")})
    }
    completed = subprocess.run(  # noqa: S603  # the command of the person's own project
        step.arguments(top, values),
        cwd=top,
        env={**inherited, **values},
        stdout=sys.stderr if prints_json else None,
        check=False,
    )
    return completed.returncode if completed.returncode >= 0 else 128 - completed.returncode


def _description(checkout: Checkout, decision: CiDecision, steps: Sequence[LocalStep]) -> str:
    """Return what would run, as tables for people."""
    verdicts = (
        decision.skip_ci,
        decision.docs_only,
        decision.run_slow_tests,
        decision.rebuild_docker,
        decision.run_slow_tests,
    )
    rows = [(*pair, verdict.reason) for pair, verdict in zip(variables(decision).items(), verdicts, strict=True)]
    title = (COMPARED_WITH if checkout.base else NOTHING_TO_COMPARE).format(
        branch=checkout.branch or NO_BRANCH, sha=checkout.sha[:SHOWN_OF_SHA], base=checkout.base
    )
    lines = [(step.name, step.place, step.command) for step in steps]
    return f"{escape_controls(title)}\n\n{table(VARIABLE_HEADERS, rows)}\n\n{table(STEP_HEADERS, lines)}"


def _as_json(
    checkout: Checkout, decision: CiDecision, steps: Sequence[LocalStep], status: int | None
) -> dict[str, object]:
    """Return what would run, and the exit status if a step has run."""
    values = variables(decision)
    shown_steps = [
        {
            "name": step.name,
            "command": step.command,
            "image": step.image or None,
            "engine": step.engine if step.image and step.engine else None,
            "arguments": step.arguments(checkout.top, values),
        }
        for step in steps
    ]
    return {
        "base": checkout.base or None,
        "decision": decision.as_json(),
        "variables": values,
        "steps": shown_steps,
        "status": status,
    }
