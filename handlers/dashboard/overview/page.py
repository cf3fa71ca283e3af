"""`/`: the repositories that the reader may see, the last result of each target, and how far branches are behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import sqlalchemy as sa
from aiohttp import web
from markupsafe import Markup
from nightjar_formats.model import TargetKey
from pydantic import BaseModel, Field, StringConstraints

from bot.core.aliases import Aliases
from bot.core.errors import TryAgain
from bot.core.listing import counted
from bot.core.page_paths import history_path, lab_path, view_path
from bot.github.repositories.in_force import configs_in_force
from bot.results.compare.owners import OwnersOf
from bot.results.compare.quarantine import QuarantineOf
from bot.results.compare.target_health import TargetHealth, TargetReport, is_stale
from bot.results.state import CommitSummary
from bot.results.store.failures.failing_now import stored_failures, targets_now
from bot.results.store.lists.lab_reports import unusable_targets
from bot.results.store.lists.run_lists import newest_arrivals
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.revisions import revisions_of
from bot.web.answers import AnswerPart
from bot.web.csv_tables import Cell, CsvTable
from bot.web.page_filters import short
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import MOST_NAMED, Sentence, lateness, phrase, sentence
from handlers.dashboard.shared.chart import pass_rate_line
from handlers.dashboard.shared.content import Content
from handlers.dashboard.shared.settings import quarantine_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.paused.records import paused_in_repositories
from handlers.last_good.route import LastGoods
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.results.owners import all_owners_in_force
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.failures.failing_now import TargetNow

WORST_FIRST = (
    TargetHealth.FAILING,
    TargetHealth.UNUSABLE,
    TargetHealth.STALE,
    TargetHealth.NO_RESULTS,
    TargetHealth.PASSING,
)
"""The order of a repository's targets: what needs somebody comes first."""
LAB_PROBLEMS = (TargetHealth.STALE, TargetHealth.UNUSABLE)
MOST_ROWS = 60
"""Rows of one page: a repository has one, and one more for each listed target."""
MOST_TARGETS = 40
"""The most targets of a repository that the page lists; its grid has them all."""
MOST_FAILING, MOST_FAILURES = 5, 50
"""The most failing tests that the page names: of a target, and of a repository."""


@dataclass(frozen=True, slots=True)
class VisibleRepositories:
    """The repositories that a reader may see; whether private or public ones may be missing, as GitHub did not say."""

    names: list[str]
    private_unknown: bool
    public_unknown: bool


VISIBLE = web.RequestKey("visible_repositories", VisibleRepositories)


class FailingNow(BaseModel, extra="forbid"):
    """A test that fails in the newest nightly run of its suite."""

    suite: str
    test: str
    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    since_at: datetime = Field(description="When that commit was made.")


class FailingTargetOverview(BaseModel, extra="forbid"):
    """A target on which a test fails, and since when."""

    target: str = Field(description="As LAB/TARGET.")
    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    since_at: datetime = Field(description="When that commit was made.")


class FailingTestOverview(BaseModel, extra="forbid"):
    """A test that fails in the newest nightly run of its suite, with the targets that list it, the newest first."""

    suite: str
    test: str
    owners: list[str] = Field(description="Who looks after the test, by `owners`; none if nobody is named.")
    targets: list[FailingTargetOverview]


class CommitPassRate(BaseModel, extra="forbid"):
    """How many tests of a target passed and failed at a nightly commit."""

    sha: str
    committed_at: datetime
    passed: int
    failed: int


class TargetOverview(BaseModel, extra="forbid"):
    """The last results of a target of a lab. An unknown member is null."""

    lab: str
    target: str
    state: TargetHealth = Field(description="What the nightly runs say about the code now.")
    received_at: datetime | None = Field(description="When the newest stored nightly run arrived.")
    stale: bool = Field(description="Whether the newest nightly run arrived more than 36 hours ago, or never.")
    infra: str = Field(description="Why the newest nightly run has no usable results; empty if it has some.")
    paused_until: datetime | None = Field(default=None, description="Until when it is paused; null if it is not.")
    sha: str | None = Field(description="The newest commit with complete results.")
    suites: int = Field(description="How many suites have complete results of any nightly commit.")
    failing: int = Field(
        description="How many tests fail in the newest nightly run of each suite, without known failures."
    )
    known: int = Field(description="How many more fail there as their flakiness or a quarantine explains.")
    failures: list[FailingNow] = Field(description="Some of those tests.")
    rates: list[CommitPassRate] = Field(
        default=[], description="Its last 14 nightly commits with complete results, oldest first."
    )

    @property
    def chart(self) -> Markup:
        """Return its pass rate by commit as a small chart; empty with fewer than two commits."""
        return pass_rate_line([rate.passed / max(1, rate.passed + rate.failed) for rate in self.rates])


