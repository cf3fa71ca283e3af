"""Files are small enough to be read in one go: a larger file has two subjects."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("bot", "handlers", "lab", "sandbox", "scripts", "tests", "benchmarks")
MOST_LINES = 400


def test_no_python_file_is_longer_than_400_lines() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500, "the search found too few files"
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
