"""Generate the table of growth in docs/deploy.md from what `python -m benchmarks.scale --store` has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.core.docs import table

STORED = Path("benchmarks/scale.json")
HEADER = ("what", "of", "measured", "grows", "goal")


def growth_table(root: Path) -> str:
    """Return the table: what each row costs at its sizes, how that grows, and whether the goal is met."""
    rows = json.loads((root / STORED).read_text(encoding="utf-8"))["rows"]
    machines = sorted({f"{row['machine']}; {row['database']}; {row['date']}" for row in rows})
    return "\n".join([table(HEADER, list(map(_cells, rows))), "", *machines])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    steps = zip(row["sizes"], row["figures"], strict=True)
    figures = "<br>".join(f"{size:,}: {figure:,g}" for size, figure in steps)
    goal = f"≤ {row['goal']:,g}" + ("" if row["met"] == "met" else ", missed")
    return f"{row['what']}, {row['unit']}", row["counted"], figures, row["grows"], goal
