"""README and docs/ are readable: an index, contents, short lines, and links that work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.app.load import parse_config
from scripts.docs import PAGES, documents
from scripts.pages import contents, headings, links, prose

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path.relative_to(ROOT)
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        ROOT / "tests/data/README.md",
    ]
)
MOST_COLUMNS = 120
MOST_LINES = 30
FREE = ("|", "![")
"""Beginnings of lines that may be longer: tables and pictures."""
ADDRESS = re.compile(r"\]\(https://[^)]*\)")
"""Addresses do not count."""


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_page_is_in_the_index() -> None:
    index = {target for _, target in links(read(Path("docs/README.md")))}
    assert {page.name for page in PAGES} <= index
    decisions = {path.name for path in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    assert decisions == {target for _, target in links(read(Path("docs/decisions/README.md")))}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page_begins_with_its_contents(page: Path) -> None:
    before, found, after = read(page).partition("<!-- generated: contents -->\n")
    assert found, f"{page} has no markers for its contents"
    assert not any(line.startswith("## ") for line in before.splitlines())
    assert after.startswith("- ["), f"{page}: run `make docs`"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_links_work(file: Path) -> None:
    wrong = []
    for line, target in links(read(file)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / file).parent / name if name else ROOT / file
        if not path.exists():
            wrong.append(f"{file}:{line}: there is no {name}")
        elif anchor and anchor not in {one for *_, one in headings(path.read_text(encoding="utf-8"))}:
            wrong.append(f"{file}:{line}: {name or file} has no section #{anchor}")
    assert wrong == []


@pytest.mark.parametrize("file", [file for file in FILES if file.parts[0] not in ("benchmarks", "tests")], ids=str)
def test_lines_are_short(file: Path) -> None:
    lines = [(f"{file}:{number}", line) for number, line in prose(read(file)) if not line.startswith(FREE)]
    assert [place for place, line in lines if len(ADDRESS.sub("", line)) > MOST_COLUMNS] == []


@pytest.mark.parametrize("file", [Path("README.md"), *PAGES], ids=str)
def test_a_section_fits_on_a_screen(file: Path) -> None:
    """Tables, code and the contents do not count."""
    sections: dict[str, int] = {}
    section = ""
    for _, line in prose(read(file).partition("<!-- end of generated: contents -->")[2] or read(file)):
        if line.startswith("#"):
            section = line
        elif line.strip() and not line.startswith("|"):
            sections[section] = sections.get(section, 0) + 1
    assert {name: lines for name, lines in sections.items() if lines > MOST_LINES} == {}


def test_contents_link_the_anchors_that_github_gives_sections() -> None:
    text = "# A\n## The `b`, and C\n```\n## no\n```\n### Part\n## The `b`, and C\n"
    assert contents(text) == "- [The `b`, and C](#the-b-and-c)\n  - [Part](#part)\n- [The `b`, and C](#the-b-and-c-1)"


def test_generated_parts_match_the_code() -> None:
    for path, text in documents(ROOT).items():
        assert read(path) == text, f"{path}: run `make docs`"


def test_the_first_screen_of_the_readme_shows_what_it_is_and_how_to_run_it() -> None:
    screen = "\n".join(read(Path("README.md")).splitlines()[:30])
    shown = re.search(r"```yaml\n(.*?)```", screen, re.DOTALL)
    assert shown is not None
    assert len(shown[1].splitlines()) == 2
    assert parse_config(shown[1].encode(), "app.yaml").repository("octocat/compiler")
    for needed in ("![", "make demo", "make test", "pip install ./lab .", "nightjar serve --config app.yaml"):
        assert needed in screen


def test_every_line_of_the_architecture_page_and_its_tables_fits_a_screen() -> None:
    assert [line for line in read(Path("docs/architecture.md")).splitlines() if len(line) > MOST_COLUMNS] == []