class BranchOverview(BaseModel, extra="forbid"):
    """A branch that the bot moves: its commit, and how far it is behind."""

    branch: str
    sha: str | None
    moved_at: datetime | None
    behind: int | None = Field(description="Number of newer commits; null if unknown.")
    hours: float | None = Field(description="Age of the oldest of these commits.")
    why: str


class RepositoryOverview(BaseModel, extra="forbid"):
    """A repository that the reader may see. Of many targets, those are listed in which most tests fail."""

    repository: str
    takes_results: bool = Field(description="Whether app.yaml has `results` for it.")
    targets: list[TargetOverview]
    more_targets: int = Field(description="Number of targets that are not listed.")
    failing_now: list[FailingTestOverview] = Field(
        description="The `failures` of the listed targets, one for each test: the newest failures first."
    )
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    nightly: BranchOverview | None
    last_good: BranchOverview | None

    @property
    def has_reported(self) -> bool:
        """Say whether a nightly run of a listed target has arrived, with usable results or without."""
        return any(target.received_at for target in self.targets)


class OverviewPage(BaseModel, extra="forbid"):
    """Repositories that the reader may see, in the order of app.yaml."""

    answer: list[AnswerPart] = Field(description="What fails and which labs are late, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(description="What a reader can do, each as a sentence.")

    repositories: list[RepositoryOverview]
    private_unknown: bool = Field(
        description="Whether GitHub did not say which private repositories the reader may see; then none is listed."
    )
    public_unknown: bool = Field(
        description="Whether GitHub did not say which other repositories are public; then some may be missing."
    )
    number: int = Field(description="The number of this page; the first one is 1.")
    pages: int = Field(description="Number of pages with repositories that match.")
    total: int = Field(description="Number of repositories that match, on all pages.")


class OverviewQuery(BaseModel, extra="forbid"):
    """The repositories to show. All members are optional."""

    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Repositories whose name contains this text, ignoring case."
    )
    page: int = Field(default=1, ge=1, le=1_000_000, description="The number of the page.")


def overview_page(parts: DashboardParts) -> Page:
    """Return the page with all repositories."""
    nightlies = TrackingRecord(parts.config, parts.records, NIGHTLY)
    last_goods = LastGoods(parts.config, parts.records, parts.moment)

    def rows_of(name: str) -> int:
        settings = parts.config.repository(name)
        return 1 + (min(MOST_TARGETS, len(_targets(name, settings))) if settings is not None else 0)

    def matching(request: PageRequest, names: Iterable[str]) -> list[list[str]]:
        """Return the names on each page."""
        text = (request.query.q or "").lower()
        names = [name for name in names if text in name.lower()]
        return [names] if request.as_csv else split_in_pages(names, {name: rows_of(name) for name in names})

    def on_page(request: PageRequest, pages: Sequence[list[str]]) -> list[str]:
        number = request.query.page
        return pages[number - 1] if number <= len(pages) else []

    async def content(request: PageRequest) -> Content:
        visible = await visible_repositories(request, list(parts.config.repositories))
        pages = matching(request, visible.names)
        names = on_page(request, pages)
        branches = await nightlies.some(names), await last_goods.some(names)
        revisions = await request.pages.look_up(parts.results.store.read, revisions_of, names)
        paused = await paused_in_repositories(parts.records, names, parts.moment())
        missing = visible.private_unknown, visible.public_unknown
        return names, missing, len(pages), sum(map(len, pages)), revisions, branches, paused, parts.moment()

    async def load(request: PageRequest) -> OverviewPage:
        visible = await visible_repositories(request, list(parts.config.repositories))
        pages = matching(request, visible.names)
        names = on_page(request, pages)
        nightly_of, last_good_of = await nightlies.some(names), await last_goods.some(names)
        most_targets = request.most_rows(MOST_TARGETS)
        paused = await paused_in_repositories(parts.records, names, parts.moment())
        overviews = []
        # Without those that have left the pattern of app.yaml meanwhile.
        in_force = await configs_in_force(parts.config, parts.records, names)
        owners = await all_owners_in_force(parts.records, in_force)
        for name, settings in in_force.items():
            targets = _targets(name, settings)
            aliases, moment = settings.of(RENAMES).aliases, parts.moment()
            nightly, last_good = nightly_of.get(name), last_good_of.get(name)
            heads = [record["sha"] for record in (nightly, last_good) if record and record["sha"]]
            listed, summaries = (
                await request.pages.run(
                    parts.results.store.read,
                    targets_and_commits,
                    targets,
                    aliases,
                    quarantine_of(settings, moment),
                    moment,
                    most_targets,
                    heads,
                )
                if targets
                else ([], {})
            )
            for target in listed:
                if pause := paused.get(TargetKey(name, target.lab, target.target)):
                    target.paused_until = datetime.fromtimestamp(pause.until, UTC)
            overviews.append(
                RepositoryOverview(
                    repository=name,
                    takes_results=settings.of(LAB_RESULTS) is not None,
                    targets=sorted(listed, key=_worst_first),
                    more_targets=len(targets) - len(listed),
                    failing_now=failing_tests(listed, owners[name]),
                    known_commits=summaries,
                    nightly=branch_of_nightly(nightly) if nightly else None,
                    last_good=_last_good(last_good) if last_good else None,
                )
            )
        return OverviewPage(
            answer=overview_answer(overviews, parts.moment()),
            next_steps=overview_steps(overviews),
            repositories=overviews,
            private_unknown=visible.private_unknown,
            public_unknown=visible.public_unknown,
            number=request.query.page,
            pages=len(pages),
            total=sum(map(len, pages)),
        )

    return Page(
        path="/",
        api_path="/api/v1/repos",
        summary="All repositories that the reader may see: last results of each target, and the state of the branches",
        template="overview.html",
        model=OverviewPage,
        query=OverviewQuery,
        load=load,
        content=content,
        table=_table,
    )


