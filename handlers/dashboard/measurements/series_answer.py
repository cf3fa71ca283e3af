"""The first sentence of the page of a measurement, and the next steps below it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.listing import counted
from bot.core.page_paths import commit_path, measurement_path, view_path
from bot.web.page_filters import short
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.series_model import ChangeKind
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import MOST_STEPS, Sentence, name_list, phrase, sentence

if TYPE_CHECKING:
    from handlers.dashboard.measurements.series_model import SeriesOnTarget, SeriesPage


def series_answer(page: SeriesPage, repository: str) -> Sentence:
    """Say on which target the measurement moved, by how much and since when; worse changes come first."""
    if not page.targets:
        return sentence([phrase(texts.NO_NIGHT)])
    moved = sorted((series for series in page.targets if series.lasting), key=_is_not_worse)
    first = moved[0] if moved else page.targets[0]
    names = {"name": page.measurement, "test": answer_texts.shortened(page.id)}
    links = {
        series.name: phrase(series.name, measurement_path(repository, page.id, page.measurement, series.name))
        for series in page.targets
    }
    move = first.lasting
    if move is not None:
        text = move.text.removeprefix(page.measurement).strip()
        return sentence(
            [
                phrase(texts.OF_TEST.format(**names)),
                links[first.name],
                phrase(texts.MOVED.format(change=text)),
                phrase(short(move.since), commit_path(repository, move.since)),
            ],
            [phrase(texts.AND_MOVED), *name_list([links[series.name] for series in moved[1:]], "target")]
            if len(moved) > 1
            else [],
        )
    newest = first.nights[0]
    if first.gone:
        return sentence(
            [
                phrase(texts.OF_TEST.format(**names)),
                links[first.name],
                phrase(texts.GONE.format(value=first.amount(newest.value))),
                phrase(short(newest.sha), commit_path(repository, newest.sha)),
            ]
        )
    nights = counted(len(first.nights), "night")
    if len(links) > 1:
        return sentence(
            [phrase(texts.STEADY_ON.format(**names, nights=nights)), *name_list(list(links.values()), "target")]
        )
    steady = texts.STEADY.format(value=first.amount(newest.value), nights=nights)
    return sentence([phrase(texts.OF_TEST.format(**names)), links[first.name], phrase(steady)])


def _is_not_worse(series: SeriesOnTarget) -> bool:
    return series.lasting is None or series.lasting.kind is not ChangeKind.WORSE


def series_steps(page: SeriesPage, repository: str, github: str) -> list[Sentence]:
    """Say what a maintainer can do about a change: read its commits, and see what moved with it."""
    moved = sorted((series for series in page.targets if series.lasting), key=_is_not_worse)
    steps = []
    if moved and moved[0].lasting:
        move = moved[0].lasting
        href = f"{github}/compare/{move.good}...{move.since}"
        steps.append([phrase(answer_texts.MAINTAINER), phrase(texts.READ_COMMITS, href)])
    for series in (moved or page.targets)[:1]:
        href = view_path(repository, "measurements", target=series.name)
        steps.append(
            [phrase(answer_texts.MAINTAINER), phrase(texts.SEE_TARGET.format(target=series.name), href)],
        )
    return steps[:MOST_STEPS]
