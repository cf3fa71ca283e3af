"""`nightjar schema` prints the schemas that docs/ has."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bot.cli.schema import schema
from tests.running import ROOT


@pytest.mark.parametrize(
    ("options", "name"), [([], "app.schema.json"), (["--repository-file"], "nightjar.schema.json")]
)
def test_it_prints_the_schema_that_docs_has(options: list[str], name: str) -> None:
    finished = CliRunner().invoke(schema, options)
    assert finished.stdout == (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert json.loads(finished.stdout)["$id"] == f"urn:nightjar:{name}"