def split_in_pages(names: Iterable[str], rows: Mapping[str, int]) -> list[list[str]]:
    """Split the names of repositories into pages of about `MOST_ROWS` rows; `rows` has those of each repository."""
    pages: list[list[str]] = []
    room = 0
    for name in names:
        if rows[name] > room:
            pages.append([])
            room = MOST_ROWS
        pages[-1].append(name)
        room -= rows[name]
    return pages


def _targets(repository: str, settings: RepositoryConfig) -> list[TargetKey]:
    """Return the targets of a repository in the order of app.yaml."""
    results = settings.of(LAB_RESULTS)
    labs = results.labs.items() if results else ()
    return [TargetKey(repository, lab, target) for lab, lab_settings in labs for target in lab_settings.targets]


async def visible_repositories(request: PageRequest, names: Sequence[str]) -> VisibleRepositories:
    """Return the repositories that the reader may see.

    They are the same for the whole request: a cached page must not show more repositories than its key names.
    """
    if VISIBLE in request.request:
        return request.request[VISIBLE]
    listed, private_unknown = await request.pages.list_public(), False
    public = set(listed.names)
    private: Collection[str] = ()
    try:
        private = await request.pages.viewers.readable(request.request, [name for name in names if name not in public])
    except TryAgain:
        private_unknown = True
    visible = VisibleRepositories(
        [name for name in names if name in public or name in private], private_unknown, listed.incomplete
    )
    request.request[VISIBLE] = visible
    return visible


def targets_and_commits(
    connection: sa.Connection,
    targets: Sequence[TargetKey],
    aliases: Aliases,
    quarantine: QuarantineOf,
    moment: float,
    most: int,
    heads: Iterable[str],
) -> tuple[list[TargetOverview], dict[str, CommitSummary]]:
    """Return what `target_overviews` returns, and what is known of the commits that it names, and of `heads`."""
    overviews = target_overviews(connection, targets, aliases, quarantine, moment, most)
    shas = {failure.since for target in overviews for failure in target.failures}
    shas |= {target.sha for target in overviews if target.sha}
    return overviews, summaries_of(connection, targets[0].repository, {*shas, *heads})


def target_overviews(
    connection: sa.Connection,
    targets: Sequence[TargetKey],
    aliases: Aliases,
    quarantine: QuarantineOf,
    moment: float,
    most: int,
) -> list[TargetOverview]:
    """Read the last results of the targets of one repository; it blocks.

    They come in the given order. Of more than `most`, only those in which most tests fail are read.
    """
    repository = targets[0].repository
    if len(targets) > most:
        failed = stored_failures(connection, repository)
        listed = set(sorted(targets, key=lambda target: -failed.get(target, 0))[:most])
        targets = [target for target in targets if target in listed]
    newest = newest_arrivals(connection, repository, on_nightly=True)
    unusable = unusable_targets(connection, repository)
    states = targets_now(connection, repository, MOST_FAILING, aliases, quarantine, set(targets))
    overviews, room = [], MOST_FAILURES
    for target in targets:
        overviews.append(
            _target(target, newest.get(target), unusable.get(target, ""), states.get(target), moment, room)
        )
        room -= len(overviews[-1].failures)
    return overviews


