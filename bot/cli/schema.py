"""`nightjar schema`: print the JSON Schema of a file, for editors and other checkers."""

from __future__ import annotations

import click

from bot.app.load import app_model
from bot.cli.support import AS_WRITTEN
from bot.config.schema import repository_file_schema_text, schema_text


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar schema > app.schema.json
      nightjar schema --repository-file > nightjar.schema.json
    """,
)
@click.option("--repository-file", is_flag=True, help="The schema of a repository's own file, .github/nightjar.yaml.")
def schema(repository_file: bool) -> None:
    """Print the JSON Schema of app.yaml, with the keys of the installed features."""
    click.echo((repository_file_schema_text if repository_file else schema_text)(app_model()), nl=False)
