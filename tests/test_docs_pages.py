"""README and docs/ have an index, contents and links that work, and their generated parts match the code."""

from __future__ import annotations

import re
import textwrap
from collections import deque
from itertools import takewhile
from pathlib import Path

import click
import pytest
from nightjar_lab.main import kit

from bot.app.lab_lines import first_run_commands
from bot.app.load import parse_config
from bot.cli.main import cli
from scripts.docs import PAGES, TEXTS, documents
from scripts.pages import contents, headings, links, prose
from scripts.texts import texts_page

ROOT = Path(__file__).parents[1]
FILES = sorted(
    {
        path.relative_to(ROOT)
        for path in [
            *ROOT.glob("*.md"),
            *ROOT.glob("docs/**/*.md"),
            *ROOT.glob("benchmarks/*.md"),
            *ROOT.glob("handlers/*/guide.md"),
            ROOT / "tests/data/README.md",
        ]
    }
    - {TEXTS}
)


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_page_is_in_the_index() -> None:
    index = {target for _, target in links(read(Path("docs/README.md")))}
    assert {page.name for page in PAGES} <= index
    decisions = {path.name for path in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    assert decisions == {target for _, target in links(read(Path("docs/decisions/README.md")))}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page_begins_with_its_contents(page: Path) -> None:
    introduction, marker, rest = read(page).partition("<!-- generated: contents -->\n")
    assert marker, f"{page} has no markers for its contents"
    assert not any(line.startswith("## ") for line in introduction.splitlines())
    assert rest.startswith("- ["), f"{page}: run `make docs`"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_links_work(file: Path) -> None:
    broken = []
    for line, target in links(read(file)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / file).parent / name if name else ROOT / file
        if not path.exists():
            broken.append(f"{file}:{line}: there is no {name}")
        elif anchor and anchor not in {
            heading_anchor for *_, heading_anchor in headings(path.read_text(encoding="utf-8"))
        }:
            broken.append(f"{file}:{line}: {name or file} has no section #{anchor}")
    assert broken == []


def test_contents_link_the_anchors_that_github_gives_sections() -> None:
    text = "# A\n## The `b`, and C\n```\n## no\n```\n### Part\n## The `b`, and C\n"
    assert contents(text) == "- [The `b`, and C](#the-b-and-c)\n  - [Part](#part)\n- [The `b`, and C](#the-b-and-c-1)"


def test_generated_parts_match_the_code() -> None:
    for path, text in documents(ROOT).items():
        assert read(path) == text, f"{path}: run `make docs`"


def test_the_page_of_texts_has_contents_and_sections() -> None:
    page = texts_page(ROOT)
    assert "`handlers/merge/texts.py`" in page
    assert "- [Merge](#merge)" in page


def test_the_first_screen_of_the_readme_shows_what_it_is_and_how_to_run_it() -> None:
    readme = read(Path("README.md"))
    screen = "\n".join(readme.splitlines()[:30])
    assert screen.count("<picture>") == readme.count("<picture>") == 1
    for needed in ("pip install ./lab .", "nightjar serve", "make demo", "nightjar lab add"):
        assert needed in screen
    assert not re.search(r"^ *\|", readme, re.MULTILINE), "tables are in docs/"
    example = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert example is not None
    assert len(example[1].strip().splitlines()) == 2
    assert parse_config(textwrap.dedent(example[1]).encode(), "app.yaml").repository("octocat/compiler")


def test_the_readme_shows_the_commands_that_nightjar_lab_add_prints() -> None:
    shown = re.sub(r" +#.*", "", read(Path("README.md")).replace("\\\n", " "))
    commands = [re.sub(" +", " ", line) for line in re.findall(r"^\$ (.*)$", shown, re.MULTILINE)]
    printed = first_run_commands("https://ci.example.org", "…", "octocat/compiler", "example-lab", "board")
    assert commands[-4:] == [
        "nightjar lab add example-lab --target board",
        *[line.replace("'…'", "…") for line in printed],
    ]


OURS = re.compile(r"`((?:benchmarks|bot|deploy|docs|handlers|lab|sandbox|scripts|tests)/[^`\s<>*…:]*)[^`]*`")
CLASSES = re.compile(r"`([A-Z][a-z]+[A-Z]\w*)`")
PLACEHOLDERS = {"tests/data/results/FORMAT/"}
BUILT = {str(TEXTS)}
"""What `make docs` writes and git does not keep: a fresh checkout has no such file."""
PAGES_ABOUT_CODE = [
    Path(name) for name in ("docs/architecture.md", "tests/README.md", *map(str, ROOT.glob("docs/decisions/*.md")))
]


@pytest.mark.parametrize("file", [*FILES, Path("tests/README.md")], ids=str)
def test_the_paths_that_a_page_mentions_exist(file: Path) -> None:
    if file.name != "CHANGELOG.md":
        paths = {path for _, line in prose(read(file)) for path in OURS.findall(line)} - PLACEHOLDERS - BUILT
        assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`(nightjar(?:-lab)? [^`]*)`")
CALL = re.compile(r"(?:^|(?<!install)[\s/(])(nightjar(?:-lab)?) ([a-z][^|;#)&]*)")
OPTION = re.compile(r"\[?(--[a-z][a-z-]*)")
PROGRAMS: dict[str, click.Command] = {"nightjar": cli, "nightjar-lab": kit}


def unknown_words(line: str) -> list[str]:
    """Return the commands and options of ours that a line of a page has and the programs don't."""
    unknown: list[str] = []
    for program, arguments in CALL.findall(line):
        words = deque(arguments.split())
        command = PROGRAMS[program]
        context = click.Context(command)
        while isinstance(command, click.Group) and words and words[0][0].isalpha():
            name = words.popleft()
            known = command.get_command(context, name)
            if known is None:
                return [*unknown, f"{program} {name}"]
            command = known
        options = {option for parameter in command.get_params(context) for option in parameter.opts}
        options |= {option for parameter in command.params for option in parameter.secondary_opts}
        given = [option[1] for word in takewhile(lambda word: word != "--", words) if (option := OPTION.match(word))]
        unknown += [option for option in given if option not in options]
    return unknown


@pytest.mark.parametrize("file", [*FILES, Path("lab/README.md")], ids=str)
def test_the_commands_and_options_that_a_page_mentions_exist(file: Path) -> None:
    if file.name == "CHANGELOG.md":
        return
    text = read(file)
    lines = [line for block in BLOCK.findall(text) for line in re.sub(r"\\\n *", "", block).splitlines()]
    spans = SPAN.findall(BLOCK.sub("", text).replace("\n", " "))
    assert {line: words for line in (*lines, *spans) if (words := unknown_words(line))} == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$ nightjar serv --config app.yaml", ["nightjar serv"]),
        ("ExecStart=/opt/nightjar/bin/nightjar serve --conf app.yaml", ["--conf"]),
        ("nightjar-lab run --target board -- pytest --none", []),
    ],
)
def test_an_unknown_command_or_option_is_noticed(line: str, words: list[str]) -> None:
    assert unknown_words(line) == words


def test_the_classes_that_pages_about_the_code_mention_exist() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in ROOT.rglob("*.py")
        if not path.relative_to(ROOT).parts[0].startswith(".")
    )
    words = set(re.findall(r"\w+", code))
    mentioned = {name for file in PAGES_ABOUT_CODE for _, line in prose(read(file)) for name in CLASSES.findall(line)}
    assert mentioned - words == set()
