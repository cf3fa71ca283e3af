"""Run mutmut over the modules that pyproject.toml names, and fail if too many mutants survive: `make mutants`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
STATS = ROOT / "mutants" / "mutmut-cicd-stats.json"
LEAST = 0.90
"""The share of mutants that tests must detect. Equivalent mutants, listed in docs/mutants.md, count as survivors."""


def main() -> int:
    """Print the score and the survivors; return 1 if the score is too low."""
    mutmut = [sys.executable, "-m", "mutmut"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([*mutmut, "run", *sys.argv[1:]], cwd=ROOT, env=environment, check=False)
    subprocess.run([*mutmut, "export-cicd-stats"], cwd=ROOT, env=environment, check=True)
    stats = json.loads(STATS.read_text())
    noticed = stats["killed"] + stats["timeout"]
    total = noticed + stats["survived"] + stats["no_tests"] + stats["suspicious"]
    subprocess.run([*mutmut, "results"], cwd=ROOT, env=environment, check=False)
    sys.stdout.write(f"{noticed} of {total} mutants were detected: {noticed / total:.1%}; at least {LEAST:.0%}\n")
    return 0 if noticed >= LEAST * total else 1


if __name__ == "__main__":
    sys.exit(main())
