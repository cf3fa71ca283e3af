"""`nightjar-lab`: the commands that a lab runs next to its devices.

Exit status: 0 done, 1 failed, 2 bad usage. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from nightjar_lab.cli.lazy import LazyGroup

LAZY = {
    "include-dir": (
        "nightjar_lab.cli.include_dir:include_dir",
        "Print the folder of slow.h and measure.h for GoogleTest.",
    ),
    "agent": ("nightjar_lab.cli.agent:agent", "Claim requested tests, run them, upload the results."),
    "check": ("nightjar_lab.cli.check:check", "Check result files before you upload them."),
    "suite": ("nightjar_lab.suite.cli:suite", "Test a compiler or a backend as a black box."),
    "ci": ("nightjar_lab.cli.ci:ci", "Ask the bot what CI should run."),
    "doctor": ("nightjar_lab.cli.doctor:doctor", "Check everything that a lab depends on."),
    "filter": ("nightjar_lab.cli.filter:filter_tests", "Print the arguments that select the tests of a job."),
    "ids": ("nightjar_lab.cli.ids:ids", "List the IDs of tests as the bot names them."),
    "init": ("nightjar_lab.cli.init:init", "Write the files that a lab's CI needs."),
    "nightly": ("nightjar_lab.cli.nightly:nightly", "Print the commit to test."),
    "report": ("nightjar_lab.cli.report:report", "Write which tests of a CI job ran, which did not, and why."),
    "run": ("nightjar_lab.cli.run:run", "Run tests and upload their results."),
    "upload": ("nightjar_lab.cli.upload:upload", "Upload a run's files, then its manifest."),
}


@click.group(
    cls=LazyGroup, lazy=LAZY, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="nightjar-lab", prog_name="nightjar-lab")
def kit() -> None:
    """Test on hardware for a project that uses Nightjar: check and upload results, run requested tests.

    NIGHTJAR_REPOSITORY, NIGHTJAR_LAB and NIGHTJAR_BUCKET say for which repository, as which lab, and where to.
    NIGHTJAR_URL is the bot's address, and NIGHTJAR_LAB_TOKEN the lab's token. Options of the same name win.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command of this process."""
    kit(args=arguments, prog_name="nightjar-lab")
