"""The commands as processes: their output, their errors, and their exit status."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from nightjar_lab.main import kit

from bot.cli.main import cli
from bot.engine.jobs.notes import IGNORED, ROUTED, Note, write_note
from bot.engine.service import Engine
from sandbox.processes import launch
from tests.postgres import PostgresServer
from tests.running import Finished, run, start
from tests.tables import with_tables
from tests.waiting import DEADLINE, until

WEBHOOK_SECRET = "a webhook secret".replace(" ", "-")


@pytest.fixture(scope="session")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def env(tmp_path: Path, private_key: str) -> dict[str, str]:
    """Return everything that a server needs, for a GitHub that is down."""
    (tmp_path / "app.yaml").write_text("repositories:\n  octocat/compiler:\n")
    return {
        "GITHUB_APP_ID": "1",
        "GITHUB_PRIVATE_KEY": private_key,
        "GITHUB_WEBHOOK_SECRET": WEBHOOK_SECRET,
        "GITHUB_API_URL": "http://127.0.0.1:9",
    }


def one_line(finished: Finished) -> str:
    """Return the single line with which a command failed."""
    assert finished.status == 1, finished
    assert finished.out == ""
    assert finished.err.endswith("\n")
    [line] = finished.err.splitlines()
    assert "Traceback" not in line
    return line


async def test_each_missing_or_malformed_variable_is_named_in_one_line(tmp_path: Path, env: dict[str, str]) -> None:
    finished = await run("worker", env={}, cwd=tmp_path)
    assert finished.status == 1
    lines = finished.err.splitlines()
    names = ["GITHUB_APP_ID", "GITHUB_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET"]
    assert [line.split()[0] for line in lines] == names
    short = await run("serve", env={**env, "GITHUB_WEBHOOK_SECRET": "hunter2"}, cwd=tmp_path)
    assert one_line(short).startswith("GITHUB_WEBHOOK_SECRET has a secret of fewer than 16 characters")
    assert "hunter2" not in short.err
    broken = await run(
        "serve", env={**env, "GITHUB_PRIVATE_KEY": "-----BEGIN RSA PRIVATE KEY-----\nAAAA"}, cwd=tmp_path
    )
    assert one_line(broken).startswith("GITHUB_PRIVATE_KEY is not an RSA private key")
    assert "AAAA" not in broken.err


async def test_a_channel_needs_its_webhook_to_start_and_not_to_check_the_file(
    tmp_path: Path, env: dict[str, str]
) -> None:
    text = "repositories:\n  octocat/compiler:\n    main_failures: {to: [discord]}\n"
    (tmp_path / "app.yaml").write_text(text)
    line = one_line(await run("serve", env=env, cwd=tmp_path))
    assert line.startswith("DISCORD_WEBHOOK_URL is not set, but octocat/compiler names discord below main_failures.to")
    assert (await run("check-config", env={}, cwd=tmp_path)).status == 0


async def test_a_broken_app_yaml_is_named_with_file_line_and_column(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "app.yaml").write_text("repositories:\n  octocat/compiler:\n    slow_test: {}\n")
    line = one_line(await run("serve", env=env, cwd=tmp_path))
    assert line.startswith("app.yaml:3:5: repositories.octocat/compiler.slow_test: unknown key")


async def test_a_missing_app_yaml_is_named(tmp_path: Path, env: dict[str, str]) -> None:
    line = one_line(await run("worker", "--config", "other.yaml", env=env, cwd=tmp_path))
    assert line == "other.yaml:1:1: the file does not exist; create it or name another one"


async def test_an_unreachable_database_is_named_without_its_password(tmp_path: Path, env: dict[str, str]) -> None:
    url = "postgresql://nightjar:s3cr3t-p4ss@127.0.0.1:9/nightjar"
    for command in (["serve"], ["replay", "guid-1"]):
        finished = await run(*command, env={**env, "DATABASE_URL": url}, cwd=tmp_path)
        assert "PostgreSQL at 127.0.0.1:9/nightjar could not be opened" in one_line(finished)
        assert "s3cr3t" not in finished.err


async def test_an_invalid_database_url_is_named(tmp_path: Path, env: dict[str, str]) -> None:
    for url in ("mysql://x", "sqlite:///:memory:", "sqlite:///no/such/folder/x.db"):
        assert "DATABASE_URL" in one_line(await run("deliveries", env={**env, "DATABASE_URL": url}, cwd=tmp_path))
    (tmp_path / "text.db").write_text("no database at all " * 100)
    line = one_line(await run("serve", env={**env, "DATABASE_URL": "sqlite:///text.db"}, cwd=tmp_path))
    assert "text.db is not a SQLite database" in line


async def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path, env: dict[str, str]) -> None:
    # /proc is read-only for everybody, root too.
    line = one_line(await run("serve", env={**env, "DATABASE_URL": "sqlite:////proc/nightjar.db"}, cwd=tmp_path))
    assert "/proc/nightjar.db cannot be written" in line


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


async def test_a_port_in_use_is_named(tmp_path: Path, env: dict[str, str], taken_port: int) -> None:
    line = one_line(await run("serve", "--port", str(taken_port), env=env, cwd=tmp_path))
    assert line == (
        f"cannot listen on 127.0.0.1:{taken_port}: address already in use; "
        "choose another address with --host and --port"
    )


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64])
async def test_an_unusable_host_is_named(tmp_path: Path, env: dict[str, str], host: str) -> None:
    line = one_line(await run("serve", "--host", host, "--port", "0", env=env, cwd=tmp_path))
    assert line.startswith(f"cannot listen on {host}:0: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--port", "99999"],
        ["serve", "--no-such-option"],
        ["replay"],
        ["replay", "guid-1", "--failed"],
        ["replay", "--failed", "--since", "soon"],
        ["replay", "--failed", "--repo", "compiler"],
        ["replay", "--failed", "--pace", "0"],
        ["deliveries", "--limit", "0"],
        ["deliveries", "extra"],
        ["deliveries", "--pr", "42"],
        ["deliveries", "--repo", "compiler"],
        ["no-such-command"],
    ],
)
async def test_invalid_usage_ends_with_2(tmp_path: Path, env: dict[str, str], arguments: list[str]) -> None:
    finished = await run(*arguments, env=env, cwd=tmp_path)
    assert finished.status == 2
    assert finished.out == ""
    assert "Usage: nightjar" in finished.err


@pytest.mark.parametrize("command", ["serve", "worker", "check-config", "deliveries", "replay"])
async def test_every_command_has_help_with_an_example(tmp_path: Path, command: str) -> None:
    # In a new process, because a command must import all that it needs.
    finished = await run(command, "--help", env={}, cwd=tmp_path, launch=launch)
    assert finished.status == 0
    assert f"Usage: nightjar {command}" in finished.out
    assert "Example" in finished.out
    assert f"nightjar {command}" in finished.out.partition("Example")[2]


async def test_check_config_lists_every_fault_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "ci.yaml").write_text("mentions: 3\nrepositories:\n  octocat/compiler:\n    slow_test: {}\n")
    finished = await run("check-config", "ci.yaml", env={}, cwd=tmp_path)
    assert finished.status == 1
    assert [line.split(": ")[0] for line in finished.out.splitlines()] == ["ci.yaml:1:11", "ci.yaml:4:5"]
    as_json = await run("check-config", "ci.yaml", "--json", env={}, cwd=tmp_path)
    assert as_json.status == 1
    assert [(fault["line"], fault["key"]) for fault in json.loads(as_json.out)] == [
        (1, "mentions"),
        (4, "repositories.octocat/compiler.slow_test"),
    ]


async def test_check_config_of_a_good_file_says_so_and_needs_no_secrets(tmp_path: Path, env: dict[str, str]) -> None:
    finished = await run("check-config", env={}, cwd=tmp_path)
    assert (finished.status, finished.out) == (0, "app.yaml: valid; 1 repository configured\n")
    assert (await run("check-config", "--json", env={}, cwd=tmp_path)).out == "[]\n"


async def test_check_config_warns_of_valid_but_suspicious_settings(tmp_path: Path) -> None:
    settings = 'nightly: {}, merge: {required: [ci/slow-tests]}, last_good: {require: ["*/branch", nightly]}'
    text = f"repositories:\n  octocat/compiler: {{merge: true}}\n  octocat/tools: {{{settings}}}\nmentions: [/ci]\n"
    (tmp_path / "app.yaml").write_text(text)
    finished = await run("check-config", env={}, cwd=tmp_path)
    assert finished.status == 0
    first, third, second = finished.err.splitlines()
    assert first.startswith("app.yaml:2:22: warning: repositories.octocat/compiler.merge: `required` is empty.")
    assert second.startswith("app.yaml:3:51: warning: repositories.octocat/tools.merge.required: ")
    assert third.startswith("app.yaml:3:102: warning: repositories.octocat/tools.last_good.require: ")
    assert "octocat/tools.merge.required: ci/slow-tests is a status of this bot, which never counts as CI" in second
    assert "octocat/tools.last_good.require: nightly is a status of this bot, which never counts as CI" in third


async def test_check_config_reads_the_folder_and_counts_patterns(tmp_path: Path) -> None:
    (tmp_path / "app.d").mkdir()
    (tmp_path / "app.yaml").write_text("mentions: [/ci]\nrepositories:\n  octocat/compiler:\n")
    more = tmp_path / "app.d" / "octo-org.yaml"
    more.write_text("repositories:\n  octo-org/*:\n    merge:\n  octo-org/docs:\n")
    finished = await run("check-config", env={}, cwd=tmp_path)
    assert (finished.status, finished.out) == (0, "app.yaml: valid; 2 repositories and 1 pattern configured\n")
    warning = "app.d/octo-org.yaml:3:5: warning: repositories.{entry}.merge: `required` is empty."
    places = [warning.format(entry=entry) for entry in ("octo-org/*", "octo-org/docs")]
    lines = finished.err.splitlines()
    assert [line.startswith(place) for line, place in zip(lines, places, strict=True)] == [True, True]
    more.write_text("repositories:\n  octo-org/*: {merge: 1}\n  octocat/compiler:\n")
    finished = await run("check-config", "--json", env={}, cwd=tmp_path)
    assert [(fault["file"], fault["line"], fault["column"]) for fault in json.loads(finished.out)] == [
        ("app.d/octo-org.yaml", 2, 23),
        ("app.d/octo-org.yaml", 3, 3),
    ]


async def test_a_warning_names_the_line_in_defaults_if_the_key_is_there(tmp_path: Path) -> None:
    text = "defaults:\n  last_good:\n    require:\n      - '*/branch'\n      - nightly\n  nightly: {}\n"
    (tmp_path / "app.yaml").write_text(
        f"{text}repositories:\n  octocat/compiler:\n  octocat/tools:\n    merge:\nmentions: [/ci]\n"
    )
    finished = await run("check-config", env={}, cwd=tmp_path)
    assert [line.partition(" warning: ")[0] for line in finished.err.splitlines()] == [
        "app.yaml:5:9:",
        "app.yaml:10:5:",
        "app.yaml:5:9:",
    ]


async def test_check_config_recognizes_a_repositorys_own_file_by_its_name_or_by_an_option(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/nightjar.yaml").write_text("help: false\nmentions: ['@other']\n")
    (tmp_path / "other.yaml").write_text("help: false\n")
    finished = await run("check-config", ".github/nightjar.yaml", env={}, cwd=tmp_path)
    assert (finished.status, finished.out) == (
        1,
        ".github/nightjar.yaml:2:1: mentions: "
        "can only be set in app.yaml, by the operator of the bot; remove it here\n",
    )
    finished = await run("check-config", "other.yaml", "--repository-file", env={}, cwd=tmp_path)
    assert finished.status == 0
    assert finished.out.startswith("other.yaml: valid; ")


def test_check_config_reads_standard_input() -> None:
    def checked(text: str, *options: str) -> Result:
        return CliRunner().invoke(cli, ["check-config", "-", *options], input=text)

    finished = checked("defaults:\n  merge:\nrepositories:\n  octocat/compiler:\n")
    assert (finished.exit_code, finished.stdout) == (0, "<stdin>: valid; 1 repository configured\n")
    assert "<stdin>:2:3: warning: repositories.octocat/compiler.merge: `required` is empty." in finished.stderr
    finished = checked("repositories: {octocat/compiler: 3}")
    assert (finished.exit_code, finished.stdout.partition(" ")[0]) == (1, "<stdin>:1:34:")
    finished = checked("mentions: ['@a']\n", "--repository-file")
    assert finished.stdout.startswith("<stdin>:1:1: mentions: can only be set in app.yaml")
    assert "256 KiB" in checked("# " + "x" * 300_000).stdout


def test_errors_and_results_have_colors_on_a_terminal_only(tmp_path: Path) -> None:
    report, missing = tmp_path / "report.xml", tmp_path / "missing.yaml"
    report.write_text("<testsuite><testcase name='t' time='1'/></testsuite>")
    of_run = ["--target", "adreno", "--suite", "unit", "--sha", "a" * 40]
    valid, invalid = "repositories:\n  octocat/compiler:\n", "repositories: {octocat/compiler: 3}"
    cases: list[tuple[click.Command, list[str], str, str]] = [
        (cli, ["check-config", "-"], valid, "\x1b[32m<stdin>: valid; "),
        (cli, ["check-config", "-"], invalid, "\x1b[31m<stdin>:1:34: "),
        (cli, ["check-config", "-", "--json"], invalid, ""),
        (cli, ["timer", "list", "--config", str(missing)], "", f"\x1b[31m{missing}:1:1: "),
        (kit, ["check", str(report)], "", "\x1b[32m"),
        (kit, ["check", str(missing)], "", "\x1b[31m"),
        (kit, ["upload", *of_run, str(report)], "", "\x1b[31m"),
        (kit, ["doctor"], "", "\x1b[31mfailed "),
    ]
    for command, words, text, colored in cases:

        def output_of(*, on_terminal: bool, no_color: str = "") -> str:
            variables = {"NO_COLOR": no_color, "TERM": "xterm"}
            return CliRunner().invoke(command, words, text, variables, color=on_terminal).output  # noqa: B023  # called here

        in_color = output_of(on_terminal=True)
        assert colored in in_color, words
        assert ("\x1b" in in_color) == bool(colored), words
        assert "\x1b" not in output_of(on_terminal=False) + output_of(on_terminal=True, no_color="1"), words


async def test_nightjar_yaml_is_read_as_well_as_app_yaml(tmp_path: Path) -> None:
    (tmp_path / "nightjar.yaml").write_text("repositories:\n  octocat/compiler:\n")
    finished = await run("check-config", env={}, cwd=tmp_path)
    assert (finished.status, finished.out) == (0, "nightjar.yaml: valid; 1 repository configured\n")
    listed = await run("timer", "list", env={"DATABASE_URL": f"sqlite:///{tmp_path}/nightjar.db"}, cwd=tmp_path)
    assert "nightjar.yaml" not in listed.err, listed
    (tmp_path / "app.yaml").write_text("repositories:\n  octocat/compiler:\n")
    both = "this folder has app.yaml and nightjar.yaml; remove one, or name the file"
    for command in (["check-config"], ["timer", "list"]):
        finished = await run(*command, env={}, cwd=tmp_path)
        assert (finished.status, both in finished.err) == (2, True), finished
    assert (await run("check-config", "app.yaml", env={}, cwd=tmp_path)).status == 0


async def received(folder: Path, *deliveries: tuple[str, str, str]) -> dict[str, str]:
    """Store deliveries as a server would, and return the environment in which commands find them."""
    url = with_tables(f"sqlite:///{folder / 'nightjar.db'}")
    async with Engine(url) as engine:
        for guid, event, body in deliveries:
            assert await engine.accept(guid, event, body, "repo:1")
    return {"DATABASE_URL": url}


async def test_a_missing_database_is_not_shown_as_an_empty_one(tmp_path: Path, env: dict[str, str]) -> None:
    for command in (("deliveries",), ("replay", "guid-1"), ("replay", "guid-1", "--dry-run")):
        finished = await run(*command, env={**env, "DATABASE_URL": f"sqlite:///{tmp_path}/typo.db"}, cwd=tmp_path)
        problem = f"DATABASE_URL: {tmp_path}/typo.db does not exist: no server has used it yet, or the path is wrong\n"
        assert (finished.status, finished.out, finished.err) == (1, "", problem)
    assert "typo.db" not in os.listdir(tmp_path)  # noqa: PTH208  # Path.iterdir is refused in async code


async def test_deliveries_are_a_table_for_people_and_json_for_programs(tmp_path: Path) -> None:
    nothing = await run("deliveries", env=await received(tmp_path), cwd=tmp_path)
    assert (nothing.status, nothing.out) == (0, "all deliveries were ignored; show them with --all\n")
    env = await received(tmp_path, ("guid-1", "ping", "{}"), ("guid-2", "push", '{"ref":"refs/heads/main"}'))
    listed = await run("deliveries", env=env, cwd=tmp_path)
    header, *rows = listed.out.splitlines()
    assert header.split() == ["RECEIVED", "DELIVERY", "EVENT", "SUBJECT", "STATE", "SUMMARY"]
    assert [row.split()[1:4] for row in rows] == [["guid-2", "push", "waiting"], ["guid-1", "ping", "waiting"]]
    assert {row.index("guid-") for row in rows} == {header.index("DELIVERY")}
    as_json = json.loads((await run("deliveries", "--json", "--limit", "1", env=env, cwd=tmp_path)).out)
    assert [(delivery["guid"], delivery["event"], delivery["state"]) for delivery in as_json] == [
        ("guid-2", "push", "waiting")
    ]
    assert "refs/heads/main" not in json.dumps(as_json)
    failed = await run("deliveries", "--failed", env=env, cwd=tmp_path)
    assert (failed.status, failed.out) == (0, "no deliveries match\n")


async def handled(folder: Path) -> dict[str, str]:
    """Store deliveries as a worker leaves them, and return the environment in which commands find them."""
    env = await received(folder, *((guid, event, "{}") for guid, event, *_ in HANDLED))
    async with Engine(env["DATABASE_URL"]) as engine:
        for guid, _, outcome, text, subject in HANDLED:
            record = await engine.journal.delivery(guid)
            assert record is not None
            await write_note(engine.database.connector, record.job.job_id, Note(outcome, text, about=subject))
    return env


COMPILER, TOOLS = "octocat/compiler", "octocat/tools"
HANDLED: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("guid-1", "issue_comment", ROUTED, "", {"repository": COMPILER, "number": 42, "action": "created"}),
    ("guid-2", "issue_comment", ROUTED, "", {"repository": COMPILER, "number": 42, "action": "edited"}),
    ("guid-3", "push", ROUTED, "", {"repository": COMPILER}),
    ("guid-4", "push", ROUTED, "long " * 50, {"repository": TOOLS}),
    ("guid-5", "check_suite", IGNORED, "no feature uses check_suite.completed", {"repository": COMPILER}),
]


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        ([], "4321"),
        (["--all"], "54321"),
        (["--event", "push"], "43"),
        (["--event", "issue_comment.edited"], "2"),
        (["--repo", "Octocat/Compiler"], "321"),
        (["--repo", COMPILER, "--pr", "42"], "21"),
        (["--repo", COMPILER, "--pr", "42", "--limit", "1"], "2"),
        (["--repo", COMPILER, "--event", "check_suite", "--all"], "5"),
    ],
)
async def test_deliveries_are_filtered_and_ignored_ones_are_hidden(
    tmp_path: Path, arguments: list[str], listed: str
) -> None:
    finished = await run("deliveries", "--json", *arguments, env=await handled(tmp_path), cwd=tmp_path)
    assert [delivery["guid"][-1] for delivery in json.loads(finished.out)] == list(listed)


async def test_deliveries_fit_the_terminal_and_their_json_has_times_in_iso_8601(tmp_path: Path) -> None:
    env = await handled(tmp_path)
    finished = await run("deliveries", env={**env, "COLUMNS": "130"}, cwd=tmp_path)
    assert max(len(line) for line in finished.out.splitlines()) == 130
    as_json = json.loads((await run("deliveries", "--json", env=env, cwd=tmp_path)).out)
    moment = datetime.fromisoformat(as_json[0]["received_at"])
    assert (moment.tzinfo, as_json[0]["received_at"][-1]) == (UTC, "Z")
    assert as_json[0]["job"]["at"].endswith("Z")
    assert as_json[0]["job"]["text"] == "long " * 50


async def test_text_from_outside_cannot_move_the_cursor(tmp_path: Path) -> None:
    env = await received(tmp_path, ("guid\x1b[2J\n-1", "push", "{}"))
    listed = await run("deliveries", env=env, cwd=tmp_path)
    assert "\x1b" not in listed.out
    assert len(listed.out.splitlines()) == 2


async def test_a_replay_of_an_unknown_delivery_says_so(tmp_path: Path, env: dict[str, str]) -> None:
    await received(tmp_path)
    for options in ([], ["--dry-run"], ["--json"]):
        line = one_line(await run("replay", "guid-0", *options, env=env, cwd=tmp_path))
        assert line == "No delivery guid-0 is stored. `nightjar deliveries` lists the stored ones."


async def test_without_a_server_a_replay_does_the_work_itself(tmp_path: Path, env: dict[str, str]) -> None:
    await received(tmp_path, ("guid-1", "ping", "{}"))
    finished = await run("replay", "guid-1", env=env, cwd=tmp_path)
    assert finished.status == 0, finished
    assert finished.out.startswith("guid-1 ping: ignored: no feature uses ping")
    assert len(set(finished.err.splitlines())) == len(finished.err.splitlines())


async def test_if_nobody_works_a_replay_stops_waiting_and_ends_with_1(
    tmp_path: Path, env: dict[str, str], postgres_url: str
) -> None:
    async with Engine(postgres_url) as engine:
        await engine.accept("guid-1", "ping", "{}", "repo:1")
    env = {**env, "DATABASE_URL": postgres_url}
    finished = await run("replay", "guid-1", "--timeout", "0.1", env=env, cwd=tmp_path)
    assert finished.status == 1
    assert finished.out.startswith("guid-1 ping: waiting")
    assert "not done after 0.1 s" in finished.err


async def test_a_worker_does_what_others_accepted_and_ends_with_0(
    tmp_path: Path, env: dict[str, str], postgres_url: str
) -> None:
    process = await start("worker", env={**env, "DATABASE_URL": postgres_url}, cwd=tmp_path, launch=launch)
    try:
        async with Engine(postgres_url) as engine:
            await engine.accept("guid-1", "ping", "{}", "repo:1")

            async def done() -> bool:
                record = await engine.journal.delivery("guid-1")
                return record is not None and record.settled

            await until(done)
        process.terminate()
        output, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert (process.returncode, output) == (0, b"")
    assert {"working", "stopped"} <= {json.loads(line)["event"] for line in err.splitlines()}


@pytest.mark.exhaustive
async def test_a_command_whose_database_goes_down_says_so_in_one_line(
    tmp_path: Path, postgres_server: PostgresServer, postgres_url: str
) -> None:
    postgres_server.stop()
    try:
        finished = await run("deliveries", env={"DATABASE_URL": postgres_url}, cwd=tmp_path)
    finally:
        postgres_server.start()
    assert "could not be opened" in one_line(finished)
