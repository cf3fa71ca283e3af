"""The lab of the demo: a machine with devices, reports, and credentials for the bucket."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sandbox.bucket import BucketServer
from sandbox.demo.two_weeks import LAB, LOG_NAME, log_of
from sandbox.processes import inherited

NEW_LAB, NEW_TARGET = "my-lab", "board"
"""A lab that has no bucket: it uploads through the bot."""
COMMAND = "nightjar-lab upload"
ROOT = Path(__file__).parent.parent.parent


def save_run(folder: Path, results: str) -> tuple[Path, Path]:
    """Write a report, and what the tests printed; return both files."""
    report, log = folder / "report.xml", folder / LOG_NAME
    report.write_text(results, encoding="utf-8")
    log.write_text(log_of(results), encoding="utf-8")
    return report, log


class DemoLab:
    """Reads the commit to test and uploads reports, one run per suite. It has credentials for the bucket only."""

    def __init__(self, bucket: BucketServer, repository: str, bucket_name: str) -> None:
        self.variables = {
            **bucket.environment,
            "NIGHTJAR_REPOSITORY": repository,
            "NIGHTJAR_LAB": LAB,
            "NIGHTJAR_BUCKET": bucket_name,
        }
        """The environment of a lab's machine, without the bot's address."""
        self._environment = {**inherited(), **self.variables}
        self._bucket = bucket

    async def read(self, bucket: str, key: str) -> str:
        """Return the text of an object."""

        def read() -> str:
            body: bytes = self._bucket.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
            return body.decode()

        return await asyncio.to_thread(read)

    async def upload_report(
        self,
        sha: str,
        target: str,
        suite: str,
        path: Path,
        log: Path,
        report: Callable[[str], None],
        *,
        status: int,
        pull_request: int | None = None,
    ) -> None:
        """Upload one report, and what the tests printed, as a run of a target; `status` is the tests' exit status.

        `report` gets the command, and a line for the file. Raises AssertionError with the output of the command.
        """
        options = ["--target", target, "--sha", sha, "--suite", suite, "--exit-status", str(status)]
        options += ["--pull-request", str(pull_request)] if pull_request else []
        report(f"$ {COMMAND} {shlex.join([*options, '--file', log.name, path.name])}")
        await self._run([[*options, "--file", str(log), str(path)]], report)

    async def _run(self, commands: Sequence[Sequence[str]], report: Callable[[str], None]) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sandbox.demo.uploads",
            *map(json.dumps, commands),
            env=self._environment,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        output = []
        try:
            assert process.stderr is not None
            async for raw in process.stderr:
                output.append(raw.decode().rstrip())
                if any(f": {form}: " in output[-1] for form in ("junit", "executorch-csv")):
                    report(output[-1])
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert code == 0, f"{COMMAND} ended with {code}:\n" + "\n".join(output)
