"""Store and read runs, and define the order of the runs of one suite and commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, merged
from nightjar_formats.columns.collect import Reason
from nightjar_formats.model import Claims, RunKey, TargetKey

from bot.engine.sql.portable import dumps, loads
from bot.results.state import Admission, Run, RunState
from bot.results.store.tables import schema
from bot.results.store.tables.blobs import Reasons, RunColumns, raw, read_columns, read_reason, read_reasons

REPORTED = (RunState.STORED, RunState.WAITING, RunState.INCOMPLETE)
"""The states of runs that count for their suite; refused runs don't."""


Numbered = tuple[int, Run]
"""A run and its number."""
Place = tuple[int, str, str]
"""A target's number, a commit, and a suite."""


class BareRun(NamedTuple):
    """A run without its claims, which most readers do not need."""

    number: int
    run_id: str
    is_stored: bool


class Shards(NamedTuple):
    """The shards of one suite at one commit: which have arrived, and which have not."""

    total: int
    missing: tuple[int, ...]
    waiting: tuple[Run, ...]
    broken: tuple[Run, ...]

    @property
    def complete(self) -> bool:
        """Whether all shards and files that the manifests name have arrived."""
        return not (self.missing or self.waiting or self.broken)


def order(run: Run) -> tuple[int, str, str]:
    """Return the sort key of the runs of one suite and commit. The last run that has a test says how it ended."""
    return _order_of(run.key.run_id, run.claims)


def _order_of_numbered(numbered: Numbered) -> tuple[int, str, str]:
    return order(numbered[1])


def _order_of(run_id: str, claims: Claims | None) -> tuple[int, str, str]:
    # The run ID only breaks ties, so that the order never depends on which run arrived first.
    return (claims.attempt, claims.started_at, run_id) if claims else (0, "", run_id)


def shards(runs: Iterable[Run]) -> Shards:
    """Return which shards of a suite have arrived, from its runs in any order.

    A run that waits, or whose files never arrived, no longer matters if a later run has the same shard. Attempts may
    have different numbers of shards: if all shards of one attempt have arrived, those of others are not missing.
    """
    ordered = sorted((run for run in runs if run.claims), key=order)
    indexes_by_total: dict[int, set[int]] = {}
    for run in ordered:
        indexes_by_total.setdefault(_claims(run).shard_total, set()).add(_claims(run).shard_index)
    # A number of shards that is complete wins, then the larger one.
    total = max(indexes_by_total, key=lambda total: (len(indexes_by_total[total]) == total, total), default=1)
    arrived = indexes_by_total.get(total, set())
    stored_later: set[tuple[int, int]] = set()
    unfinished = []
    for run in reversed(ordered):
        shard = (_claims(run).shard_index, _claims(run).shard_total)
        if run.state is RunState.STORED:
            stored_later.add(shard)
        elif shard not in stored_later:
            unfinished.append(run)
    unfinished.reverse()
    return Shards(
        total,
        tuple(index for index in range(1, total + 1) if index not in arrived),
        tuple(run for run in unfinished if run.state is RunState.WAITING),
        tuple(run for run in unfinished if run.state is RunState.INCOMPLETE),
    )


def admission(runs: Iterable[Run]) -> Admission | None:
    """Return the combined admission of a commit's runs, which does not depend on their order of arrival."""
    admissions = [run.admission for run in runs if run.admission]
    if not admissions:
        return None
    return Admission(
        min(admission.committed_at for admission in admissions),
        any(admission.mainline for admission in admissions),
        max((admission.pull_request for admission in admissions if admission.pull_request is not None), default=None),
    )


def _claims(run: Run) -> Claims:
    assert run.claims is not None
    return run.claims


def target_id(connection: sa.Connection, target: TargetKey | RunKey, *, make: bool = False) -> int | None:
    """Return the ID of a target, or of a run's. If it is not stored, return None, or store it if `make` is set."""
    values = {"repository": target.repository, "lab": target.lab, "target": target.target}
    number: int | None = connection.execute(_TARGET, values).scalar()
    if number is None and make:
        number = connection.execute(_NEW_TARGET, values).scalar_one()
    return number


