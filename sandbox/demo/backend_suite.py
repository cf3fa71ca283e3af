"""Test two real backends, and check what the dashboard says about them: `make suite-demo`.

ONNX Runtime and Apache TVM are in an environment of their own (requirements-suite.txt), as on a lab's machine.
"""

from __future__ import annotations

import asyncio
import csv
import re
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from nightjar_formats.model import Trouble

from bot.core.page_paths import view_path
from bot.results.report.texts import HAPPENED
from sandbox.demo.__main__ import BROKEN, INTERRUPTED
from sandbox.demo.images import browser, with_palette
from sandbox.demo.lab import ROOT
from sandbox.demo.nightly_runs import NightlyRuns
from sandbox.demo.stage import REPOSITORY, DemoStage, stage
from sandbox.demo.two_weeks import LAB
from sandbox.model.checks import CheckRun
from sandbox.processes import inherited

PROGRAM = ROOT / ".venv-suite" / "bin" / "nightjar-lab"
SUITE = "onnx-node"
FLOWS = ("onnxruntime-cpu", "tvm-llvm")
TVM = FLOWS[1]
CASES = 300
LIMIT = 180.0
"""The most seconds for both flows together."""
SETTINGS = """\
mentions: ["@ci"]
public_url: {{url}}
repositories:
  octocat/compiler:
    nightly: {{{{at: "{{at}}", timezone: UTC, require: [{{ci}}]}}}}
    results:
      bucket: {{bucket}}
      {{source}}
      settle: 3s
      labs:
        {{lab}}:
          targets: [{flows}]
          reproduce: nightjar-lab suite repro --flow {{{{target}}}} --suite {suite} {{{{test}}}}
""".format(flows=", ".join(FLOWS), suite=SUITE)
TROUBLES = {
    "Lowering Failed": Trouble.LOWER,
    "PTE Load Failed": Trouble.LOAD,
    "PTE Run Failed": Trouble.RUN,
    "Output Mismatch": Trouble.OUTPUT,
    "Process Crash": Trouble.CRASH,
}
"""The name of each stage in the report, and on the dashboard."""
UNSUPPORTED = re.compile(r"not supported for frontend ONNX: (\w+)")


