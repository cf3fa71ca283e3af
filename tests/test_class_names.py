"""One name for one thing: whoever searches for a class finds one, and not six that are called alike."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_no_two_public_classes_have_the_same_name() -> None:
    """The sandbox is left out: it models GitHub, and calls a repository what GitHub calls it."""
    files: dict[str, list[str]] = defaultdict(list)
    for folder in ("bot", "handlers", "lab/nightjar_formats"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(str(path.relative_to(ROOT)))
    assert len(files) > 300
    assert {name: where for name, where in files.items() if len(where) > 1} == {}
