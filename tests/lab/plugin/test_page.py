"""The examples of docs/pytest-plugin.md run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab.plugin.project import Project

PAGE = Path(__file__).parents[3] / "docs" / "pytest-plugin.md"


def test_the_examples_of_the_page_run(project: Project) -> None:
    conftest, tests, measurements = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    project.write(conftest=conftest.replace("/dev/nvidia0", "/nowhere"), test_one=tests + measurements)
    run = project.run()
    ran = {"test_on_one[llvm]", "test_not_on_cuda[llvm]", "test_together[llvm-4]", "test_given_numbers", "test_timers"}
    assert run.with_outcome("passed") - {"test_compiles"} == ran | {
        f"test_on_all_targets[{size}-llvm]" for size in ("small", "large")
    }
    assert run.with_outcome("xfailed") == {"test_fails_on_llvm[llvm]"}
    assert {"test_on_all_targets[small-cuda]", "test_together[cuda-256]"} <= run.with_outcome("skipped")