def _target(
    target: TargetKey, received: float | None, infra: str, current: TargetNow | None, moment: float, most_failures: int
) -> TargetOverview:
    report = TargetReport(received, infra, current.suites if current else 0, current.failing if current else 0)
    return TargetOverview(
        lab=target.lab,
        target=target.target,
        received_at=datetime.fromtimestamp(received, UTC) if received is not None else None,
        state=report.health(moment),
        stale=is_stale(received, moment),
        infra=report.infra,
        sha=current.sha if current else None,
        suites=report.suites,
        failing=report.failing,
        known=current.known if current else 0,
        failures=[
            FailingNow(
                suite=failure.suite,
                test=failure.test,
                since=failure.since,
                since_at=datetime.fromtimestamp(failure.since_at, UTC),
            )
            for failure in (current.failures[:most_failures] if current else ())
        ],
        rates=[
            CommitPassRate(
                sha=rate.sha,
                committed_at=datetime.fromtimestamp(rate.committed_at, UTC),
                passed=rate.passed,
                failed=rate.failed,
            )
            for rate in (current.rates if current else ())
        ],
    )


def _worst_first(target: TargetOverview) -> tuple[int, int]:
    """Return the sort key of a target: failing ones with most failures first, passing ones last."""
    return WORST_FIRST.index(target.state), -target.failing


def failing_tests(targets: Iterable[TargetOverview], owners: OwnersOf) -> list[FailingTestOverview]:
    """Return the failures of targets, one for each test with its targets: the newest first, then by name.

    An old run says nothing about now, so the failures of a stale target are left out. `owners` finds those of a test.
    """
    by_test: dict[tuple[str, str], list[FailingTargetOverview]] = {}
    for target in targets:
        if target.state is TargetHealth.STALE:
            continue
        for failure in target.failures:
            on_target = FailingTargetOverview(
                target=f"{target.lab}/{target.target}", since=failure.since, since_at=failure.since_at
            )
            by_test.setdefault((failure.suite, failure.test), []).append(on_target)
    tests = [
        FailingTestOverview(
            suite=suite,
            test=test,
            owners=list(owners(test)),
            targets=sorted(failing, key=lambda target: target.since_at, reverse=True),
        )
        for (suite, test), failing in by_test.items()
    ]
    return sorted(tests, key=lambda test: (-test.targets[0].since_at.timestamp(), test.suite, test.test))


def branch_of_nightly(record: Mapping[str, Any]) -> BranchOverview:
    """Return what the page says about the nightly branch; `record` is a `TrackingState`."""
    # The commit that was chosen is the last one of the scan.
    newer = [commit for commit in record["why_not_newer"] if commit["sha"] != record["sha"]]
    return _branch(record, len(newer), None)


def _last_good(record: Mapping[str, Any]) -> BranchOverview:
    lag = record["lag"]
    return _branch(record, lag["commits"] if lag else None, lag["hours"] if lag else None)


def _branch(record: Mapping[str, Any], behind: int | None, hours: float | None) -> BranchOverview:
    moved = record["moved_at"]
    return BranchOverview(
        branch=record["branch"],
        sha=record["sha"],
        moved_at=datetime.fromisoformat(moved) if moved else None,
        behind=behind,
        hours=hours,
        why=record["trouble"] or record["why"],
    )


def _table(page: OverviewPage) -> CsvTable:
    columns = ("state", "received_at", "stale", "infra", "sha", "suites", "failing", "known")
    branches = ("nightly_sha", "nightly_behind", "last_good_sha", "last_good_behind")
    return CsvTable(("repository", "target", *columns, *branches), _rows(page, columns))


def _rows(page: OverviewPage, columns: Sequence[str]) -> Iterator[list[Cell]]:
    """Yield a row for each target, and one row for a repository without targets."""
    for repository in page.repositories:
        heads = [
            (branch.sha, branch.behind) if branch else (None, None)
            for branch in (repository.nightly, repository.last_good)
        ]
        branches = [cell for branch in heads for cell in branch]
        for target in repository.targets:
            values = (getattr(target, column) for column in columns)
            yield [repository.repository, f"{target.lab}/{target.target}", *values, *branches]
        if not repository.targets:
            yield [repository.repository, None, *(None for _ in columns), *branches]


