"""Store and read runs, and define the order of the runs of one suite and commit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import merged
from nightjar_formats.model import Claims, RunKey, TargetKey

from bot.engine.sql import encoding
from bot.results.state import Admission, Run, RunState
from bot.results.store import schema
from bot.results.store.blobs import Reasons, Stored, raw, read_reasons

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
    """Return what sorts the runs of one suite and commit: the last one that has a test says how it ended."""
    return _order_of(run.key.run_id, run.claims)


def _order_of(run_id: str, claims: Claims | None) -> tuple[int, str, str]:
    # The run ID only breaks ties, so that the order never depends on which run arrived first.
    return (claims.attempt, claims.started_at, run_id) if claims else (0, "", run_id)


def shards(runs: Iterable[Run]) -> Shards:
    """Return which shards of a suite have arrived, from its runs in any order.

    A run that waits, or whose files never arrived, no longer matters if a later run has the same shard. Attempts may
    have different numbers of shards: if all shards of one number have arrived, nothing is missing of the others.
    """
    ordered = sorted((run for run in runs if run.claims), key=order)
    cuts: dict[int, set[int]] = {}
    for run in ordered:
        cuts.setdefault(_claims(run).shard_total, set()).add(_claims(run).shard_index)
    # A number of shards that is complete wins, then the larger one.
    total = max(cuts, key=lambda cut: (len(cuts[cut]) == cut, cut), default=1)
    sent = cuts.get(total, set())
    stored_later: set[tuple[int, int]] = set()
    open_ones = []
    for run in reversed(ordered):
        shard = (_claims(run).shard_index, _claims(run).shard_total)
        if run.state is RunState.STORED:
            stored_later.add(shard)
        elif shard not in stored_later:
            open_ones.append(run)
    open_ones.reverse()
    return Shards(
        total,
        tuple(index for index in range(1, total + 1) if index not in sent),
        tuple(run for run in open_ones if run.state is RunState.WAITING),
        tuple(run for run in open_ones if run.state is RunState.INCOMPLETE),
    )


def admission(runs: Iterable[Run]) -> Admission | None:
    """Return the combined admission of a commit's runs, which does not depend on their order of arrival."""
    known = [run.admission for run in runs if run.admission]
    if not known:
        return None
    return Admission(
        min(one.committed_at for one in known),
        any(one.mainline for one in known),
        max((one.pull_request for one in known if one.pull_request is not None), default=None),
    )


def _claims(run: Run) -> Claims:
    assert run.claims is not None
    return run.claims


def target_id(connection: sa.Connection, about: TargetKey, *, make: bool = False) -> int | None:
    """Return the ID of a target. If it is unknown: None, or a new ID with `make`."""
    values = {"repository": about.repository, "lab": about.lab, "target": about.target}
    found: int | None = connection.execute(_TARGET, values).scalar()
    if found is None and make:
        found = connection.execute(_NEW_TARGET, values).scalar_one()
    return found


def save(connection: sa.Connection, target: int, run: Run, number: int | None) -> int:
    """Write the row of a run; return its number. `number` is None for a run that is not stored yet."""
    admission = run.admission
    # Not `received_at`: a run that is read again arrived when it was noted first.
    values: dict[str, Any] = {
        "suite": run.claims.suite if run.claims else None,
        "version": run.version,
        "state": run.state.value,
        "reason": run.reason,
        "bytes": run.bytes,
        "claims": encoding.dumps(_plain(run.claims)) if run.claims else None,
        "committed_at": admission.committed_at if admission else None,
        "mainline": admission.mainline if admission else None,
        "pull_request": admission.pull_request if admission else None,
    }
    if number is not None:
        connection.execute(schema.runs.update().filter_by(id=number).values(values))
        return number
    key = {"target_id": target, "sha": run.key.sha, "run_id": run.key.run_id}
    row = values | key | {"received_at": run.received_at}
    return int(connection.execute(_NEW_RUN, row).scalar_one())


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
        Claims(**encoding.loads(claims)) if claims else None,  # type: ignore[arg-type]  # as `save` wrote it
        None if committed_at is None else Admission(committed_at, row["mainline"], row["pull_request"]),
    )


