"""Class names are unique: a search for a class finds one, not six with the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent


FOLDERS = ("benchmarks", "bot", "handlers", "lab/nightjar_formats", "lab/nightjar_lab", "sandbox", "scripts")
GITHUB = frozenset({"Commit", "PullRequest", "Repository"})
"""Names of GitHub's objects, which the bot reads and the sandbox models."""


def test_no_two_public_classes_have_the_same_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(str(path.relative_to(ROOT)))
    assert len(files) > 700
    assert {name: paths for name, paths in files.items() if len(paths) > 1 and name not in GITHUB} == {}
    assert all(len(files[name]) == 2 for name in GITHUB)
