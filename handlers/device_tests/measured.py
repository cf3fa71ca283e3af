"""Count the stored jobs of each target: those that wait or run, and those that ended without an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString

from nightjar_formats.model import TargetKey

from bot.engine.sql.transactions import Connector
from handlers.device_tests.model import OPEN, DeviceJobState, JobEnd

WINDOW = 86_400.0
"""Seconds before now that hand-outs and ends are counted for."""

# Only open jobs have an expiry. The conditions on `expires_at` and `ended_at` repeat those of partial indices.
# `leased_at` is the last hand-out, so only jobs with one attempt show how long the first took.
BY_STATE: LiteralString = """
SELECT repository, lab, target, state, count(*) AS jobs, min(queued_at) AS oldest FROM nightjar_device_jobs
 WHERE expires_at > 0 GROUP BY repository, lab, target, state
"""
HANDED_OUT: LiteralString = """
SELECT repository, lab, target, sum(attempt - 1) AS repeated,
       avg(CASE WHEN attempt = 1 THEN leased_at - queued_at END) AS waited
  FROM nightjar_device_jobs WHERE lab = %(lab)s AND leased_at > %(since)s GROUP BY repository, lab, target
"""
WITHOUT_ANSWER: LiteralString = """
SELECT repository, lab, target, count(*) AS jobs FROM nightjar_device_jobs
 WHERE ended_at > 0 AND ended_at > %(since)s AND ended_for IN (%(no_answer)s, %(no_device)s)
 GROUP BY repository, lab, target
"""


@dataclass
class MeasuredTarget:
    """The jobs of a target: open ones by state, and those that ended in the last day by outcome.

    `oldest` is the number of seconds that the oldest queued job has waited. `claim` is the average time in seconds
    until a lab first claimed a job, None if none was claimed. `repeated` counts hand-outs after the first one,
    `unanswered` counts jobs that no lab claimed or finished.
    """

    states: dict[DeviceJobState, int] = field(default_factory=lambda: dict.fromkeys(OPEN, 0))
    oldest: float = 0.0
    claim: float | None = None
    repeated: int = 0
    unanswered: int = 0


async def measure_jobs(connector: Connector, labs: Iterable[str], moment: float) -> Mapping[TargetKey, MeasuredTarget]:
    """Measure the jobs of these labs, at a moment in seconds since 1970.

    Raises DatabaseFailure when the database cannot be reached.
    """
    targets: dict[TargetKey, MeasuredTarget] = defaultdict(MeasuredTarget)
    since = moment - WINDOW
    for row in await connector.execute_query_all_async(BY_STATE):
        state, measured = DeviceJobState(row["state"]), targets[_target_of(row)]
        measured.states[state] = int(row["jobs"])
        if state is DeviceJobState.QUEUED:
            measured.oldest = max(0.0, moment - float(row["oldest"]))
    for lab in labs:
        for row in await connector.execute_query_all_async(HANDED_OUT, lab=lab, since=since):
            measured = targets[_target_of(row)]
            measured.repeated = int(row["repeated"])
            measured.claim = None if row["waited"] is None else float(row["waited"])
    ends = {"no_answer": JobEnd.NO_ANSWER.value, "no_device": JobEnd.NO_DEVICE.value}
    for row in await connector.execute_query_all_async(WITHOUT_ANSWER, since=since, **ends):
        targets[_target_of(row)].unanswered = int(row["jobs"])
    return targets


def _target_of(row: Mapping[str, Any]) -> TargetKey:
    return TargetKey(row["repository"], row["lab"], row["target"])
