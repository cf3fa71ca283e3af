import re
from pathlib import Path

import pytest

from bot.app.load import app_model, parse_config
from bot.config import ConfigError
from bot.config.docs import documents, keys
from bot.config.shared import file_model
from tests.settings import MODEL, own_file

ROOT = Path(__file__).parents[2]


def test_the_committed_schema_and_tables_match_the_code() -> None:
    for path, text in documents(ROOT, app_model()).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"


def test_an_outdated_table_is_detected(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for path, text in documents(ROOT, app_model()).items():
        (tmp_path / path).write_text(text.replace("Names that address the bot", "Names"), encoding="utf-8")
    differ = [
        path for path, text in documents(tmp_path, app_model()).items() if (tmp_path / path).read_text("utf-8") != text
    ]
    assert sorted(map(str, differ)) == ["docs/app.schema.json", "docs/configuration.md"]


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


def test_the_sample_has_every_key_with_a_comment_at_its_first_use() -> None:
    lines = (ROOT / "app.yaml").read_text(encoding="utf-8").splitlines()
    for path, _, _ in keys(app_model()):
        name = path.rpartition(".")[2]
        written = [n for n, line in enumerate(lines) if re.match(rf"\s*(- )?{name}:", line)]
        assert written, f"{path} is not in the sample"
        assert lines[written[0] - 1].lstrip().startswith("#"), f"{path} has no comment above it"


def test_the_errors_in_the_guide_are_those_of_its_example_file() -> None:
    guide = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    example = re.search(r"Given\n\n```yaml\n(.*?)```\n\nit says\n\n```\n(.*?)\n```", guide, re.DOTALL)
    assert example is not None
    with pytest.raises(ConfigError) as caught:
        parse_config(example[1].encode(), "app.yaml")
    assert str(caught.value) == example[2]
