"""app.yaml's JSON schema, which editors complete and check from."""

from __future__ import annotations

import json

from bot.config.model import Config

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "app.yaml, the configuration of Nightjar"


def schema_text() -> str:
    """Return the schema of app.yaml (https://json-schema.org/draft/2020-12) as a JSON file's text."""
    schema = {"$schema": DIALECT, **Config.model_json_schema(), "title": TITLE}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