# Statements that each run needs are built once: building one takes longer than executing it.
_TARGET = sa.select(schema.targets.c.id).where(
    schema.targets.c.repository == sa.bindparam("repository"),
    schema.targets.c.lab == sa.bindparam("lab"),
    schema.targets.c.target == sa.bindparam("target"),
)
_NEW_TARGET = schema.targets.insert().returning(schema.targets.c.id)
_NEW_RUN = schema.runs.insert().returning(schema.runs.c.id)
_OF_KEY = select().where(
    schema.targets.c.lab == sa.bindparam("lab"),
    schema.targets.c.target == sa.bindparam("target"),
    schema.runs.c.sha == sa.bindparam("sha"),
    schema.runs.c.run_id == sa.bindparam("run_id"),
)
_FIND = _OF_KEY.where(schema.targets.c.repository == sa.bindparam("repository"))
_NAMES_IN_ANY_CASE = sa.select(schema.targets.c.repository).where(
    sa.func.lower(schema.targets.c.repository) == sa.bindparam("repository"),
    schema.targets.c.lab == sa.bindparam("lab"),
    schema.targets.c.target == sa.bindparam("target"),
)
in_reported_state = schema.found_state.in_([state.value for state in REPORTED])
_IS_REPORTED = (
    in_reported_state,
    schema.runs.c.suite.is_not(None),
    schema.runs.c.committed_at.is_not(None),
)
# Two lists instead of pairs: a statement with pairs takes longer to make than to answer, and without statistics, SQLite
# prefers to read every run with one of these states. Callers drop the combinations that they did not ask for.
_AT_PLACES = (
    schema.runs.c.target_id.in_(sa.bindparam("targets", expanding=True)),
    schema.runs.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
_REPORTED = select().where(*_AT_PLACES, *_IS_REPORTED)
_REPORTED_OF_SUITE = _REPORTED.where(schema.runs.c.suite == sa.bindparam("suite"))
_BARE = sa.select(
    *(schema.runs.c[name] for name in ("id", "target_id", "sha", "suite", "run_id", "state", "claims"))
).where(*_AT_PLACES, *_IS_REPORTED)
_OF_RUNS = schema.columns.c.run_id.in_(sa.bindparam("numbers", expanding=True))
_COLUMNS = sa.select(schema.columns.c.run_id, schema.columns.c.statuses, schema.columns.c.reasons).where(_OF_RUNS)
_REASONS = sa.select(schema.columns.c.run_id, schema.columns.c.reasons).where(_OF_RUNS)
_STATUSES = sa.select(schema.columns.c.run_id, schema.columns.c.statuses).where(_OF_RUNS)


def find(connection: sa.Connection, key: RunKey, *, any_case: bool = False) -> tuple[int, Run] | None:
    """Return a run and its number, if it is stored; where needed, in any letter case of the repository."""
    values = {"lab": key.lab, "target": key.target, "sha": key.sha, "run_id": key.run_id}
    values["repository"] = key.repository
    row = connection.execute(_FIND, values).mappings().first()
    if row is None and any_case:
        # No index has the names in lower case. Reading the few targets first saves a scan of all runs.
        for name in connection.execute(_NAMES_IN_ANY_CASE, values | {"repository": key.repository.lower()}).scalars():
            row = row or connection.execute(_FIND, values | {"repository": name}).mappings().first()
    return None if row is None else (row["id"], read(row))


def known(connection: sa.Connection, versions: Mapping[RunKey, str]) -> set[RunKey]:
    """Return the runs that are stored, or were processed with this version of their manifest."""
    by_target: dict[TargetKey, dict[tuple[str, str], RunKey]] = {}
    for key in versions:
        by_target.setdefault(key.about, {})[key.sha, key.run_id] = key
    found = set()
    table = schema.runs
    for about, wanted in by_target.items():
        if (target := target_id(connection, about)) is None:
            continue
        shas = sorted({sha for sha, _ in wanted})
        for some in schema.in_parts(shas):
            of = table.c.sha.in_(some)
            fields = (table.c.sha, table.c.run_id, table.c.version, table.c.state)
            for row in connection.execute(sa.select(*fields).where(table.c.target_id == target, of)):
                one = wanted.get((row.sha, row.run_id))
                if one is not None and (row.state == RunState.STORED or row.version == versions[one]):
                    found.add(one)
    return found


def reported(connection: sa.Connection, target: int, sha: str, suite: str | None = None) -> list[Numbered]:
    """Return the runs of a commit, or of one suite at it, with their numbers and in their order."""
    return reported_runs_at(connection, [(target, sha)], suite).get((target, sha), [])


def reported_runs_at(
    connection: sa.Connection, places: Collection[tuple[int, str]], suite: str | None = None
) -> dict[tuple[int, str], list[Numbered]]:
    """Return the runs of each of some commits on targets, likewise."""
    if not places:
        return {}
    wanted = set(places)
    values: dict[str, Any] = {
        "targets": sorted({target for target, _ in wanted}),
        "shas": sorted({sha for _, sha in wanted}),
    }
    if suite is not None:
        values["suite"] = suite
    statement = _REPORTED if suite is None else _REPORTED_OF_SUITE
    found: dict[tuple[int, str], list[Numbered]] = {}
    for row in connection.execute(statement, values).mappings():
        if (place := (row["target_id"], row["sha"])) in wanted:
            found.setdefault(place, []).append((row["id"], read(row)))
    for numbered in found.values():
        numbered.sort(key=lambda pair: order(pair[1]))
    return found


def bare_runs(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, list[BareRun]]:
    """Return the runs of each of some suites at commits on targets, likewise, but without their claims."""
    wanted = set(places)
    targets, shas = sorted({target for target, _, _ in wanted}), sorted({sha for _, sha, _ in wanted})
    found: dict[Place, list[BareRun]] = {}
    claimed: dict[int, str] = {}
    for some in schema.in_parts(shas):
        for number, target, sha, suite, run_id, state, claims in connection.execute(
            _BARE, {"targets": targets, "shas": some}
        ):
            if (place := (target, sha, suite)) in wanted:
                found.setdefault(place, []).append(BareRun(number, run_id, state == RunState.STORED))
                claimed[number] = claims
    for of_place in found.values():
        # Claims are read only to order several runs of one place; most places have one.
        if len(of_place) > 1:
            of_place.sort(key=lambda one: _order_of(one.run_id, Claims(**encoding.loads(claimed[one.number]))))  # type: ignore[arg-type]  # as `save` wrote it
    return found


def stored(numbered: Iterable[Numbered]) -> list[int]:
    """Return the numbers of those runs that are stored."""
    return [number for number, run in numbered if run.state is RunState.STORED]


def columns(
    connection: sa.Connection, numbers: Sequence[int], known: Mapping[int, Stored] | None = None
) -> list[Stored]:
    """Return the columns of stored runs; those in `known` are not read again."""
    found = dict(known or {})
    found |= each_stored(connection, [number for number in numbers if number not in found])
    return [found[number] for number in numbers]


def each_stored(connection: sa.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of stored runs one by one, each with the number of its run, in any order."""
    for some in schema.in_parts(numbers):
        for row in connection.execute(_COLUMNS, {"numbers": some}):
            yield row.run_id, Stored(raw(row.statuses), read_reasons(row.reasons))


def reasons(connection: sa.Connection, numbers: Sequence[int]) -> Iterator[tuple[int, Reasons]]:
    """Yield the reasons of stored runs, each with the number of its run, in any order."""
    for some in schema.in_parts(numbers):
        for row in connection.execute(_REASONS, {"numbers": some}):
            yield row.run_id, read_reasons(row.reasons)


def statuses(connection: sa.Connection, numbers: Collection[Sequence[int]]) -> list[bytes]:
    """Return the merged status column of each group of stored runs, which are given in their order."""
    every = [number for group in numbers for number in group]
    rows = connection.execute(_STATUSES, {"numbers": every}) if every else ()
    found = {row.run_id: row.statuses for row in rows}
    return [merged([raw(found[number]) for number in group]) for group in numbers]
