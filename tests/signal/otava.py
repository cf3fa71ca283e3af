"""Run Apache Otava in an environment of its own: it pins packages that we cannot share."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

PACKAGE = "apache-otava"
FOLDER = Path(gettempdir()) / "nightjar-otava"
LEAST_MAGNITUDE = 0.02
"""As our own threshold; all other options are Otava's defaults."""
SCRIPT = f"""
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    points, _ = compute_change_points(json.loads(line), min_magnitude={LEAST_MAGNITUDE})
    print(json.dumps([int(point.index) for point in points]), flush=True)
"""


class OtavaMissingError(Exception):
    """Apache Otava cannot be installed here."""


class Otava:
    """A process of Apache Otava that analyses series."""

    def __init__(self) -> None:
        """Install Otava if it is not there yet. Raises `OtavaMissingError`."""
        python = FOLDER / "bin" / "python"
        try:
            if not python.exists():
                venv.create(FOLDER, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise OtavaMissingError(str(error)) from error
        listed = subprocess.run([python, "-m", "pip", "show", PACKAGE], check=True, capture_output=True, text=True)
        self.version = next(line for line in listed.stdout.splitlines() if line.startswith("Version")).split()[1]
        self._process = subprocess.Popen(
            [python, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def change_points(self, values: Sequence[float]) -> list[int]:
        """Return the nights at which Otava reports a change of a series."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()
        points: list[int] = json.loads(self._process.stdout.readline())
        return points

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
