"""`python -m tests.signal --seeds 1000`: simulate labs, and print how much of the bot's reports is right.

With `--write`, update the tables in docs/signal.md.
"""

from __future__ import annotations

import tempfile
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks.machine import described
from bot.core.docs import replace_block
from tests.signal.measure import measure
from tests.signal.score import Score
from tests.signal.tables import delays, tables

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "measured"
WIDTH = 115
MEASURED = (
    "{labs:,} labs with {runs:,} runs, measured on {date} in {seconds:,.0f} s of CPU time on one core ({machine}):"
)
COMMAND = "```sh\npython -m tests.signal --seeds {labs} --write\n```"
SENT = (
    "There were {messages:,} messages. {delays} A run took {requests:.1f} requests to GitHub and {checks:.1f} check "
    "runs on average."
)
AT_ONCE = "Every right report came with the run that made it possible."
LATER = (
    "Of the right reports {at_once:.1%} came with the run that made them possible, and the last one {latest} runs "
    "later."
)


@click.command()
@click.option("--seeds", default=1000, show_default=True, help="How many labs, from seed 0 on.")
@click.option("--write", is_flag=True, help="Write the tables into docs/signal.md.")
def main(seeds: int, write: bool) -> None:
    """Simulate labs, and print the precision and the recall of the bot's reports."""
    began = time.process_time()
    score = measure(range(seeds))
    text = page(score, time.process_time() - began)
    click.echo(text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


def page(score: Score, seconds: float) -> str:
    """Return the page: what was measured, on which machine, when and how, followed by the tables."""
    with tempfile.TemporaryDirectory() as folder:
        machine = described(Path(folder)).partition(", fdatasync")[0]
    reported = delays(score.failures.values())
    measured = MEASURED.format(
        labs=score.labs,
        runs=score.runs,
        date=datetime.now(UTC).date(),
        seconds=seconds,
        machine=machine,
    )
    later = LATER.format(at_once=reported.count(0) / max(len(reported), 1), latest=max(reported, default=0))
    sent = SENT.format(
        messages=score.messages,
        delays=later if any(reported) else AT_ONCE,
        requests=score.requests / max(score.runs, 1),
        checks=score.rechecked / max(score.runs, 1),
    )
    texts = (_wrapped(measured), COMMAND.format(labs=score.labs), _wrapped(sent), tables(score))
    return "\n\n".join(texts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


if __name__ == "__main__":
    main()
