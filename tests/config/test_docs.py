import re
from collections import Counter
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from bot.app.load import app_model, parse_config
from bot.config.assemble import config_with
from bot.config.docs import documents, keys
from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.sample import sample_text
from bot.config.shared import file_model
from tests.settings import MODEL, own_file

ROOT = Path(__file__).parents[2]


def test_the_committed_schema_and_tables_match_the_code() -> None:
    for path, text in documents(ROOT, app_model()).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"


def test_each_feature_with_keys_has_a_page_with_all_of_them_and_their_part_of_the_sample() -> None:
    pages = {path: text for path, text in documents(ROOT, app_model()).items() if path.parent.name == "configuration"}
    assert {ROOT / path for path in pages} == set(ROOT.glob("docs/configuration/*.md"))
    guide = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    for path, _, _ in keys(app_model()):
        if path.startswith("repositories.OWNER/NAME."):
            name, _, below = path.removeprefix("repositories.OWNER/NAME.").partition(".")
            page = pages.get(Path(f"docs/configuration/{name.removesuffix('[]')}.md"), guide)
            assert f"`{name}.{below}`" in page if below else f"`{path}`" in guide, path
    sample = (ROOT / "app.yaml").read_text(encoding="utf-8")
    for page in pages.values():
        part = page.partition("  octocat/compiler:\n")[2].partition("```")[0]
        assert part.strip()
        assert part in sample, page


def test_an_outdated_table_is_detected(tmp_path: Path) -> None:
    (tmp_path / "docs/configuration").mkdir(parents=True)
    for path, text in documents(ROOT, app_model()).items():
        (tmp_path / path).write_text(text.replace("Names that address the bot", "Names"), encoding="utf-8")
    differ = [
        path for path, text in documents(tmp_path, app_model()).items() if (tmp_path / path).read_text("utf-8") != text
    ]
    assert sorted(map(str, differ)) == ["app.yaml", "docs/app.schema.json", "docs/configuration.md"]


def test_the_file_in_the_guide_is_valid_and_has_every_possible_key() -> None:
    guide = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    example = re.search(r"nightjar\.schema\.json\n(.*?)```", guide, re.DOTALL)
    assert example is not None
    assert own_file(example[1]).model_fields_set
    table = guide.partition("generated: repository-file -->")[2].partition("<!-- end")[0]
    assert [line.split("`")[1] for line in table.splitlines() if "`" in line] == [
        path for path, _, _ in keys(file_model(MODEL))
    ]


def test_every_key_is_described_with_an_example() -> None:
    for path, field, _ in keys(app_model()):
        assert field.description, path
        assert field.examples, path


def test_the_sample_has_every_key_once_and_is_valid() -> None:
    sample = (ROOT / "app.yaml").read_text(encoding="utf-8")
    assert parse_config(sample.encode(), "app.yaml").repository("octocat/compiler")
    in_sample = Counter(re.findall(r"^ *(?:# )?(?:- )?([a-z_]+):(?: .*)?$", sample, re.MULTILINE))
    names = Counter(path.rpartition(".")[2] for path, _, _ in keys(app_model()))
    names["cc_reviewers"] += 1  # it is the example of `defaults`, too
    assert {name: in_sample[name] for name in names} == names


class Quick(Keys):
    """A feature without keys."""


class Shell(Keys):
    """A command."""

    command: str = Field(description="What runs. It is not quoted.", examples=["make all"])
    shell: bool = Field(default=False, description="Whether a shell runs it.", examples=[True])


class Builds(Keys):
    """Builds from a workflow or from commands."""

    workflow: str | None = Field(default=None, description="The workflow. It must exist.", examples=["CI"])
    commands: tuple[Shell, ...] = Field(default=(), description="The commands.", examples=[[{"command": "make"}]])
    hours: tuple[int, ...] = Field(default=(3, 15), description="The hours.", examples=[[4]])

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.workflow and self.commands:
            raise ValueError("two sources")
        return self


def test_the_sample_is_made_from_descriptions_defaults_and_examples() -> None:
    builds = ConfigKey(
        "builds", Builds, description="Builds it. Then it is built.", example={"workflow": "CI"}, position=1
    )
    on = ConfigKey("quick", Quick, description="Is on.", on_by_default=True, example=False, position=2)
    sample = sample_text(config_with([builds, on]))
    entry = sample.partition("  octocat/compiler:\n")[2].partition("    # Access to")[0]
    assert (
        entry
        == """\
    # Is on.
    quick: true

    # All features below are off unless you add their key.

    # Builds it.
    builds:
      # The workflow.
      workflow: CI
      # The commands.
      # commands:
        # What runs.
        # - command: make all
          # Whether a shell runs it.
          # shell: false
      # The hours.
      hours: [3, 15]

"""
    )
    assert "  # An empty entry enables quick.\n  octocat/hello-world:\n" in sample
