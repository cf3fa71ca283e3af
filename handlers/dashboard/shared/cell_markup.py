"""Write cells as HTML. Each state has a character as well as a color, for readers who cannot tell colors apart.

Code writes them, not a template: a page has more than a thousand cells, and a template would spend most of the page's
time on them. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from bot.core.page_paths import path_of_run, runs_path
from bot.web.page_filters import short_html
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.cells import CellState, GridCell

SHAPES = {
    CellState.NEW: ("new", "▲"),
    CellState.STILL: ("still", "■"),
    CellState.UNJUDGED: ("unjudged", "□"),
    CellState.KNOWN: ("known", "◈"),
    CellState.FLAKY: ("flaky", "◆"),
    CellState.PASS: ("pass", "✓"),
    CellState.SKIPPED: ("skipped", "⤼"),
    CellState.INFRA: ("infra", "⊘"),
    CellState.PART: ("part", "◐"),
    CellState.MISSING: ("missing", "?"),
    CellState.WAIT: ("wait", "…"),
    CellState.ABSENT: ("none", "·"),
    CellState.NONE: ("none", "·"),
}
"""The CSS class and the character of each state."""


ONE_SIDED_SIGN = "≠"
"""Marks a cell with a failure that passes on the other one of a simulator and its device."""


def row_of_cells(repository: str, target: str, cells: Iterable[tuple[str, GridCell]], *, with_counts: bool) -> Markup:
    """Write the cells of a table row as `<td>` elements; each cell comes with its commit, `target` is LAB/TARGET."""
    runs = runs_path(repository, target)
    drawn = [
        f"<td>{_cell(runs, sha, cell, cell.words, cell.count if with_counts else '')}</td>\n" for sha, cell in cells
    ]
    return Markup("".join(drawn))  # noqa: S704 (words are constants and numbers)


def strip_of_cells(repository: str, target: str, cells: Iterable[tuple[str, GridCell]]) -> Markup:
    """Write cells as `<li>` elements, whose labels name the commits."""
    runs = runs_path(repository, target)
    drawn = [f"<li>{_cell(runs, sha, cell, f'{short_html(sha)}: {cell.words}')}</li>\n" for sha, cell in cells]
    return Markup("".join(drawn))  # noqa: S704 (escaped above; words are constants and numbers)


def legend(*, with_pairs: bool = False) -> Markup:
    """Write the legend of a grid as `<li>` elements; `with_pairs` for one with a simulator and its device."""
    signs = [(*SHAPES[CellState(state)], words) for state, words in texts.LEGEND.items()]
    if with_pairs:
        signs.append((SHAPES[CellState.STILL][0], ONE_SIDED_SIGN, texts.ONE_SIDED_LEGEND))
    drawn = (
        f'<li><span class="c {kind}" aria-hidden="true"><i>{shape}</i></span>{words}</li>'
        for kind, shape, words in signs
    )
    return Markup("".join(drawn))  # noqa: S704 (constants)


def _cell(runs: str, sha: str, cell: GridCell, label: str, count: str = "") -> str:
    """Write a cell; `runs` is the path of the runs of its target.

    `label` is HTML; a path is quoted, so that it has no character that HTML needs to escape.
    """
    kind, shape = SHAPES[cell.state]
    if cell.device_only or cell.simulator_only:
        shape += ONE_SIDED_SIGN
    if not cell.run_id:
        return f'<span class="c {kind}" role="img" aria-label="{label}"><i>{shape}</i></span>'
    href = path_of_run(runs, sha, cell.run_id)
    return f'<a class="c {kind}" href="{href}" aria-label="{label}"><i>{shape}</i>{count}</a>'