class BackendSuite:
    """The scripted lab: it tests a commit on two backends and uploads the results."""

    def __init__(self, demo: DemoStage, folder: Path) -> None:
        self.on = demo
        self._folder = folder
        self._nightly_runs = NightlyRuns(demo)

    async def act(self) -> dict[str, CheckRun]:
        """Play it; return the check run of each target."""
        demo = self.on
        self._nightly_runs.push("Add a front end for ONNX", {"src/onnx.py": "# Reads models.\n"})
        sha = await self._nightly_runs.move()
        began = time.monotonic()
        await asyncio.gather(*map(self._test, FLOWS))
        seconds = time.monotonic() - began
        demo.narrator.say(f"{CASES} cases on each of {len(FLOWS)} backends took {seconds:.0f} s")
        await demo.check(f"it took less than {LIMIT / 60:.0f} minutes", lambda: seconds < LIMIT)
        checks = {flow: await self._uploaded(sha, flow) for flow in FLOWS}
        await self._dashboard(checks[TVM])
        return checks

    async def _test(self, flow: str) -> None:
        """Run the suite on a flow. Raises AssertionError with the output if the command fails."""
        command = [str(PROGRAM), "suite", "run", "--flow", flow, "--suite", SUITE, "--limit", str(CASES)]
        self.on.narrator.say(f"$ {' '.join(['nightjar-lab', *command[1:]])}")
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--report", str(self._report(flow)), "--jsonl", str(self._folder / f"{flow}.jsonl")),
            cwd=self._folder,
            env={**inherited(), "TMPDIR": str(self._folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        assert process.returncode == 0, f"the suite ended with {process.returncode}:\n{output.decode()}"
        self._log(flow).write_bytes(output)
        self.on.narrator.say(output.decode().rstrip())

    async def _uploaded(self, sha: str, flow: str) -> CheckRun:
        """Upload a report; return the check run that it becomes."""
        demo, rows = self.on, self._rows(flow)
        results = Counter(row["Result"] for row in rows)
        await demo.lab.upload_report(
            sha, flow, SUITE, self._report(flow), self._log(flow), demo.narrator.say, status=int(results["Fail"] > 0)
        )
        words = [f"{results['Fail']} failing", f"{results['Pass']} passed"]

        def found() -> list[CheckRun]:
            runs = [run for suite in demo.repo.suites for run in suite.runs if run.name == f"hardware/{LAB}/{flow}"]
            return [run for run in runs if all(word in (run.title or "") for word in words)]

        await demo.check(f"the check run of {flow} has the counts of the report", found)
        return found()[-1]

    async def _dashboard(self, check: CheckRun) -> None:
        """Check that the run's page names each stage that failed, and each operator that cannot be imported."""
        page = await self.on.page(check.details_url or "")
        rows = self._rows(TVM)
        stages = {HAPPENED[TROUBLES[row["Result Detail"]]] for row in rows if row["Result"] == "Fail"}
        await self.on.check(
            f"the page says: {', '.join(sorted(stages))}", lambda: all(stage_text in page for stage_text in stages)
        )
        operators = {name for row in rows for name in UNSUPPORTED.findall(row["Error"])}
        self.on.narrator.say(f"Operators that TVM's front end lacks: {', '.join(sorted(operators))}")
        await self.on.check(
            f"it names each of {len(operators)} operators that TVM cannot import",
            lambda: bool(operators) and all(operator in page for operator in operators),
        )
        grid = await self.on.page(f"{self.on.bot.url}{view_path(REPOSITORY)}")
        await self.on.check(
            "the grid has a row for each backend", lambda: all(f"{LAB}/{flow}" in grid for flow in FLOWS)
        )

    def _report(self, flow: str) -> Path:
        return self._folder / f"{flow}.csv"

    def _log(self, flow: str) -> Path:
        return self._folder / f"{flow}.log"

    def _rows(self, flow: str) -> list[dict[str, str]]:
        with self._report(flow).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


async def play(*, stay: bool, image: Path | None) -> int:
    """Play the demo; returns the exit code."""
    with TemporaryDirectory(prefix="nightjar-suite-demo-") as folder:
        async with stage(SETTINGS, has_past=False) as demo:
            try:
                checks = await BackendSuite(demo, Path(folder)).act()
                assert not demo.github.violations, f"the bot broke GitHub's rules: {demo.github.violations}"
            except AssertionError as broken:
                click.echo(f"\n✘ {broken}", err=True)
                return BROKEN
            click.echo(f"\n{len(demo.passed)} checks passed:")
            click.echo("\n".join(f"  ✔ {check}" for check in demo.passed))
            if image is not None:
                await _save(checks[TVM].details_url or "", image)
            if stay:
                pages = {flow: check.details_url for flow, check in checks.items()}
                pages["the grid"] = f"{demo.bot.url}{view_path(REPOSITORY)}"
                click.echo("\n".join(["\nPages:", *(f"  {name + ':':16} {url}" for name, url in pages.items())]))
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
    return 0


async def _save(url: str, path: Path) -> None:
    async with browser() as chromium:
        image = await chromium.screenshot(url, "section.card")
    await asyncio.to_thread(path.write_bytes, await with_palette(image))
    click.echo(f"saved {path}", err=True)


@click.command()
@click.option("--stay", is_flag=True, help="Serve the pages until Ctrl-C; otherwise stop at the end.")
@click.option("--image", type=click.Path(path_type=Path, dir_okay=False), help="Save a screenshot of TVM's run.")
def main(stay: bool, image: Path | None) -> None:
    """Test ONNX Runtime and Apache TVM with 300 cases each, upload both, and check the dashboard."""
    try:
        sys.exit(asyncio.run(play(stay=stay, image=image)))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
