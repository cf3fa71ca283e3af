"""The commands that compose.yaml, the systemd unit and the chart start, with their environments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from tests.deploy.tools import COMPOSE, UNIT, template

PASSWORD = "0123456789abcdef"


@dataclass(frozen=True)
class Deployed:
    """The arguments of `nightjar` on a command line, and the variables other than secrets."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def of_compose() -> Deployed:
    """Return the command of Compose, with each `${NAME:?message}` replaced by the variable."""
    service = YAML(typ="safe").load(COMPOSE)["services"]["bot"]
    environment = {
        name: re.sub(r"\$\{POSTGRES_PASSWORD:\?[^}]*\}", PASSWORD, value)
        for name, value in service["environment"].items()
    }
    return Deployed(tuple(service["command"]), environment)


def unit_settings(path: Path = UNIT) -> list[tuple[str, str]]:
    """Return the settings of a unit in order."""
    lines = (line.partition("=") for line in path.read_text().splitlines() if "=" in line and line[0] != "#")
    return [(name, value) for name, _, value in lines]


def of_systemd(state: Path, credentials: Path, path: Path = UNIT) -> Deployed:
    """Return the command of systemd, with its specifiers replaced: systemd.unit(5)."""
    specifiers = {"%S": str(state), "%d": str(credentials), "%%": "%"}
    settings = [
        (name, re.sub("%[Sd%]", lambda match: specifiers[match[0]], value)) for name, value in unit_settings(path)
    ]
    [command] = [value for name, value in settings if name == "ExecStart"]
    environment = dict(value.split("=", 1) for name, value in settings if name == "Environment")
    return Deployed(tuple(shlex.split(command)[1:]), environment)


def of_chart(database: str) -> Deployed:
    """Return the command of a pod; `database` is the URL in the Secret."""
    done = template("image.repository=nightjar", "existingSecret=nightjar", "config=@app.yaml")
    [deployment] = [
        manifest for manifest in YAML(typ="safe").load_all(done.stdout) if manifest and manifest["kind"] == "Deployment"
    ]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    environment = {variable["name"]: variable.get("value", database) for variable in container["env"]}
    return Deployed(tuple(container["args"]), environment)