class SavedRun(NamedTuple):
    """A run as it is stored now: its number, that of its target, and the run that it replaces, None for none."""

    number: int
    target_id: int
    replaced: Run | None


def save(connection: sa.Connection, run: Run, stored: Numbered | None) -> SavedRun:
    """Write the row of a run, and that of its target if it has none; `stored` is the run as it is stored already."""
    target_number = target_id(connection, run.key, make=True)
    assert target_number is not None
    admission = run.admission
    # Not `received_at`: a run that is ingested again arrived when it was stored first.
    values: dict[str, Any] = {
        "suite": run.claims.suite if run.claims else None,
        "version": run.version,
        "state": run.state.value,
        "reason": run.reason,
        "bytes": run.bytes,
        "claims": dumps(_plain(run.claims)) if run.claims else None,
        "committed_at": admission.committed_at if admission else None,
        "mainline": admission.mainline if admission else None,
        "pull_request": admission.pull_request if admission else None,
    }
    if stored is not None:
        number, replaced = stored
        connection.execute(schema.runs.update().filter_by(id=number).values(values))
        return SavedRun(number, target_number, replaced)
    key = {"target_id": target_number, "sha": run.key.sha, "run_id": run.key.run_id}
    row = values | key | {"received_at": run.received_at}
    return SavedRun(int(connection.execute(_NEW_RUN, row).scalar_one()), target_number, None)


def _plain(claims: Claims) -> dict[str, Any]:
    return asdict(claims) | {"environment": dict(claims.environment)}


def select() -> sa.Select[Any]:
    """Return the statement that reads runs, to be narrowed; its rows are for `read`."""
    runs, targets = schema.runs, schema.targets
    return sa.select(runs, targets.c.repository, targets.c.lab, targets.c.target).join(targets)


def read(row: sa.RowMapping) -> Run:
    """Return the run of a row."""
    committed_at = row["committed_at"]
    claims = row["claims"]
    return Run(
        RunKey(row["repository"], row["lab"], row["target"], row["sha"], row["run_id"]),
        row["version"],
        RunState(row["state"]),
        row["reason"],
        row["received_at"],
        row["bytes"],
        Claims(**loads(claims)) if claims else None,  # type: ignore[arg-type]  # as `save` wrote it
        None if committed_at is None else Admission(committed_at, row["mainline"], row["pull_request"]),
    )


