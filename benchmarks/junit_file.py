"""Write a JUnit file like pytest's, of any size and with the same content each time.

Two in a hundred tests fail, each with a different traceback of three kilobytes; 28 are skipped.
"""

from __future__ import annotations

import random
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

SEED = 20_261_120
PER_FILE = 200
FAILED, SKIPPED = 0.02, 0.30
OPERATORS = (
    "conv2d",
    "dense",
    "softmax",
    "relu",
    "pool2d",
    "batch_norm",
    "reshape",
    "transpose",
    "gather",
    "attention",
)
HEAD = (
    '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0" '
    'failures="0" skipped="0" tests="0" time="1.0" timestamp="2026-11-20T05:10:00+00:00" hostname="device">'
)
FRAMES = "\n".join(
    f"python/compiler/relax/frontend/lower_{number}.py:{number * 7}: in lower_operator\n"
    f"    executor.invoke(inputs[{number}], device=device, target=target)"
    for number in range(27)
)


def path_of(number: int) -> str:
    """Return the path of a test file in the repository."""
    return f"tests/python/relax/test_{OPERATORS[number % len(OPERATORS)]}_{number}.py"


def write(path: Path, cases: int, run: int = 0) -> list[str]:
    """Write a file with `cases` cases; return the repository's list of files. Each run has the same names."""
    chance = random.Random(SEED + run)
    files = [path_of(number) for number in range(cases // PER_FILE + 1)]
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for number in range(cases):
            file.write(_case(chance, files[number // PER_FILE], number))
        file.write("</testsuite></testsuites>")
    return files


def _case(chance: random.Random, path: str, number: int) -> str:
    classname = path.removesuffix(".py").replace("/", ".")
    name = f"test_lowering_{number % PER_FILE}[llvm-float{16 * (1 + number % 2)}-{number % 7}x{number % 224}]"
    seconds = chance.lognormvariate(-4, 1.5)
    begin = f'<testcase classname={quoteattr(classname)} name={quoteattr(name)} time="{seconds:.3f}"'
    ends = chance.random()
    if ends < FAILED:
        message = f"AssertionError: Arrays are not almost equal to 7 decimals: mismatch of {number}"
        text = f"{FRAMES}\nE   AssertionError: value {chance.random()} of element {number}"
        return f"{begin}><failure message={quoteattr(message)}>{escape(text)}</failure></testcase>"
    if ends < SKIPPED:
        reason = f"{path}:{number % 500}: need gpu"
        return f'{begin}><skipped type="pytest.skip" message="need gpu">{escape(reason)}</skipped></testcase>'
    return begin + " />"
