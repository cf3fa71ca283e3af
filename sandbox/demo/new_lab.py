"""A new lab's part of the demo: from nothing to its first check run with four commands, without a bucket."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.demo.lab import NEW_LAB, NEW_TARGET, ROOT
from sandbox.demo.stage import DemoStage
from sandbox.processes import inherited, launch

TESTS = "def test_adds(): assert 1 + 1 == 2\n"
CHECK = f"hardware/{NEW_LAB}/{NEW_TARGET}"


class NewLab:
    """The scripted lab and its operator."""

    def __init__(self, demo: DemoStage) -> None:
        self.on = demo

    async def act(self) -> None:
        """Play it from the operator's command to the check run."""
        demo = self.on
        demo.narrator.say(f"{NEW_LAB} has no bucket and no AWS account: it uploads through the bot")
        commands = await self._added()
        sha = demo.repo.branch("nightly")
        with tempfile.TemporaryDirectory(prefix="nightjar-demo-new-lab-") as name:
            folder = Path(name)
            (folder / "test_ops.py").write_text(TESTS, encoding="utf-8")
            variables = dict(word.split("=", 1) for word in shlex.split(commands[0])[1:])
            demo.narrator.say(f"$ export {' '.join(f'{name}=…' for name in variables)}")
            for command in (commands[1], commands[2].replace(" -- ", " --sha nightly -- ")):
                demo.narrator.say(f"$ {command}")
                await self._run(shlex.split(command), variables, folder)
        await demo.check("a lab without a bucket has its check run after four commands", lambda: self._has_check(sha))

    async def _added(self) -> list[str]:
        """Add the lab, as the operator does; return the commands that the bot's command printed."""
        words = ("lab", "add", NEW_LAB, "--target", NEW_TARGET)
        self.on.narrator.say(f"$ nightjar {shlex.join(words)}")
        code, stdout, err = await self.on.bot.run(*words, "--json", "--config", str(self.on.bot.config))
        assert code == 0, f"nightjar {shlex.join(words)} ended with {code}:\n{stdout}{err}"
        commands: list[str] = json.loads(stdout)["commands"]
        self.on.lab_commands = commands
        return commands

    async def _run(self, words: list[str], variables: Mapping[str, str], folder: Path) -> None:
        words = [str(Path(sys.executable).with_name("pytest")) if word == "pytest" else word for word in words]
        environment = {**inherited(), "PYTHONPATH": str(ROOT / "lab"), **variables}
        process = await launch("nightjar_lab", *words[1:], env=environment, cwd=folder, merged=True)
        async with asyncio.timeout(120):
            output, _ = await process.communicate()
        assert process.returncode == 0, f"{shlex.join(words)} ended with {process.returncode}:\n{output.decode()}"

    def _has_check(self, sha: str) -> bool:
        suites = [suite for suite in self.on.repo.suites if suite.head_sha == sha]
        return any(run.name == CHECK and run.conclusion == "success" for suite in suites for run in suite.runs)
