"""`nightjar-lab run`: a lab's nightly run in one command, whatever ends it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from nightjar_lab.lab_run import capabilities_of

from tests.bucket import World
from tests.conversations.lab import lab_town
from tests.lab.kit.running import LAB, MOUNTS, NAMESPACES, TARGET, kit_environment, run_here, run_kit, start_kit
from tests.running import Finished, finished
from tests.waiting import until

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
FOLDER = f"results/octocat/compiler/{LAB}/{TARGET}/{SHA}/run-1/"
JUNIT = '<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"/></testsuite>'
WRITES = f"echo '{JUNIT}' > $NIGHTJAR_RESULTS/te.xml"
OPTIONS = ("run", "--target", TARGET, "--sha", SHA, "--run-id", "run-1")


async def run_script(script: str, *options: str, world: World, folder: Path, **variables: str) -> Finished:
    """Run a script as the command of a run."""
    words = (*OPTIONS, *options, "--", "bash", "-c", script)
    return await run_kit(*words, env=kit_environment(folder, world, **variables), cwd=folder)


def manifest(world: World) -> dict[str, Any]:
    body = world.s3.get_object(Bucket=world.name, Key=f"{FOLDER}manifest.json")["Body"].read()
    document: dict[str, Any] = json.loads(body)
    return document


@NAMESPACES
async def test_a_disk_that_fills_during_the_tests_is_named_with_the_command_that_uploads_what_is_there(
    tmp_path: Path, aws_world: World
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    mounted = f'mount -t tmpfs -o size=64k none {runs} && exec "$@"'
    script = "yes > $NIGHTJAR_RESULTS/te.xml"
    words = (*OPTIONS, "--folder", str(runs), "--", "bash", "-c", script)
    under = [*MOUNTS, "sh", "-c", mounted, "sh"]
    done = await run_kit(*words, env=kit_environment(tmp_path, aws_world), cwd=tmp_path, under=under)
    assert done.status == 1
    assert done.err.splitlines()[-1] == (
        f"{runs}/run-1 cannot be written: No space left on device; correct this, then upload what the command wrote "
        f"with: nightjar-lab run --resume --folder {runs}"
    )
    assert "Traceback" not in done.err


async def test_it_streams_the_output_uploads_and_passes_on_the_exit_status(tmp_path: Path, aws_world: World) -> None:
    script = (
        f"env > env.txt; echo working; {WRITES}; "
        "echo a log > $NIGHTJAR_RESULTS/log.txt; echo more > $NIGHTJAR_FILES/more.log; "
        'echo "<svg/>" > $NIGHTJAR_FILES/a.svg; '
        'ln -s $PWD/env.txt $NIGHTJAR_FILES/link.txt; mkdir build; echo "{}" > build/a.json; exit 3'
    )
    options = ("--suite", "operators", "--attempt", "2", "--shard", "1/4", "--environment", "device=Pixel 9")
    words = (*options, "--file", "build/*.json")
    done = await run_script(script, *words, world=aws_world, folder=tmp_path, NIGHTJAR_LAB_TOKEN="the token")
    assert (done.status, done.out) == (3, "working\n"), done
    assert "te.xml: junit: 1 passed" in done.err
    document = manifest(aws_world)
    assert document["started_at"] <= document["finished_at"]
    assert {name: document[name] for name in ("exit_status", "suite", "attempt", "shard", "environment")} == {
        "exit_status": 3,
        "suite": "operators",
        "attempt": 2,
        "shard": {"index": 1, "total": 4},
        "environment": {"device": "Pixel 9"},
    }
    names = ["a.json", "log.txt", "manifest.json", "more.log", "te.xml"]
    assert sorted(aws_world.keys(FOLDER)) == [f"{FOLDER}{name}" for name in names]
    assert [(file["name"], file["type"]) for file in document["artifacts"]] == [
        ("log.txt", "text/plain"),
        ("a.json", "application/json"),
        ("more.log", "text/plain"),
    ]
    assert "a.svg has a type that is not accepted" in done.err, "it loses no results"
    assert "link.txt is not uploaded: it is a link" in done.err
    assert list((tmp_path / "nightjar-runs").iterdir()) == [], "nothing is left behind"
    variables = (tmp_path / "env.txt").read_text()
    assert f"NIGHTJAR_SHA={SHA}" in variables
    for secret in ("the token", aws_world.server.environment["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in variables


async def test_the_command_cannot_read_the_secrets_of_its_parent_process(tmp_path: Path) -> None:
    script = """
        kit=$(awk '/^PPid/ {print $2}' /proc/$PPID/status)
        tr '\\0' ' ' < /proc/$kit/cmdline
        cat /proc/$PPID/environ /proc/$kit/environ
    """
    words = (*OPTIONS, "--dry-run", "--", "bash", "-c", script)
    # Without its capabilities, root is an ordinary user.
    under = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    env = kit_environment(tmp_path, NIGHTJAR_LAB_TOKEN="the token")
    done = await run_kit(*words, env=env, cwd=tmp_path, under=under)
    assert "--dry-run" in done.out, "it is the kit's own process"
    assert "NIGHTJAR_SHA=" in done.out, "the supervisor has the environment of the command"
    assert "Permission denied" in done.err
    assert "the token" not in done.out


async def test_the_bot_stores_the_run_and_a_crash_without_a_report_is_a_lab_setup_problem(
    sqlite_url: str, tmp_path: Path, aws_world: World
) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        sha = place.nightly_run()
        words = ("--target", TARGET, "--sha", sha, "--suite", "operators", "--timeout", "60")
        env = kit_environment(tmp_path, aws_world, NIGHTJAR_URL=place.town.url)
        running = await start_kit("run", *words, "--", "bash", "-c", "kill -SEGV $$", env=env, cwd=tmp_path)
        await until(lambda: any(key.endswith("manifest.json") for key in aws_world.keys("results/")))
        await place.settle()
        done = await finished(running)
        assert done.status == 139, done
        assert "the command left no report in NIGHTJAR_RESULTS (exit status 139)" in done.err
        assert f"The bot stored the run: {place.town.url}/r/octocat/compiler/runs/{LAB}/{TARGET}/{sha}/" in done.err
        check = place.check(sha)
        address = f"{place.town.github.url}/octocat/compiler/runs/{check.id}"
        assert f"Check run hardware/{LAB}/{TARGET}: {address}" in done.err
        assert check.conclusion == "neutral"
        assert "the lab's command ended with exit status 139 before its first test" in (check.title or "")


async def test_a_signal_during_the_wait_for_the_bot_says_that_nothing_is_left_to_upload(
    sqlite_url: str, tmp_path: Path, aws_world: World
) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        words = ("run", "--target", TARGET, "--sha", place.nightly_run(), "--", "bash", "-c", WRITES)
        env = kit_environment(tmp_path, aws_world, NIGHTJAR_URL=place.town.url)
        running = await start_kit(*words, env=env, cwd=tmp_path)
        await until(lambda: any(key.endswith("manifest.json") for key in aws_world.keys("results/")))
        await until(lambda: not list((tmp_path / "nightjar-runs").iterdir()))
        running.terminate()
        done = await finished(running)
        assert done.status == 128 + signal.SIGTERM, done
        assert "everything is uploaded; stopped while waiting for the bot" in done.err
        assert "--resume" not in done.err


async def test_the_manifest_says_which_targets_the_tests_could_use(tmp_path: Path, aws_world: World) -> None:
    (tmp_path / "conftest.py").write_text(
        "from nightjar_lab.pytest import Target\n"
        "nightjar_targets = [Target('llvm'), Target('cuda', available=False), Target('cpu')]\n"
    )
    (tmp_path / "test_ops.py").write_text("def test_add(target): pass\n")
    words = ("--", sys.executable, "-m", "pytest", "-p", "nightjar_lab.pytest", "test_ops.py")
    env = kit_environment(tmp_path, aws_world, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    done = await run_kit(*OPTIONS, "--environment", "device=Pixel 9", *words, env=env, cwd=tmp_path)
    assert done.status == 0, done
    assert manifest(aws_world)["environment"] == {"capabilities": "llvm, cpu", "device": "Pixel 9"}


def test_invalid_capabilities_from_a_test_are_left_out(tmp_path: Path) -> None:
    kind = '{"$report_type": "NightjarCapabilities", "targets": '
    targets = ['{"llvm": "", "a\\nb": "", "\\ud800": "", "cuda": "no device", "x": 1}}', "[1]}", "{}", "{" * 5000]
    (tmp_path / "pytest.jsonl").write_text("".join(f"{kind}{text}\n" for text in targets))
    assert capabilities_of(tmp_path) == "llvm"


def test_capabilities_are_read_in_bounded_memory(tmp_path: Path) -> None:
    kind = '{"$report_type": "NightjarCapabilities", "targets": {'
    with (tmp_path / "pytest.jsonl").open("w") as file:
        file.write(f'{kind}"llvm": ""}}}}\n{kind}')
        for _ in range(32):
            file.write("x" * (1 << 20))
        file.write("\n")
        for number in range(5_000):
            file.write(f'{kind}"t{number}": "missing", "{"n" * 500}{number}": ""}}}}\n')
    tracemalloc.start()
    try:
        assert capabilities_of(tmp_path) == "llvm"
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


async def test_a_refused_run_fails_a_command_that_succeeded(sqlite_url: str, tmp_path: Path, aws_world: World) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        sha = place.nightly_run()
        env = kit_environment(tmp_path, aws_world, NIGHTJAR_URL=place.town.url)
        words = ("run", "--target", "not-in-app-yaml", "--sha", sha, "--", "bash", "-c", WRITES)
        running = await start_kit(*words, env=env, cwd=tmp_path)
        await until(lambda: any(key.endswith("manifest.json") for key in aws_world.keys("results/")))
        await place.scan()
        done = await finished(running)
        assert done.status == 1, done
        assert "the bot did not store the run (refused): app.yaml has no target not-in-app-yaml" in done.err
        assert "the run stays in" not in done.err, "it is uploaded, and another upload would change nothing"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_after_a_signal_the_command_writes_its_report_and_the_run_is_uploaded(
    number: signal.Signals, tmp_path: Path, aws_world: World
) -> None:
    (tmp_path / "te.xml").write_text(JUNIT)
    script = "trap 'cp te.xml $NIGHTJAR_RESULTS/te.xml; exit 2' INT; touch started; while :; do sleep 0.1; done"
    env = kit_environment(tmp_path, aws_world)
    running = await start_kit(*OPTIONS, "--", "bash", "-c", script, env=env, cwd=tmp_path)
    await until(lambda: (tmp_path / "started").exists())
    running.send_signal(number)
    done = await finished(running)
    assert done.status == 2, done
    assert manifest(aws_world)["exit_status"] == 2
    assert f"{FOLDER}te.xml" in aws_world.keys(FOLDER)


async def test_a_command_that_ignores_signals_is_killed(tmp_path: Path, aws_world: World) -> None:
    script = "trap '' INT TERM; touch started; while :; do sleep 0.1; done"
    env = kit_environment(tmp_path, aws_world)
    words = (*OPTIONS, "--grace", "0.2", "--", "bash", "-c", script)
    running = await start_kit(*words, env=env, cwd=tmp_path)
    await until(lambda: (tmp_path / "started").exists())
    running.terminate()
    assert (await finished(running)).status == 137
    assert manifest(aws_world)["exit_status"] == 137


async def test_a_run_that_could_not_be_uploaded_goes_with_the_next_one_under_its_own_id(
    tmp_path: Path, aws_world: World
) -> None:
    away = await run_script(WRITES, world=aws_world, folder=tmp_path, AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert away.status == 1, away
    assert "nightjar-lab run --resume" in away.err
    assert aws_world.keys("results/") == []
    env = kit_environment(tmp_path, aws_world)
    resumed = await run_kit("run", "--resume", env=env, cwd=tmp_path)
    assert resumed.status == 0, resumed
    assert manifest(aws_world)["exit_status"] == 0
    assert "nothing to upload" in (await run_kit("run", "--resume", env=env, cwd=tmp_path)).err


async def test_the_report_of_a_killed_run_is_uploaded(tmp_path: Path, aws_world: World) -> None:
    env = kit_environment(tmp_path, aws_world)
    script = f"{WRITES}; touch started; sleep 600"
    running = await start_kit(*OPTIONS, "--", "bash", "-c", script, env=env, cwd=tmp_path)
    await until(lambda: (tmp_path / "started").exists())
    running.kill()
    await finished(running)
    second = await run_kit("run", "--resume", env=env, cwd=tmp_path)
    assert second.status == 0, second
    document = manifest(aws_world)
    assert (document["exit_status"], [file["name"] for file in document["files"]]) == (137, ["te.xml"])


async def test_links_are_neither_uploaded_nor_written_through(tmp_path: Path, aws_world: World) -> None:
    """The command runs the commit that is tested, and a link could lead to any file of the lab."""
    (tmp_path / "secret.xml").write_text("of the lab")
    script = (
        f"mkdir build; echo '<testsuites/>' > build/te.xml; ln -s {tmp_path}/secret.xml build/a.xml; "
        f'ln {tmp_path}/secret.xml build/b.xml; ln -s {tmp_path}/secret.xml "$NIGHTJAR_RESULTS/te.xml"'
    )
    done = await run_script(script, "--report", "build/*.xml", world=aws_world, folder=tmp_path)
    assert done.status == 0, done
    for name in ("a", "b"):
        assert f"build/{name}.xml is a link and is not uploaded" in done.err
    assert sorted(aws_world.keys(FOLDER)) == [f"{FOLDER}manifest.json", f"{FOLDER}te.xml"]
    assert (tmp_path / "secret.xml").read_text() == "of the lab"


async def test_reports_elsewhere_are_found_unless_they_are_old(tmp_path: Path, aws_world: World) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/old.xml").write_text(JUNIT)
    script = f"touch -d '1 hour ago' build/old.xml; echo '{JUNIT}' > build/new.xml; cp build/new.xml junit.xml"
    words = ("--report", "build/*.xml", "--", "bash", "-c", script, "x", "--junitxml", "junit.xml")
    done = await run_kit(*OPTIONS, *words, env=kit_environment(tmp_path, aws_world), cwd=tmp_path)
    assert done.status == 0, done
    assert "build/old.xml is older than this run" in done.err
    assert [file["name"] for file in manifest(aws_world)["files"]] == ["junit.xml", "new.xml"]


async def test_patterns_match_in_every_part_of_a_path_and_files_of_one_name_are_all_uploaded(
    tmp_path: Path, aws_world: World
) -> None:
    folders = ("b", "b/x", "b/y/z", "b/.git", "c-1", "c-2", "d[1]")
    script = "\n".join(
        [
            *(f"mkdir -p '{folder}'; echo '{JUNIT}' > '{folder}/test.xml'" for folder in folders),
            f"echo '{JUNIT}' > 'd[1]/my results.xml'",
            f"mkdir $NIGHTJAR_RESULTS/sub; echo '{JUNIT}' > $NIGHTJAR_RESULTS/sub/test.xml",
        ]
    )
    patterns = ("b/**/test.xml", "b/**", f"{tmp_path}/c-?/t[a-f]st.xml", "d[[]1]/*.xml", "./b/x/../x/test.xml")
    options = [word for pattern in patterns for word in ("--report", pattern)]
    done = await run_script(script, *options, world=aws_world, folder=tmp_path)
    assert done.status == 0, done
    names = [file["name"] for file in manifest(aws_world)["files"]]
    assert len(names) == 8
    assert sorted(re.sub("[0-9a-f]{12}", "#", name) for name in names) == [
        "my_results-#.xml",
        *["test-#.xml"] * 6,
        "test.xml",
    ]


@pytest.mark.parametrize(
    ("pattern", "link"),
    [
        ("out/*.xml", "ln -s {secrets} out"),
        ("{here}/out/*.xml", "ln -s {secrets} out"),
        ("*/*.xml", "ln -s {secrets} out"),
        ("**/out/*.xml", "ln -s {secrets} out"),
        ("**/*.xml", "mkdir out; ln -s {secrets}/key.xml out/key.xml"),
        ("{beside}/new/*.xml", "ln -s {secrets} {beside}/new"),
    ],
)
async def test_a_pattern_leads_through_no_link_of_the_command(
    pattern: str, link: str, tmp_path: Path, aws_world: World
) -> None:
    places = {"here": tmp_path / "checkout", "secrets": tmp_path / "secrets", "beside": tmp_path / "beside"}
    for place in places.values():
        place.mkdir()
    (places["secrets"] / "key.xml").write_text(JUNIT)
    script = f"{WRITES}; {link.format(**places)}; touch {places['secrets']}/key.xml"
    words = ("--report", pattern.format(**places))
    done = await run_script(script, *words, world=aws_world, folder=places["here"])
    assert done.status == 1, done
    assert f"--report {words[1]} matches no report of this run" in done.err
    assert "is a link and is not uploaded" in done.err
    assert [file["name"] for file in manifest(aws_world)["files"]] == ["te.xml"]


async def test_a_link_of_the_lab_to_its_own_folder_is_followed(tmp_path: Path, aws_world: World) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "checkout").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    done = await run_script(
        f"echo '{JUNIT}' > {tmp_path}/results/te.xml",
        *("--report", f"{tmp_path}/results/*.xml"),
        world=aws_world,
        folder=tmp_path / "checkout",
    )
    assert done.status == 0, done


async def test_a_results_folder_that_became_a_link_is_refused(tmp_path: Path, aws_world: World) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key.xml").write_text(JUNIT)
    script = f"rmdir $NIGHTJAR_RESULTS; ln -s {tmp_path}/secrets $NIGHTJAR_RESULTS"
    done = await run_script(script, world=aws_world, folder=tmp_path)
    assert done.status == 1, done
    assert "the folder NIGHTJAR_RESULTS, cannot be read" in done.err
    assert aws_world.keys(FOLDER) == []


async def test_more_reports_than_a_run_may_have_are_joined(tmp_path: Path, aws_world: World) -> None:
    suite = '<testsuite name="s$n"><testcase classname="C$n" name="test_add" time="0.1"/></testsuite>'
    script = f"""
        for n in $(seq 400); do echo '{suite}' | sed "s/[$]n/$n/g" > $NIGHTJAR_RESULTS/TEST-$n.xml; done
        echo '<testsuites name="cut off"><testsuite name="a">' > $NIGHTJAR_RESULTS/broken.xml
    """
    done = await run_script(script, "--dry-run", world=aws_world, folder=tmp_path)
    assert done.status == 0, done
    names = [file["name"] for file in json.loads(done.out)["files"]]
    assert len(names) == 2
    assert "broken.xml" in names


async def test_reports_that_cannot_be_joined_stay_and_the_text_says_how_many_a_run_may_have(
    tmp_path: Path, aws_world: World
) -> None:
    script = "for n in $(seq 300); do echo '1..0' > $NIGHTJAR_RESULTS/$n.tap; done"
    done = await run_script(script, world=aws_world, folder=tmp_path)
    assert done.status == 1, done
    assert "the run has 300 reports, more than the 256 files that a run may have" in done.err
    assert len(list((tmp_path / "nightjar-runs/run-1/results").iterdir())) == 300


async def test_a_command_without_any_report_fails(tmp_path: Path, aws_world: World) -> None:
    done = await run_script("true", world=aws_world, folder=tmp_path)
    assert done.status == 1, done
    assert "the command left no report in NIGHTJAR_RESULTS (exit status 0)" in done.err
    assert manifest(aws_world)["exit_status"] == 0


async def test_a_dry_run_needs_no_bucket(tmp_path: Path) -> None:
    words = (*OPTIONS, "--dry-run", "--", "bash", "-c", WRITES)
    done = await run_kit(*words, env=kit_environment(tmp_path), cwd=tmp_path)
    assert done.status == 0, done
    assert json.loads(done.out)["files"][0]["name"] == "te.xml"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sha", "0d1a26e", "--", "true"), '"0d1a26e" is not the full SHA of a commit'),
        (("--", "no-such-command"), "there is no command no-such-command here"),
        ((), "name the test command after --"),
        (("--shard", "5/4", "--sha", SHA, "--", "true"), "shard.total"),
        (("--", "true"), "this folder is not a Git checkout"),
        (
            ("--sha", SHA, "--report", "[z-a].xml", "--", "true"),
            "--report [z-a].xml is no pattern: bad character range",
        ),
    ],
)
def test_a_wrong_setting_is_named_before_anything_runs(
    words: tuple[str, ...], message: str, tmp_path: Path, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_here("run", "--target", TARGET, *words, env=kit_environment(tmp_path, aws_world))
    assert done.status in (1, 2), done
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "nightjar-runs").exists()
