"""Read the reports of a folder and print the results: `python reading.py FOLDER [WITHOUT…]`.

The modules named after the folder cannot be imported, as in a lab. This file needs only nightjar_formats, so any Python
can run it.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

BROKEN = (0.5, 0.97)
"""Shares of a report that are read as if the report was cut off."""


def read_all(folder: Path) -> dict[str, list[str]]:
    """Return the cases of each report below a folder, complete and truncated, and the result of a check."""
    from nightjar_formats.readers.decoding.inflate import inflated
    from nightjar_formats.runs.offline_check import check_files

    cases_of_report = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".txt", ".md")):
        name = path.relative_to(folder).as_posix()
        cases_of_report[name] = _cases(path.read_bytes(), name)
        with path.open("rb") as file:
            content = inflated(file, name).read()
        for share in BROKEN:
            cases_of_report[f"{name} {share}"] = _cases(content[: int(len(content) * share)], name)
        cases_of_report[name + " check"] = [json.dumps(check_files([path]).as_json(), sort_keys=True)]
    return cases_of_report


def _cases(content: bytes, name: str) -> list[str]:
    from nightjar_formats.readers import read
    from nightjar_formats.refused import Refused

    lines = []
    try:
        for case in read(io.BytesIO(content), name):
            lines.append(repr([str(field) if isinstance(field, str) else field for field in case]))
    except Refused as refused:
        # The parser's own text follows the colon.
        lines.append("{}: {}".format(type(refused).__name__, str(refused).partition("is not JSON")[0]))
    return lines


def engines() -> list[str]:
    """Return which implementations are used."""
    import ijson  # type: ignore[import-untyped]
    from nightjar_formats.patterns import Pattern

    return [Pattern.__name__, ijson.backend]


def main() -> None:
    """Print the results as JSON."""
    for module in sys.argv[2:]:
        sys.modules[module] = None  # type: ignore[assignment]
    json.dump({"engines": engines(), "reports": read_all(Path(sys.argv[1]))}, sys.stdout)


if __name__ == "__main__":
    main()
