"""Run every measurement in turn: `python -m benchmarks [--quick] [--json] [--database postgresql]`."""

from __future__ import annotations

import sys

import click

from benchmarks import (
    backlog,
    durable,
    first_write,
    goals,
    measured_series,
    memory,
    pull_request,
    requests,
    results_run,
    results_store,
    scale,
    webhooks,
)

ALL = (
    goals.main,
    webhooks.main,
    durable.main,
    first_write.main,
    backlog.main,
    pull_request.main,
    requests.main,
    memory.main,
    scale.main,
    results_store.main,
    measured_series.main,
    results_run.main,
)


def main() -> None:
    """Run each measurement with the same arguments; stop at the first one that fails."""
    for measurement in ALL:
        measurement(sys.argv[1:], standalone_mode=False)
        click.echo()


if __name__ == "__main__":
    try:
        main()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