def overview_answer(repositories: Sequence[RepositoryOverview], moment: float) -> Sentence:
    """Say in which repositories tests fail, and which targets are late or have no usable results."""
    with_targets = [repository for repository in repositories if repository.targets]
    if not with_targets:
        return []
    failures = [
        [
            phrase(_failing_words(repository), _failing_path(repository)),
            _repository_phrase(repository),
        ]
        for repository in with_targets
        if any(target.state is TargetHealth.FAILING for target in repository.targets)
    ]
    late: list[Sentence] = [
        [
            phrase(
                f"{target.lab}/{target.target}"
                f"{lateness(moment - target.received_at.timestamp() if target.received_at else None)}",
                lab_path(repository.repository, target.lab),
            )
        ]
        for repository in with_targets
        if repository.has_reported
        for target in repository.targets
        if target.stale
    ]
    unusable: list[Sentence] = [
        [
            phrase(
                f"{target.lab}/{target.target}",
                view_path(repository.repository, target=f"{target.lab}/{target.target}"),
            ),
            phrase(answer_texts.NO_USABLE_RESULTS),
        ]
        for repository in with_targets
        for target in repository.targets
        if target.state is TargetHealth.UNUSABLE
    ]
    return sentence(
        *(failures[:MOST_NAMED] or [_no_failure_clause(with_targets)]),
        _unnamed_clause(failures, answer_texts.FAIL_ELSEWHERE, "more repository", "more repositories"),
        *unusable[:MOST_NAMED],
        _unnamed_clause(unusable, answer_texts.MORE_UNUSABLE, "more target", "more targets"),
        *late[:MOST_NAMED],
        _unnamed_clause(late, answer_texts.MORE_LATE, "more target", "more targets"),
    )


def _no_failure_clause(repositories: Sequence[RepositoryOverview]) -> Sentence:
    """Say on which targets no test fails; nothing if all that have reported are late, or have no usable results."""
    if not any(repository.has_reported for repository in repositories):
        return [phrase(answer_texts.NO_RESULTS_YET)]
    states = [target.state for repository in repositories for target in repository.targets]
    passing = states.count(TargetHealth.PASSING)
    if passing == len(states):
        return [phrase(answer_texts.NOTHING_FAILS)]
    words = answer_texts.NOTHING_FAILS_ON.format(count=passing, targets=counted(len(states), "target"))
    return [phrase(words)] if passing else []


def _repository_phrase(repository: RepositoryOverview) -> AnswerPart:
    return phrase(answer_texts.OF_REPOSITORY.format(repository=repository.repository))


def _unnamed_clause(clauses: Sequence[Sentence], words: str, singular: str, plural: str) -> Sentence:
    unnamed = len(clauses) - MOST_NAMED
    return [phrase(words.format(more=counted(unnamed, singular, plural)))] if unnamed > 0 else []


def _failing_words(repository: RepositoryOverview) -> str:
    failing = [target for target in repository.targets if target.state is TargetHealth.FAILING]
    count = sum(target.failing for target in failing)
    return answer_texts.FAIL_ON_TARGETS.format(
        tests=counted(count, "failure"),
        count=len(failing),
        targets=counted(len(repository.targets) + repository.more_targets, "target"),
    )


def _failing_path(repository: RepositoryOverview) -> str:
    """Return the address of the failures that a sentence counts: of all listed targets, but not of late ones."""
    is_all = not repository.more_targets and not any(target.stale and target.failing for target in repository.targets)
    return view_path(repository.repository, status="failing" if is_all else None)


def overview_steps(repositories: Sequence[RepositoryOverview]) -> list[Sentence]:
    """Say what a maintainer and a lab can do."""
    steps = []
    newest = next((failure for repository in repositories for failure in repository.failing_now[:1]), None)
    repository_name = next((repository.repository for repository in repositories if repository.failing_now), "")
    if newest:
        target = newest.targets[0]
        href = history_path(repository_name, newest.test, target.target if len(newest.targets) == 1 else "")
        steps.append(
            [
                phrase(answer_texts.MAINTAINER),
                phrase(answer_texts.NEWEST_FAILURE, href),
                phrase(answer_texts.BEGAN_AT.format(sha=short(target.since))),
            ]
        )
    late_target = next(
        (
            (repository.repository, target.lab)
            for repository in repositories
            for target in repository.targets
            if target.state in LAB_PROBLEMS or (target.stale and repository.has_reported)
        ),
        None,
    )
    if late_target:
        steps.append(
            [phrase(answer_texts.LAB), phrase(answer_texts.SEE_LAB.format(lab=late_target[1]), lab_path(*late_target))]
        )
    return steps
