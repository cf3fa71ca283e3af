"""slow.h, measure.h and nightjar.cmake, compiled and run with Debian's GoogleTest and CMake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.readers import read
from nightjar_lab.main import kit

ROOT = Path(__file__).parents[3]
FETCHED = Path(sys.prefix) / "gtest/usr"

CODE = """
#include <nightjar/measure.h>
#include <nightjar/slow.h>

TEST(Models, Slow) { NIGHTJAR_SLOW(); }
TEST(Models, Nightly) { nightjar_level("nightly"); }
TEST(Models, Fast) {
  nightjar::Measure("latency", 0.1 + 0.2, "ms", "lower");
  nightjar::Measure("loss", 1e-300);
  nightjar::Measure("snr", 40, "", "higher");
}

class Device : public ::testing::Test {
 protected:
  void SetUp() override { NIGHTJAR_SLOW(); }
};
TEST_F(Device, Slow) { if (true) NIGHTJAR_SLOW(); else FAIL(); }
"""
CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(slow CXX)
enable_testing()
include(nightjar/nightjar)
find_program(TRUE true)
foreach(name fast slow both)
  add_test(NAME ${name} COMMAND ${TRUE})
endforeach()
set_tests_properties(both PROPERTIES LABELS gpu)
nightjar_slow_tests(slow both)
"""


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"these tests need {name}: install it (Debian: apt install g++ cmake)", pytrace=False)
    return path


def include_dir() -> str:
    result = CliRunner().invoke(kit, ["include-dir"])
    assert result.exit_code == 0
    return result.output.strip()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program with slow tests, compiled without warnings."""
    folder = tmp_path_factory.mktemp("gtest")
    (folder / "slow.cc").write_text(CODE)
    places: list[str] = []
    if not Path("/usr/include/gtest/gtest.h").exists():
        if not FETCHED.exists():
            pytest.fail("these tests need GoogleTest: run scripts/gtest-for-tests", pytrace=False)
        [library] = FETCHED.glob("lib/*/libgtest.a")
        places = [f"-isystem{FETCHED / 'include'}", f"-L{library.parent}"]
    warnings = ["-std=c++14", "-O0", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [tool("g++"), *warnings, f"-I{include_dir()}", "slow.cc", *places, "-lgtest_main", "-lgtest", "-pthread"]
    done = subprocess.run([*command, "-o", "slow"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "slow"


def ran(program: Path, folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return how each test ended, as the server reads the program's report."""
    report = folder / "report.xml"
    environment = {"PATH": os.environ["PATH"], **variables}
    subprocess.run([program, f"--gtest_output=xml:{report}"], env=environment, check=True, capture_output=True)
    with report.open("rb") as file:
        cases = list(read(file, "report"))
    assert {case.name: case.measurements for case in cases if case.measurements} == {
        "Fast": (
            Measurement("latency", 0.1 + 0.2, "ms", Better.LOWER),
            Measurement("loss", 1e-300),
            Measurement("snr", 40, "", Better.HIGHER),
        )
    }
    return {f"{case.classname}.{case.name}": str(case.status) for case in cases}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((yes, "skipped") for yes in ("true", "TRUE", "1", "Yes")),
        *((no, "passed") for no in (None, "", "0", "on", "yess")),
    ],
)
def test_slow_tests_are_skipped_for_the_same_values_as_in_python(
    program: Path, tmp_path: Path, value: str | None, expected: str
) -> None:
    assert ran(program, tmp_path, {} if value is None else {"SKIP_SLOW_TESTS": value}) == {
        "Models.Slow": expected,
        "Models.Nightly": expected,
        "Models.Fast": "passed",
        "Device.Slow": expected,
    }


def test_tests_of_later_levels_are_skipped_as_in_python(program: Path, tmp_path: Path) -> None:
    cases = {"pull-request": "ss", "Main": "ps", "nightly": "pp", "release": "pp", "": "pp"}
    for level, letters in cases.items():
        ended = ran(program, tmp_path, {"NIGHTJAR_LEVEL": level})
        assert "".join(ended[name][0] for name in ("Models.Slow", "Models.Nightly")) == letters, level
    both = ran(program, tmp_path, {"NIGHTJAR_LEVEL": "nightly", "SKIP_SLOW_TESTS": "1"})
    assert {both["Models.Slow"], both["Models.Nightly"]} == {"skipped"}
    environment = {"PATH": os.environ["PATH"], "NIGHTJAR_LEVEL": "nightli"}
    failed = subprocess.run([program], env=environment, check=False, capture_output=True, text=True)
    assert (failed.returncode, "nightli is not a level" in failed.stderr) == (2, True)


def test_ctest_leaves_out_labeled_tests_and_other_labels_stay(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    module = f"-DCMAKE_MODULE_PATH={include_dir()}"
    configured = subprocess.run(
        [tool("cmake"), module, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert configured.returncode == 0, configured.stderr

    def listed(*options: str) -> set[str]:
        done = subprocess.run([tool("ctest"), "-N", *options], cwd=tmp_path, check=True, capture_output=True, text=True)
        return {name for name in ("fast", "slow", "both") if f": {name}\n" in done.stdout}

    assert listed() == {"fast", "slow", "both"}
    assert listed("-LE", "slow") == {"fast"}
    assert listed("-L", "gpu") == {"both"}
