"""Break the pure modules one small change at a time and count the changes that no test detects: `make mutants`.

Without arguments all pure modules, those with the most decisions first, which takes a night; or the named ones; or with
`--sample 150 --seed 1` a random sample of the changes to all of them. Fails if less than 90 % of all changes are
detected.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.imports import ROOT
from scripts.pure_modules import pure_modules, quick_tests
from scripts.sampled_mutants import try_sample

LEAST = 0.90
"""The share of mutants that tests must detect. Equivalent mutants, listed in docs/mutants.md, count as survivors."""
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "mutants", "node_modules")
SECTION = "[tool.mutmut]\n"


def main() -> int:
    """Print the score and the survivors; return 1 if the whole score is too low."""
    parser = argparse.ArgumentParser(description="Count the small changes to pure modules that no quick test detects.")
    parser.add_argument("modules", nargs="*", help="paths of pure modules; all of them by default")
    parser.add_argument("--sample", type=int, help="try only this many random changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=Path, default=ROOT / "build" / "calls.json", help="which tests call what")
    arguments = parser.parse_args()
    modules = arguments.modules or pure_modules()
    detected = total = 0
    scores = _sample(modules, arguments) if arguments.sample else _each(modules)
    for killed, mutants, lines in scores:
        detected, total = detected + killed, total + mutants
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    share = detected / total if total else 1.0
    sys.stdout.write(f"{detected} of {total} mutants were detected: {share:.1%}; at least {LEAST:.0%}\n")
    return 0 if share >= LEAST else 1


def _each(modules: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    for module in modules:
        tests = quick_tests(module)
        if not tests:
            yield 0, 0, [f"{module}: no quick test imports it"]
            continue
        with TemporaryDirectory(prefix="nightjar-mutants-") as folder:
            killed, mutants, survivors = run_mutmut(Path(folder) / "tree", module, tests)
        yield killed, mutants, [f"{module}: {killed} of {mutants}", *survivors]


def _sample(modules: list[str], arguments: argparse.Namespace) -> Iterator[tuple[int, int, list[str]]]:
    for change, test in try_sample(modules, arguments.sample, arguments.seed, arguments.calls):
        yield bool(test), 1, [change, f"  {test or 'survived'}"]


def run_mutmut(tree: Path, module: str, tests: list[str]) -> tuple[int, int, list[str]]:
    """Run mutmut in a copy of the repository; return how many mutants were detected, of how many, and the survivors."""
    shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
    # mutmut derives the names of modules from their paths.
    shutil.move(tree / "lab" / "nightjar_formats", tree / "nightjar_formats")
    settings = (ROOT / "pyproject.toml").read_text()
    only = [module.removeprefix("lab/")]
    lines = f"only_mutate = {json.dumps(only)}\n"
    lines += f"pytest_add_cli_args_test_selection = {json.dumps(tests)}\n"
    (tree / "pyproject.toml").write_text(settings.replace(SECTION, SECTION + lines))
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}

    def mutmut(*arguments: str, check: bool = True) -> str:
        command = [sys.executable, "-m", "mutmut", *arguments]
        return subprocess.run(command, cwd=tree, env=environment, check=check, capture_output=True, text=True).stdout

    mutmut("run", "--max-children", "1", check=False)
    mutmut("export-cicd-stats")
    stats = json.loads((tree / "mutants" / "mutmut-cicd-stats.json").read_text())
    killed = stats["killed"] + stats["timeout"]
    survivors = [
        line.strip() for line in mutmut("results").splitlines() if ": " in line and not line.endswith(": timeout")
    ]
    explained = [f"  {line}\n{_changed(mutmut('show', line.partition(':')[0]))}" for line in survivors]
    return killed, killed + stats["survived"] + stats["no_tests"] + stats["suspicious"], explained


def _changed(diff: str) -> str:
    lines = (line for line in diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"))
    return "\n".join(f"    {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
