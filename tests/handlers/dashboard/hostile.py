"""A lab that puts markup into every text, and a check of the elements that a page may contain."""

from __future__ import annotations

from html.parser import HTMLParser

from nightjar_formats.columns.collect import collect
from nightjar_formats.limits import MAX_MEASUREMENT_NAME, MAX_UNIT
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import RunKey, TargetKey

from bot.core.page_paths import (
    history_path,
    lab_path,
    measurement_path,
    pull_path,
    query,
    run_file_path,
    run_path,
    view_path,
)
from bot.results.state import RunState
from bot.results.store.measurements.search import find_moves, store_moves
from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import HEXAGON, REPOSITORY, Sent, log_entry, sha
from tests.handlers.dashboard.stored_story import HOSTILE as PULL
from tests.results.test_report_safe import PIECES

GITHUB = "https://github.com/octocat/compiler"
ATTACK = '"><script>alert(1)</script><a href="https://evil.example.org">x</a> javascript:alert(1) {{ 7 * 7 }}'
TEXTS = (ATTACK, *(piece for piece in PIECES if piece.isprintable() and piece.strip()))
"""Names of tests; a lab cannot use characters that ingestion replaces."""
TESTS = tuple(f"{text}::{text}" for text in TEXTS)
TARGET = "/".join(HEXAGON)
NIGHTLY_RUNS = 5
LOG = "\n".join((*TEXTS, *TESTS)).encode()
LOGGED = RunKey(REPOSITORY, *HEXAGON, sha(NIGHTLY_RUNS - 1), "run")


def fill_with_hostile_text(store: ResultsStore) -> None:
    """Store runs of a lab that writes markup wherever it can, with failed, flaky, skipped, renamed and slow tests."""
    for number in range(NIGHTLY_RUNS):
        failing = TESTS[::3] if number > 1 else TESTS[3::6]
        upload = Sent(
            number,
            HEXAGON,
            ATTACK,
            TESTS,
            failed=dict(zip(failing, TEXTS[::3], strict=False)),
            flaky=frozenset(TESTS[1::3]) if number % 2 else frozenset(),
            skipped=frozenset(TESTS[2::3]),
            why_skipped=ATTACK,
            environment={text: text for text in TEXTS},
            log_url=f"https://evil.example.org/{ATTACK}",
            run_name="run",
            slow=1000.0,
        )
        numbers = (
            Measurement("latency", 10.0 + number, ATTACK.partition(" ")[0][:MAX_UNIT], Better.LOWER),
            Measurement("delegated_nodes", 12.0 - number, "nodes", Better.HIGHER),
            Measurement("m" * MAX_MEASUREMENT_NAME, -1.7e308 * (-1) ** number),
        )
        cases = (case._replace(measurements=numbers) for case in upload.cases())
        store.put(upload.run, collect(cases, lambda case: (case.nodeid, case.path)), artifacts=[log_entry(LOG)])
    refused = Sent(4, HEXAGON, ATTACK, (), run_name="run-2", state=RunState.REFUSED, reason=" ".join(TEXTS))
    store.put_state(refused.run)
    store.write(store_moves, store.read(find_moves, TargetKey(REPOSITORY, *HEXAGON)))


PAGES = (
    "/",
    view_path(REPOSITORY),
    view_path(REPOSITORY, target=TARGET),
    view_path(REPOSITORY, target=TARGET, suite=ATTACK),
    view_path(REPOSITORY, target=TARGET, suite=ATTACK, folder=f"{ATTACK}::"),
    view_path(REPOSITORY, status="failing", q='"><script>'),
    view_path(REPOSITORY, "compare", target=TARGET, base=sha(1), head=sha(4)),
    view_path(REPOSITORY, "compare", target=TARGET, q=ATTACK, suite=ATTACK),
    view_path(REPOSITORY, "fixes"),
    view_path(REPOSITORY, "flaky"),
    view_path(REPOSITORY, "flaky", q=ATTACK),
    view_path(REPOSITORY, "slow"),
    view_path(REPOSITORY, "skipped"),
    view_path(REPOSITORY, "nightly"),
    view_path(REPOSITORY, "measurements", target=TARGET),
    view_path(REPOSITORY, "measurements/map", target=TARGET, measurement="latency"),
    measurement_path(REPOSITORY, TESTS[0], "latency"),
    measurement_path(REPOSITORY, TESTS[0], "delegated_nodes", TARGET),
    measurement_path(REPOSITORY, TESTS[0], "m" * MAX_MEASUREMENT_NAME),
    view_path(REPOSITORY, "search", q=f"latency {TESTS[0].split()[0]}"),
    run_path(REPOSITORY, TARGET, sha(4), "run"),
    run_path(REPOSITORY, TARGET, sha(4), "run-2"),
    run_file_path(REPOSITORY, TARGET, sha(4), "run", "log.txt"),
    f"{run_file_path(REPOSITORY, TARGET, sha(4), 'run', 'log.txt')}{query({'test': ATTACK})}",
    history_path(REPOSITORY, TESTS[0], TARGET),
    history_path(REPOSITORY, TESTS[1]),
    lab_path(REPOSITORY, "example-lab"),
    pull_path(REPOSITORY, PULL),
)
"""Every page on which text from outside can appear."""


class PageMarkup(HTMLParser):
    """The elements of a page; `faults` are scripts, event handlers and links that are not ours or `known`."""

    def __init__(self, page: str, own_address: str = f"{GITHUB}/") -> None:
        super().__init__()
        self._known = own_address
        self.faults: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check an element."""
        attributes = dict(attrs)
        if tag in ("iframe", "object", "embed", "img", "base", "style") or (
            tag == "script" and not str(attributes.get("src")).startswith("/static/")
        ):
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            address = name in ("href", "src", "action", "formaction", "xlink:href")
            if name.startswith("on") or name == "style" or (address and not self._is_ours(value or "")):
                self.faults.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        """Collect the visible text."""
        self.text.append(data)

    def _is_ours(self, address: str) -> bool:
        is_relative = address.startswith(("/", "#", "?")) and not address.startswith(("//", "/\\"))
        return is_relative or address == GITHUB or address.startswith(self._known)
