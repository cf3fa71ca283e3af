"""`nightjar results upload`: the lab kit's command, which finds in app.yaml here where to upload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from nightjar_formats.model import RunKey
from nightjar_formats.refused import Refused
from nightjar_lab.cli.options import DEFAULT_PREFIX
from nightjar_lab.cli.upload import UploadPlace, upload_files, upload_options, upload_place

from bot.app.load import load_config
from bot.cli.results import texts
from bot.cli.support import AS_WRITTEN, config_option, stopping_at_faults
from bot.core.errors import UserError
from bot.results.ingest.admission import lab_of
from bot.results.settings.results import Results
from handlers.results.config import LAB_RESULTS


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results upload --repository octocat/compiler --bucket device-results \\
          --lab example-lab --target adreno --sha "$SHA" --suite operators --exit-status "$STATUS" results.jsonl
      nightjar results upload ... --shard 1/4 --run-id "$BUILD-1" --compress gz te.xml relax.xml
    """,
)
@upload_options
@config_option
@click.pass_context
def upload(ctx: click.Context, /, **options: Any) -> None:
    """Upload the files of one run as `nightjar-lab upload` does; repository, bucket and prefix may be in app.yaml.

    Nothing is ever overwritten. After a failure, the same command with the same --run-id continues where it stopped.
    Repository, bucket and prefix come from app.yaml if it names exactly one. AWS_* variables say where S3 is and who
    you are. With NIGHTJAR_URL, the command waits until the bot has stored the run, and the exit status is 1 if the bot
    does not.
    """
    with stopping_at_faults():
        chosen = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
        upload_files(_destination(options, must_exist=chosen), options)


def _destination(options: dict[str, Any], *, must_exist: bool) -> UploadPlace:
    """Return where to upload, from the options and app.yaml. Raises `ConfigError` and `UserError`."""
    path: Path = options["config_path"]
    repository, bucket, prefix = options["repository"], options["bucket"], options["prefix"]
    reason, uploads_to_bot = texts.NO_CONFIG.format(path=path), False
    if must_exist or path.exists():
        configured = load_config(path).configured
        results_by_repository = dict(configured.with_feature(LAB_RESULTS))
        settings = configured.settings_if_installed(repository) if repository else None
        if repository and settings is not None and (results := settings.of(LAB_RESULTS)) is not None:
            results_by_repository[configured.canonical_name(repository)] = results
        has_results = any(entry.of(LAB_RESULTS) is not None for entry in configured.entries.values())
        chosen = list(_chosen(results_by_repository, repository))
        if len(chosen) == 1:
            ((repository, results),) = chosen
            _check_lab(results, repository, options)
            bucket, prefix = bucket or results.bucket, results.prefix if prefix is None else prefix
            uploads_to_bot = not bucket
        elif repository and has_results:
            # The bot reads no run of a repository that its app.yaml does not name.
            raise UserError(texts.OTHER_REPOSITORY.format(path=path, repository=repository))
        else:
            reason = (texts.SEVERAL_REPOSITORIES if has_results else texts.NO_RESULTS).format(path=path)
    for option, value in (("repository", repository), ("bucket", bucket)):
        if not value and not (option == "bucket" and uploads_to_bot):
            variable = f"NIGHTJAR_{option.upper()}"
            raise UserError(texts.MISSING_OPTION.format(option=f"--{option}", why=reason, variable=variable))
    if uploads_to_bot:
        return upload_place({**options, "repository": repository})
    return UploadPlace(repository, bucket, DEFAULT_PREFIX if prefix is None else prefix)


def _chosen(results_by_repository: dict[str, Results], repository: str | None) -> Iterator[tuple[str, Results]]:
    for name, results in results_by_repository.items():
        if repository is None or name.lower() == repository.lower():
            yield name, results


def _check_lab(results: Results, repository: str, options: dict[str, Any]) -> None:
    try:
        lab_of(RunKey(repository, options["lab"], options["target"], options["sha"], ""), results)
    except Refused as refused:
        raise UserError(str(refused)) from None
