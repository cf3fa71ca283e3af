"""The first sentence of the page of a measurement, and its next steps, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bot.web.answers import AnswerPart
from handlers.dashboard.measurements.series_answer import series_answer, series_steps
from handlers.dashboard.measurements.series_model import ChangeKind, SeriesMove, SeriesNight, SeriesOnTarget, SeriesPage

MOMENT = datetime(2026, 11, 20, 5, 30, tzinfo=UTC)
GITHUB = "https://github.com/octocat/compiler"
REPOSITORY = "octocat/compiler"
GOOD, SINCE = "a" * 40, "b" * 40
PAGE = "/r/octocat/compiler"


def move(kind: ChangeKind = ChangeKind.WORSE, ended_in: str = "") -> SeriesMove:
    return SeriesMove(
        since=SINCE,
        since_at=MOMENT,
        good=GOOD,
        confirmed_in=SINCE,
        confirmed_at=MOMENT,
        level_before=1.0,
        level_after=2.0,
        low=1.9,
        high=2.1,
        ended_in=ended_in,
        kind=kind,
        text="latency 1 -> 2 ms",
    )


def series(target: str, *moves: SeriesMove, **changes: Any) -> SeriesOnTarget:
    nights = [SeriesNight(sha=sha, committed_at=MOMENT, value=value) for sha, value in ((SINCE, 2.0), (GOOD, 1.0))]
    fields: dict[str, Any] = {
        "lab": "example-lab",
        "target": target,
        "suite": "operators",
        "unit": "ms",
        "better": "lower",
        "exact": False,
        "level": None,
        "expected_low": None,
        "expected_high": None,
        "moves": list(moves),
        "nights": nights,
        "earlier_unit": False,
        "gone": False,
        **changes,
    }
    return SeriesOnTarget(**fields)


def page(*targets: SeriesOnTarget) -> SeriesPage:
    return SeriesPage(id="conv", measurement="latency", other_names=[], targets=list(targets), more_targets=[])


def markdown(parts: Sequence[AnswerPart]) -> str:
    return "".join(f"[{part.text}]({part.href})" if part.href else part.text for part in parts)


def answer(*targets: SeriesOnTarget) -> str:
    return markdown(series_answer(page(*targets), REPOSITORY))


def link(target: str) -> str:
    return (
        f"[example-lab/{target}]({PAGE}/measurements/series?id=conv&measurement=latency&target=example-lab%2F{target})"
    )


def test_the_first_sentence() -> None:
    assert answer() == "No nightly commit has this measurement."
    since = f"[bbbbbbb]({PAGE}/commits/{SINCE})"
    assert answer(series("adreno", move())) == f"latency of conv on {link('adreno')}: 1 -> 2 ms, since {since}."
    better = series("adreno", move(ChangeKind.BETTER))
    assert answer(series("steady"), better, series("mali", move())) == (
        f"latency of conv on {link('mali')}: 1 -> 2 ms, since {since}; it also moved on {link('adreno')}."
    )
    gone = series("adreno", move(ended_in=SINCE), gone=True)
    assert answer(gone) == (
        f"latency of conv on {link('adreno')}: nothing was measured in the newest nights; the last value is 2 ms, at "
        f"{since}."
    )
    assert answer(series("adreno")) == f"latency of conv on {link('adreno')}: 2 ms, no change in 2 nights."
    assert answer(series("adreno"), series("mali")) == (
        f"latency of conv did not change in 2 nights on {link('adreno')}, {link('mali')}."
    )


def test_the_next_steps() -> None:
    def steps(*targets: SeriesOnTarget) -> list[str]:
        return [markdown(step) for step in series_steps(page(*targets), REPOSITORY, GITHUB)]

    def see(target: str) -> str:
        href = f"{PAGE}/measurements?target=example-lab%2F{target}"
        return f"Maintainer: [see what else example-lab/{target} measures]({href})"

    read = f"Maintainer: [read the commits with which it changed]({GITHUB}/compare/{GOOD}...{SINCE})"
    assert steps() == []
    assert steps(series("adreno"), series("mali", move())) == [read, see("mali")]
    assert steps(series("adreno"), series("mali")) == [see("adreno")]
