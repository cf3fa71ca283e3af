"""What the kit needs stays small: docs/decisions/lab-kit-size.md."""

from __future__ import annotations

from importlib.metadata import distribution

from packaging.requirements import Requirement

from tests.lab.kit.running import ROOT

MOST = 5_000_000


def test_the_kit_needs_four_small_packages_and_boto3_only_for_a_bucket() -> None:
    required = [Requirement(requirement) for requirement in distribution("nightjar-lab").requires or []]
    needed = {"python_version": "3.13", "extra": ""}
    assert {
        requirement.name for requirement in required if not requirement.marker or requirement.marker.evaluate(needed)
    } == {
        "backports.zstd",
        "click",
        "filelock",
        "ijson",
    }
    newer = {"python_version": "3.14", "extra": "s3"}
    by_extra = {
        str(requirement.name) for requirement in required if requirement.marker and requirement.marker.evaluate(newer)
    }
    assert by_extra == {"boto3", "botocore"}
    files = [path for name in ("nightjar_lab", "nightjar_formats") for path in (ROOT / "lab" / name).rglob("*")]
    sources = sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")
    click = sum(file.size or 0 for file in distribution("click").files or ())
    assert sources > 100_000
    assert click > 100_000
    # pip compiles what it installs: bytecode takes less than twice as much as its source.
    assert 3 * (sources + click) < MOST
