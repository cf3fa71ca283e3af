"""compose.yaml and the systemd units: valid for their own programs, and only with variables that the bot knows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from bot.cli.main import cli
from bot.config.environment import Settings
from scripts.pages import links
from tests.app.test_surface import ROUTES
from tests.deploy.commands import unit_settings
from tests.deploy.tools import COMPOSE, UNIT, run
from tests.running import ROOT

UNITS = sorted((ROOT / "deploy/systemd").glob("*.*"))
MOST_EXPOSURE = 1.5
"""As `systemd-analyze security` counts: 10 is the worst."""
BINARY = "/opt/nightjar/bin/nightjar"
OF_OTHERS = frozenset({"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "LC_ALL"})
NAME = re.compile(r"\b(?:GITHUB|DATABASE|JENKINS|DISCORD|SLACK|POSTGRES|NIGHTJAR)_[A-Z_]+[A-Z]\b")
COMMAND = re.compile(r"(?:(?:`|bin/|-- |bot )nightjar|# nightjar-run) ([a-z-]+)")
OF_CI = frozenset({"NIGHTJAR_TOKEN"})
OF_COMMANDS = frozenset({"NIGHTJAR_CONFIG"})


def deployed_files() -> list[Path]:
    files = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    return [*files, COMPOSE, ROOT / "docs/deploy.md", ROOT / "docs/alarms.md"]


def known_variables() -> set[str]:
    return {field.alias for field in Settings.model_fields.values() if field.alias} | OF_OTHERS | OF_CI | OF_COMMANDS


@pytest.mark.parametrize("path", deployed_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_bot_reads_every_variable(path: Path) -> None:
    assert set(NAME.findall(path.read_text())) - known_variables() == set()


def test_compose_gives_the_bot_only_variables_that_it_reads() -> None:
    services = YAML(typ="safe").load(COMPOSE)["services"]
    assert services["bot"]["environment"].keys() <= known_variables()
    assert services["db"]["environment"].keys() == OF_OTHERS - {"LC_ALL"}


def test_compose_runs_both_services_without_root_and_writes_only_to_volumes() -> None:
    compose = YAML(typ="safe").load(COMPOSE)
    for service in compose["services"].values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service["user"].startswith("0")
        assert service["healthcheck"]["test"][0] == "CMD"
        named = {mount.split(":")[0] for mount in service["volumes"] if not mount.startswith("./")}
        assert named <= compose["volumes"].keys()
    assert all(port.startswith("127.0.0.1:") for port in compose["services"]["bot"]["ports"])
    assert compose["services"]["bot"]["user"].split(":")[0] in (ROOT / "Dockerfile").read_text()
    assert "ports" not in compose["services"]["db"]


def test_images_have_short_names_and_a_full_version() -> None:
    services = YAML(typ="safe").load(COMPOSE)["services"]
    assert services["bot"]["image"] == "nightjar"
    assert re.fullmatch(r"postgres:\d+\.\d+-[a-z]+", services["db"]["image"])


def analyze(*arguments: str | Path) -> str:
    done = run("systemd-analyze", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.name))
def test_systemd_reads_the_unit_without_a_warning(unit: Path, tmp_path: Path) -> None:
    """It also checks for the program, which is not installed here."""
    for path in UNITS:
        (tmp_path / path.name).write_text(path.read_text().replace(BINARY, "/bin/true"))
    assert analyze("verify", "--man=no", tmp_path / unit.name) == ""


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: str(unit.name))
def test_systemd_rates_the_services_permissions_as_low(unit: Path) -> None:
    report = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE * 10:.0f}", "--no-pager", unit)
    assert "Overall exposure level" in report


def test_the_server_survives_a_reader_that_needs_too_much_memory() -> None:
    settings = dict(unit_settings())
    assert settings["OOMPolicy"] == "continue"
    assert settings["KillMode"] == "mixed"


def test_readme_and_index_link_here() -> None:
    for page, target in (
        ("README.md", "docs/deploy.md"),
        ("docs/README.md", "deploy.md"),
        ("docs/README.md", "alarms.md"),
    ):
        assert target in {link for _, link in links((ROOT / page).read_text())}, page
    assert UNIT.name in (ROOT / "docs/deploy.md").read_text()


def test_every_command_in_the_documentation_exists() -> None:
    used = {
        match
        for page in ("docs/deploy.md", "docs/alarms.md", "deploy/chart/templates/NOTES.txt")
        for match in COMMAND.findall((ROOT / page).read_text())
    }
    assert {"doctor", "restore", "replay", "deliveries"} <= used
    assert used <= set(cli.list_commands(click.Context(cli)))


def test_both_proxies_and_the_ingress_open_the_same_paths() -> None:
    page = (ROOT / "docs/deploy.md").read_text()
    [nginx] = re.findall(r"location ~ \^/\((.*)\) \{", page)
    [caddy] = re.findall(r"@public path (.*)", page)
    ingress = (ROOT / "deploy/chart/templates/ingress.yaml").read_text()
    paths = set(caddy.replace("/*", "/").split())
    assert {"/" + part.removesuffix("$") for part in nginx.split("|")} == paths
    assert set(re.findall(r'list "([^"]+)"', ingress)) == {path.rstrip("/") or "/" for path in paths}


OWN_NETWORK_ONLY = {"/metrics", "/healthz", "/readyz"}


def test_the_proxies_open_every_route_except_those_for_the_local_network() -> None:
    [opened] = re.findall(r"location ~ (.*) \{", (ROOT / "docs/deploy.md").read_text())
    routes = {route.partition(" ")[2] for route in ROUTES}
    assert {route for route in routes if not re.search(opened, route)} == OWN_NETWORK_ONLY


def test_commands_beside_the_service_have_its_user_variables_and_key(tmp_path: Path) -> None:
    """systemd-run runs here in name only: it prints what it would run."""
    stub = tmp_path / "systemd-run"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    done = subprocess.run(
        [UNIT.with_name("nightjar-run"), "doctor", "--json"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    arguments = done.stdout.splitlines()
    assert arguments[-2:] == ["doctor", "--json"]
    properties = {argument.removeprefix("--property=") for argument in arguments if "--property=" in argument}
    settings = {f"{name}={value.replace('%S', '/var/lib')}" for name, value in unit_settings()}
    assert properties <= settings
    assert {"DynamicUser=yes", "User=nightjar"} < properties
    variables = {argument.removeprefix("--setenv=") for argument in arguments if "--setenv=" in argument}
    assert {f"Environment={variable}" for variable in variables if "DATABASE" in variable} <= settings