# Statements that each run needs are built once: building one takes longer than executing it.
OF_TARGET = tuple(schema.targets.c[name] == sa.bindparam(name) for name in ("repository", "lab", "target"))
"""The condition of statements on one target, with the names of its fields."""
_TARGET = sa.select(schema.targets.c.id).where(*OF_TARGET)
TARGET_ID = _TARGET.scalar_subquery()
"""The same target's ID, for statements without a join."""
_NEW_TARGET = schema.targets.insert().returning(schema.targets.c.id)
_NEW_RUN = schema.runs.insert().returning(schema.runs.c.id)
_AT_COMMIT = select().where(*OF_TARGET, schema.runs.c.sha == sa.bindparam("sha"))
_FIND = _AT_COMMIT.where(schema.runs.c.run_id == sa.bindparam("run_id"))
_NAMES_IN_ANY_CASE = sa.select(schema.targets.c.repository).where(
    sa.func.lower(schema.targets.c.repository) == sa.bindparam("repository"),
    schema.targets.c.lab == sa.bindparam("lab"),
    schema.targets.c.target == sa.bindparam("target"),
)
in_reported_state = schema.unindexed_state.in_([state.value for state in REPORTED])
_IS_REPORTED = (in_reported_state, schema.runs.c.suite.is_not(None), schema.runs.c.committed_at.is_not(None))
# Two lists instead of pairs: a statement with pairs takes longer to make than to answer, and without statistics, SQLite
# prefers to read every run with one of these states. Callers drop the other combinations.
_AT_PLACES = (
    schema.runs.c.target_id.in_(sa.bindparam("targets", expanding=True)),
    schema.runs.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
_REPORTED_ON_TARGET = _AT_COMMIT.where(*_IS_REPORTED)
_REPORTED_ON_TARGET_OF_SUITE = _REPORTED_ON_TARGET.where(schema.runs.c.suite == sa.bindparam("suite"))
_REPORTED = select().where(*_AT_PLACES, *_IS_REPORTED)
_REPORTED_OF_SUITE = _REPORTED.where(schema.runs.c.suite == sa.bindparam("suite"))
_VERSIONS = (
    sa.select(*(schema.runs.c[name] for name in ("sha", "run_id", "version", "state")))
    .join(schema.targets)
    .where(*OF_TARGET, schema.runs.c.sha.in_(sa.bindparam("shas", expanding=True)))
)
_BARE = sa.select(*(schema.runs.c[name] for name in ("id", "target_id", "sha", "suite", "run_id", "state"))).where(
    *_AT_PLACES, *_IS_REPORTED
)
_CLAIMS = sa.select(schema.runs.c.id, schema.runs.c.claims).where(
    schema.runs.c.id.in_(sa.bindparam("numbers", expanding=True))
)
_OF_RUNS = schema.columns.c.run_id.in_(sa.bindparam("numbers", expanding=True))
_COLUMNS = sa.select(schema.columns.c.run_id, schema.columns.c.statuses, schema.columns.c.reasons).where(_OF_RUNS)
_REASONS = sa.select(schema.columns.c.run_id, schema.columns.c.reasons).where(_OF_RUNS)
_STATUSES = sa.select(schema.columns.c.run_id, schema.columns.c.statuses).where(_OF_RUNS)


def find(connection: sa.Connection, key: RunKey, *, any_case: bool = False) -> tuple[int, Run] | None:
    """Return a run and its number; None if it is not stored.

    With `any_case`, the letter case of the repository does not matter.
    """
    values = asdict(key)
    row = connection.execute(_FIND, values).mappings().first()
    if row is None and any_case:
        # No index has the names in lower case. Reading the few targets first saves a scan of all runs.
        for name in connection.execute(_NAMES_IN_ANY_CASE, values | {"repository": key.repository.lower()}).scalars():
            row = row or connection.execute(_FIND, values | {"repository": name}).mappings().first()
    return None if row is None else (row["id"], read(row))


def find_run(connection: sa.Connection, key: RunKey) -> Run | None:
    """Return a run; None if nothing is stored about it."""
    numbered_run = find(connection, key)
    return None if numbered_run is None else numbered_run[1]


def processed_runs(connection: sa.Connection, versions: Mapping[RunKey, str]) -> set[RunKey]:
    """Return the runs that are stored, or were processed with this version of their manifest."""
    by_target: dict[tuple[str, str, str], dict[tuple[str, str], RunKey]] = {}
    for key in versions:
        by_target.setdefault((key.repository, key.lab, key.target), {})[key.sha, key.run_id] = key
    processed = set()
    for (repository, lab, target), keys in by_target.items():
        values = {"repository": repository, "lab": lab, "target": target}
        for chunk in schema.in_chunks(sorted({sha for sha, _ in keys})):
            for row in connection.execute(_VERSIONS, values | {"shas": chunk}):
                requested = keys.get((row.sha, row.run_id))
                if requested is not None and (row.state == RunState.STORED or row.version == versions[requested]):
                    processed.add(requested)
    return processed


@dataclass(frozen=True, slots=True)
class ReportedRuns:
    """The runs of a commit on a target that count, in their order.

    `stored` are the numbers of those with stored results, `admission` is what all admissions together say, and
    `target_id` is the number of the target, None without runs.
    """

    numbered: Sequence[Numbered] = ()
    runs: Sequence[Run] = ()
    stored: Sequence[int] = ()
    admission: Admission | None = None
    target_id: int | None = None

    @property
    def complete(self) -> bool:
        """Whether there are stored results, and no shard or file of a suite is missing; for the runs of one suite."""
        return bool(self.stored) and shards(self.runs).complete


def reported_on_target(
    connection: sa.Connection, target: TargetKey, sha: str, suite: str | None = None
) -> ReportedRuns:
    """Return the runs of a commit on a target, or of one suite at it; none if the target is not stored."""
    values = asdict(target) | {"sha": sha}
    statement = _REPORTED_ON_TARGET
    if suite is not None:
        values, statement = values | {"suite": suite}, _REPORTED_ON_TARGET_OF_SUITE
    rows = connection.execute(statement, values).mappings().all()
    numbered = sorted(((row["id"], read(row)) for row in rows), key=_order_of_numbered)
    return _reported(rows[0]["target_id"], numbered) if rows else ReportedRuns()


def reported(connection: sa.Connection, target_id: int, sha: str, suite: str | None = None) -> ReportedRuns:
    """Return the runs of a commit, or of one suite at it."""
    return _reported(target_id, reported_runs_at(connection, [(target_id, sha)], suite).get((target_id, sha), []))


def _reported(target_id: int, numbered: Sequence[Numbered]) -> ReportedRuns:
    runs = [run for _, run in numbered]
    return ReportedRuns(numbered, runs, stored(numbered), admission(runs), target_id)


def reported_runs_at(
    connection: sa.Connection, places: Collection[tuple[int, str]], suite: str | None = None
) -> dict[tuple[int, str], list[Numbered]]:
    """Return the runs of each commit on its target, with their numbers and in their order."""
    of_suite = {} if suite is None else {"suite": suite}
    statement = _REPORTED if suite is None else _REPORTED_OF_SUITE
    runs_at: dict[tuple[int, str], list[Numbered]] = {}
    ordered = sorted(set(places))
    for chunk in schema.in_chunks(ordered):
        requested = set(chunk)
        commits = {"targets": sorted({target for target, _ in chunk}), "shas": sorted({sha for _, sha in chunk})}
        for row in connection.execute(statement, commits | of_suite).mappings():
            if (place := (row["target_id"], row["sha"])) in requested:
                runs_at.setdefault(place, []).append((row["id"], read(row)))
    for numbered in runs_at.values():
        numbered.sort(key=_order_of_numbered)
    return runs_at


def suite_columns(connection: sa.Connection, target_id: int, suite: str, shas: Sequence[str]) -> list[bytes]:
    """Return the merged status column of a suite on a target at each of some commits; empty without stored results."""
    reported_at = reported_runs_at(connection, [(target_id, sha) for sha in shas], suite)
    return statuses(connection, [stored(reported_at.get((target_id, sha), ())) for sha in shas])


def bare_runs(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, list[BareRun]]:
    """Return the runs of each suite at a commit on a target, in their order, without their claims."""
    requested = set(places)
    targets, shas = sorted({target for target, _, _ in requested}), sorted({sha for _, sha, _ in requested})
    runs_at = defaultdict[Place, list[BareRun]](list)
    with_results = RunState.STORED.value
    for chunk in schema.in_chunks(shas):
        for number, target, sha, suite, run_id, state in connection.execute(
            _BARE, {"targets": targets, "shas": chunk}
        ).all():
            if (place := (target, sha, suite)) in requested:
                runs_at[place].append(BareRun(number, run_id, state == with_results))
    # Claims are read only to order several runs of one place; most places have one.
    several = [place_runs for place_runs in runs_at.values() if len(place_runs) > 1]
    claims = _claims_of(connection, [run.number for place_runs in several for run in place_runs])
    for place_runs in several:
        place_runs.sort(key=lambda run: _order_of(run.run_id, claims[run.number]))
    return dict(runs_at)


def _claims_of(connection: sa.Connection, numbers: Sequence[int]) -> dict[int, Claims]:
    """Return the claims of runs that have some, by the numbers of the runs."""
    return {
        number: Claims(**loads(claims))  # type: ignore[arg-type]  # as `save` wrote it
        for chunk in schema.in_chunks(numbers)
        for number, claims in connection.execute(_CLAIMS, {"numbers": chunk})
    }


def stored(numbered: Iterable[Numbered]) -> list[int]:
    """Return the numbers of the runs that have stored results."""
    return [number for number, run in numbered if run.state is RunState.STORED]


def columns(
    connection: sa.Connection, numbers: Sequence[int], already_read: Mapping[int, RunColumns] | None = None
) -> list[RunColumns]:
    """Return the columns of stored runs, in the order of `numbers`; those in `already_read` are not read again."""
    columns_of = dict(already_read or {})
    columns_of |= each_stored(connection, [number for number in numbers if number not in columns_of])
    return [columns_of[number] for number in numbers]


def each_stored(connection: sa.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, RunColumns]]:
    """Yield the columns of stored runs one by one, each with the number of its run, in any order."""
    for chunk in schema.in_chunks(numbers):
        for row in connection.execute(_COLUMNS, {"numbers": chunk}):
            yield row.run_id, read_columns(row.statuses, row.reasons)


