"""The JSON schemas of app.yaml and of a repository's own file, for completion and checks in editors."""

from __future__ import annotations

import json

from pydantic import BaseModel

from bot.config.assemble import repository_model
from bot.config.model import Config
from bot.config.shared import PATH, file_model

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID, REPOSITORY_FILE_ID = "urn:nightjar:app.schema.json", "urn:nightjar:nightjar.schema.json"
"""Names, not addresses: the server of one is whoever owns its host."""
TITLE = "app.yaml, the configuration of Nightjar"
REPOSITORY_FILE_TITLE = f"{PATH}, a repository's own settings for Nightjar"


def schema_text(model: type[Config]) -> str:
    """Return the schema of app.yaml (https://json-schema.org/draft/2020-12) as a JSON file's text."""
    return _text(model, ID, TITLE)


def repository_file_schema_text(model: type[Config]) -> str:
    """Return the schema of a repository's own file as a JSON file's text; `model` is that of app.yaml."""
    return _text(file_model(repository_model(model)), REPOSITORY_FILE_ID, REPOSITORY_FILE_TITLE)


def _text(model: type[BaseModel], name: str, title: str) -> str:
    schema = {"$schema": DIALECT, "$id": name, **model.model_json_schema(), "title": title}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
