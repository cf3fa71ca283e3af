"""`/r/{owner}/{repo}/compare/targets`: two targets at one commit, such as a simulator and its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from nightjar_formats.model import TargetKey
from pydantic import BaseModel, Field, StringConstraints

from bot.core.listing import counted
from bot.core.page_paths import view_path
from bot.results.compare.paired import paired_targets
from bot.results.store.lists.target_pairs import PairClass, PairFilter, compare_targets
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.compare.rows import ComparisonCommit
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import Sentence, phrase, sentence
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import TARGET_PATTERN, settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig

ROWS = 100
"""Tests on one page of the list."""


class TargetsQuery(BaseModel, extra="forbid"):
    """Which targets to compare, and which tests to list. All members are optional."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="The target, as LAB/TARGET; default: the first device that another target simulates."
    )
    against: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="The other target, as LAB/TARGET; default: the simulator or the device of `target`."
    )
    status: PairClass | None = Field(default=None, description="Only tests with this difference.")
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests whose ID contains this text, ignoring case."
    )
    page: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="Which page of the list.")


class DifferingTest(BaseModel, extra="forbid"):
    """A test whose results differ between the targets, or which fails on both."""

    status: PairClass
    suite: str
    test: str


class TargetsPage(BaseModel, extra="forbid"):
    """Two targets and the tests whose results differ: at the newest nightly commit that both tested, if there is one.

    `fails-here` passes on `against` and fails on `target`; `fails-there` is the reverse. `only-there` runs on `against`
    alone, `only-here` on `target` alone.
    """

    answer: list[AnswerPart] = Field(default=[], description="How many tests differ, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    takes_results: bool
    targets: list[str] = Field(description="All targets, as LAB/TARGET.")
    target: str | None
    against: str | None
    simulator: str | None = Field(description="Which of the two simulates the other; null if none does.")
    commit: ComparisonCommit | None = Field(default=None, description="The commit of `target`; null without results.")
    against_commit: ComparisonCommit | None = Field(default=None, description="The commit of `against`.")
    counts: dict[PairClass, int] = {}
    tests: list[DifferingTest] = []
    matching: int = 0
    pages: int = 1


def targets_page(parts: DashboardParts) -> Page:
    """Return the page that compares two targets."""

    async def load(request: PageRequest) -> TargetsPage:
        name, settings = await settings_and_target(parts, request)
        query: TargetsQuery = request.query
        target, against = chosen_targets(settings, query)
        page = TargetsPage(
            takes_results=settings.of(LAB_RESULTS) is not None,
            targets=configured_targets(settings),
            target=target,
            against=against,
            simulator=simulator_of(settings, target, against),
        )
        if target is None or against is None:
            return page
        rows = request.most_rows(ROWS)
        choice = PairFilter(query.status, (query.q or "").lower(), (query.page - 1) * ROWS, rows)
        key, other_key = (TargetKey(name, *full_name.split("/", 1)) for full_name in (target, against))
        compared = await request.pages.run(parts.results.store.read, compare_targets, key, other_key, choice)
        if compared is None:
            return page
        page = page.model_copy(
            update={
                "commit": ComparisonCommit.from_store(compared.commit),
                "against_commit": ComparisonCommit.from_store(compared.other_commit),
                "counts": dict(compared.counts),
                "tests": [DifferingTest(status=test.kind, suite=test.suite, test=test.test) for test in compared.tests],
                "matching": compared.matching,
                "pages": max(1, -(-compared.matching // ROWS)),
            }
        )
        return page.model_copy(update={"answer": targets_answer(page), "next_steps": targets_steps(page, name)})

    return Page(
        path="/r/{owner}/{repo}/compare/targets",
        api_path="/api/v1/repos/{owner}/{repo}/compare/targets",
        summary="Which tests pass on one of two targets only, such as a simulator and its device",
        template="compare_targets.html",
        model=TargetsPage,
        query=TargetsQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
    )


def chosen_targets(settings: RepositoryConfig, query: TargetsQuery) -> tuple[str | None, str | None]:
    """Return the targets to compare: those of the query, and a device with its simulator for what it leaves out."""
    results, names = settings.of(LAB_RESULTS), configured_targets(settings)
    device = next((name for name in names if paired_targets(results, name).simulators), None)
    target = query.target or device or next(iter(names), None)
    if target is None or query.against:
        return target, query.against
    paired = paired_targets(results, target)
    candidates = [*([paired.device] if paired.device else sorted(paired.simulators)), *names]
    return target, next((name for name in candidates if name != target), None)


def simulator_of(settings: RepositoryConfig, target: str | None, against: str | None) -> str | None:
    """Return which of two targets simulates the other, None if none does."""
    if target is None or against is None:
        return None
    paired = paired_targets(settings.of(LAB_RESULTS), target)
    return target if paired.device == against else against if against in paired.simulators else None


def _named(page: TargetsPage, target: str | None) -> str:
    if page.simulator is None:
        return str(target)
    return (texts.THE_SIMULATOR if page.simulator == target else texts.THE_DEVICE).format(target=target)


def targets_answer(page: TargetsPage) -> Sentence:
    """Say how many tests pass on one target only, and how many run on the simulator only."""
    name, other_name = _named(page, page.target), _named(page, page.against)
    clauses = [
        (PairClass.FAILS_HERE, texts.ENDS_DIFFERENTLY, other_name, name),
        (PairClass.FAILS_THERE, texts.ENDS_DIFFERENTLY, name, other_name),
        (PairClass.ONLY_THERE, texts.RUN_ON_ONE, other_name, name),
        (PairClass.ONLY_HERE, texts.RUN_ON_ONE, name, other_name),
    ]
    counts_of_kinds = [
        (words[0] if count == 1 else words[1]).format(tests=counted(count, "test"), first=first, second=second)
        for kind, words, first, second in clauses
        if (count := page.counts[kind])
    ]
    return sentence([phrase("; ".join(counts_of_kinds) or texts.TARGETS_AGREE.format(first=name, second=other_name))])


def targets_steps(page: TargetsPage, repository: str) -> list[Sentence]:
    """Say what the device's lab can do about tests that only the simulator runs."""
    device = page.target if page.simulator == page.against else page.against
    kind = PairClass.ONLY_THERE if device == page.target else PairClass.ONLY_HERE
    if page.simulator is None or not page.counts[kind]:
        return []
    path = view_path(repository, "compare/targets", target=page.target, against=page.against, status=kind.value)
    words = texts.RUN_SIMULATED.format(tests=counted(page.counts[kind], "test"))
    return [[phrase(texts.LAB), phrase(words, path)]]


def _table(page: TargetsPage) -> CsvTable:
    columns = ("status", "suite", "test")
    return CsvTable.of(columns, page.tests)