def reasons(connection: sa.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, Reasons]]:
    """Yield the reasons of stored runs, each with the number of its run, in any order."""
    for chunk in schema.in_chunks(numbers):
        for row in connection.execute(_REASONS, {"numbers": chunk}):
            yield row.run_id, read_reasons(row.reasons)


def reasons_of_tests(
    connection: sa.Connection, ordinals: Mapping[int, int]
) -> Iterator[tuple[int, bool, Reason | None]]:
    """Yield whether stored runs have a test, and its reason there, each with the number of the run, in any order.

    `ordinals` has the ordinal of the test in each run.
    """
    for chunk in schema.in_chunks(list(ordinals)):
        for row in connection.execute(_COLUMNS, {"numbers": chunk}):
            ordinal = ordinals[row.run_id]
            yield row.run_id, at(raw(row.statuses), ordinal) != ABSENT, read_reason(row.reasons, ordinal)


def status_blobs(connection: sa.Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the compressed status columns of stored runs, by the number of the run."""
    return {
        number: blob
        for chunk in schema.in_chunks(numbers)
        for number, blob in connection.execute(_STATUSES, {"numbers": chunk}).all()
    }


def statuses(connection: sa.Connection, groups: Collection[Sequence[int]]) -> list[bytes]:
    """Return the merged status column of each group of stored runs. The runs of a group must be in their order."""
    blobs = status_blobs(connection, [number for group in groups for number in group])
    return [merged([raw(blobs[number]) for number in group]) for group in groups]


def stored_runs(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, list[BareRun]]:
    """Return the stored runs of suites at commits, in their order."""
    reported = bare_runs(connection, places)
    return {place: stored for place, bare in reported.items() if (stored := [run for run in bare if run.is_stored])}


def status_columns(connection: sa.Connection, stored: Mapping[Place, Sequence[int]]) -> dict[Place, bytes]:
    """Return the merged status column of each place; `stored` has the numbers of its stored runs."""
    columns: dict[Place, bytes] = {}
    all_places = list(stored)
    for places in schema.in_chunks(all_places):
        groups = [stored[place] for place in places]
        columns |= zip(places, statuses(connection, groups), strict=True)
    return columns


def stored_columns(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, list[bytes]]:
    """Return the compressed status columns of the stored runs at each place, in their order."""
    numbers = numbers_of(stored_runs(connection, places))
    blobs = status_blobs(connection, [number for of_place in numbers.values() for number in of_place])
    return {place: [blobs[number] for number in of_place] for place, of_place in numbers.items()}


def columns_at(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, bytes]:
    """Return the merged status column of the stored runs at each place that has any."""
    return status_columns(connection, numbers_of(stored_runs(connection, places)))


def numbers_of(stored: Mapping[Place, Iterable[BareRun]]) -> dict[Place, list[int]]:
    """Return the numbers of the runs of each place."""
    return {place: [run.number for run in bare] for place, bare in stored.items()}
