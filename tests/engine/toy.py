"""A processor for tests: the payload says what it plans and how it fails, and it records its actions in a world.

The world is a SQLite file that survives the process, so a test sees what was done, in which order and how often.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gidgethub import BadRequest

from bot.core.errors import Away, GiveWay, PayloadError, RefusedToPerson, TryAgain, UnknownHandler, UserError
from bot.core.events import Delivery, Repository
from bot.engine.changes import Changes
from bot.engine.internal import InternalEvent
from bot.engine.processor import ErrorKind
from bot.engine.records import Record
from bot.engine.retry import LostTooOften
from bot.engine.service import AppliedEffect, ConclusionJob, EffectJob, PlannedEffect, PlannedEffects, Routing
from bot.engine.worker.guard import OverTime
from bot.github.errors import NotInstalled, kind_of
from tests.waiting import DEADLINE, until

REPOSITORY = {"id": 1, "full_name": "octocat/compiler"}
LONGEST_WAIT = DEADLINE
SORRY = "Something went wrong on our side; the log has it under {guid}."
AGAIN = "It runs again in an hour."

TABLES = """
CREATE TABLE IF NOT EXISTS passes (point TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS writes (n INTEGER PRIMARY KEY, key TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS happenings (
    n INTEGER PRIMARY KEY, at REAL NOT NULL, pid INTEGER NOT NULL, what TEXT NOT NULL
);
"""


class World:
    """The records of processors."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=20)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(TABLES)

    def close(self) -> None:
        self._connection.close()

    def passed(self, point: str) -> int:
        """Count another pass of a point; return the number of earlier passes."""
        count = self._connection.execute(
            "INSERT INTO passes VALUES (?, 1) ON CONFLICT (point) DO UPDATE SET count = count + 1 RETURNING count",
            (point,),
        ).fetchone()
        return int(count[0]) - 1

    def passes(self, point: str) -> int:
        row = self._connection.execute("SELECT count FROM passes WHERE point = ?", (point,)).fetchone()
        return int(row[0]) if row else 0

    def write(self, key: str, text: str) -> None:
        self._connection.execute("INSERT INTO writes (key, text) VALUES (?, ?)", (key, _storable(text)))

    def says(self, key: str, text: str) -> bool:
        """Return whether this is the last text that was written under a key."""
        row = self._connection.execute("SELECT text FROM writes WHERE key = ? ORDER BY n DESC", (key,)).fetchone()
        return row is not None and row[0] == _storable(text)

    @property
    def written(self) -> list[str]:
        """Return the written keys in order; a key that was written twice occurs twice."""
        return [row[0] for row in self._connection.execute("SELECT key FROM writes ORDER BY n")]

    @property
    def texts(self) -> list[str]:
        return [row[0] for row in self._connection.execute("SELECT text FROM writes ORDER BY n")]

    def happened(self, happening: str) -> None:
        self._connection.execute(
            "INSERT INTO happenings (at, pid, what) VALUES (?, ?, ?)", (time.time(), os.getpid(), happening)
        )

    @property
    def happenings(self) -> list[str]:
        return [row[0] for row in self._connection.execute("SELECT what FROM happenings ORDER BY n")]

    def moments(self, prefix: str) -> list[tuple[str, float, int]]:
        """Return the events whose names have a prefix: name, time and process."""
        rows = self._connection.execute("SELECT what, at, pid FROM happenings ORDER BY n")
        return [(name, moment, pid) for name, moment, pid in rows if name.startswith(prefix)]


def _storable(text: str) -> str:
    return ascii(text)[1:-1]


class Impatient(Away):
    """An outage for which nobody waits any longer."""

    patience = -1.0


class Toy:
    """A processor that follows the scripts in payloads."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def handlers_for(self, delivery: Delivery) -> Routing:
        await self._go_through(f"route {delivery.guid}", delivery.payload.raw.get("route", {}))
        handlers = delivery.payload.raw.get("handlers", {})
        return Routing(tuple(handlers), "" if handlers else "nobody wants it")

    async def note(self, delivery: Delivery) -> None:
        self.world.happened(f"deliver {delivery.guid}")

    async def plan(self, delivery: Delivery, handler: str, intent: str) -> PlannedEffects:
        script = delivery.payload.raw["handlers"][handler]
        self.world.happened(f"plan {delivery.guid} {handler}")
        await self._go_through(f"plan {delivery.guid} {handler}", script)
        return planned(script)

    async def plan_failure(self, delivery: Delivery, handler: str, intent: str, message: str) -> PlannedEffects:
        script = delivery.payload.raw["handlers"][handler]
        if "answer" not in script:
            return PlannedEffects()
        effect = {"kind": "Answer", "text": message, **script["answer"]}
        return PlannedEffects((PlannedEffect(f"answer {delivery.guid}", effect),))

    def answering(self, delivery: Delivery) -> Sequence[str]:
        handlers = delivery.payload.raw.get("handlers", {})
        return [name for name, script in handlers.items() if "answer" in script]

    async def conclude(self, delivery: Delivery, job: ConclusionJob) -> PlannedEffects:
        self.world.happened(f"conclude {delivery.guid} {job.handler}")
        script = job.conclusion_basis
        await self._go_through(f"conclude {delivery.guid} {job.handler}", script)
        ended = [f"{effect.target}={effect.state}: {effect.text}" for effect in job.ended]
        text = " | ".join([*ended, *(["again"] if job.again else [])])
        effect = PlannedEffect("end", {"kind": "Write", **script.get("effect", {}), "text": text})
        return PlannedEffects((effect,), "as they ended")

    async def apply(self, job: EffectJob) -> AppliedEffect:
        key = f"{job.guid} {job.handler} {job.target}"
        self.world.happened(f"effect {key}")
        await self._go_through(f"effect {key}", job.effect)
        text = str(job.effect.get("text", ""))
        if self.world.says(key, text):
            return AppliedEffect("was there", changed=False)
        self.world.write(key, text)
        self._die(f"effect {key}", job.effect, "after")
        return AppliedEffect("written")

    def kind_of(self, error: BaseException) -> ErrorKind:
        return kind_of(error)

    def message(self, error: Exception, guid: str) -> str:
        if isinstance(error, UserError):
            return str(error)
        sorry = SORRY.format(guid=guid)
        return f"{sorry} {AGAIN}" if isinstance(error, LostTooOften) and error.runs_again else sorry

    async def _go_through(self, point: str, script: Mapping[str, Any]) -> None:
        passes = self.world.passed(point)
        self._die(point, script, "before")
        if "takes" in script:
            await asyncio.sleep(script["takes"])
        if "waits_for" in script:
            await until(lambda: self.world.passes(script["waits_for"]), deadline=LONGEST_WAIT)
        self._die(point, script, "midway")
        errors: Sequence[str] = script.get("errors", [])
        if passes < len(errors):
            raise error_of(errors[passes])
        if script.get("always"):
            raise error_of(script["always"])

    def _die(self, point: str, script: Mapping[str, Any], stage: str) -> None:
        """End the process as a power cut does, the first `deaths` times that it passes a point."""
        if script.get("dies") == stage and self.world.passed(f"{point} dies") < script.get("deaths", 1):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Tally:
    """How often an effect with `counts` was stored with its plan."""

    count: int


TALLY = Record("toy-tally", 1, Tally, "how often something was counted", days=None)


async def count(target: str, changes: Changes) -> AppliedEffect:
    """Count a target, as an effect that is stored with its plan."""
    await changes.change(TALLY.of(target), lambda tally: Tally(tally.count + 1 if tally else 1))
    return AppliedEffect("counted")


EVENT = InternalEvent("nightjar.toy", Tally, guid=lambda _, tally: f"toy:{tally.count}", lock=lambda _, __: "toy")


async def announce(changes: Changes) -> AppliedEffect:
    """Announce an event, as an effect that is stored with its plan; its delivery has the lock `toy`."""
    await changes.announce(EVENT, Repository(1, "octocat/compiler", None), Tally(1))
    return AppliedEffect("announced")


def planned(script: Mapping[str, Any]) -> PlannedEffects:
    effects = [
        PlannedEffect(e["target"], {"kind": "Write", **e}, _stored_with_plan(e)) for e in script.get("effects", [])
    ]
    return PlannedEffects(tuple(effects), "as the payload says", conclusion_basis=script.get("conclude"))


def _stored_with_plan(effect: Mapping[str, Any]) -> Callable[[Changes], Awaitable[AppliedEffect]] | None:
    if effect.get("announces"):
        return announce
    return partial(count, effect["target"]) if effect.get("counts") else None


def error_of(name: str) -> Exception:
    """Return the error that a script names.

    It is user, refused, unknown:NAME, payload, fault, again, again:SECONDS, or gives way:SECONDS.
    """
    match name.partition(":"):
        case ["refused", _, text]:
            return RefusedToPerson(text or "No, and this is why.")
        case ["user", _, text]:
            return UserError(text or "No, and this is why.")
        case ["unknown", _, name]:
            return UnknownHandler(name)
        case ["payload", _, _]:
            return PayloadError("pull_request.head.sha", "is missing where text was expected")
        case ["again", _, ""]:
            return TryAgain("not yet")
        case ["gives way", _, seconds]:
            return GiveWay("others come first", retry_in=float(seconds))
        case ["again", _, seconds]:
            return TryAgain("at a given time", retry_in=float(seconds))
        case ["lost", _, _]:
            return LostTooOften(3)
        case ["away", _, _]:
            return Impatient("the service does not answer")
        case ["over-time", _, _]:
            return OverTime(900.0)
        case ["not-installed", _, _]:
            return NotInstalled("the installation is suspended")
        case ["forbidden", _, _]:
            return BadRequest(HTTPStatus.FORBIDDEN, "Resource not accessible by integration")
        case _:
            return RuntimeError(f"a fault of ours: {name}")


def body(handlers: Mapping[str, Any], **members: Any) -> str:
    """Return the raw text of a payload with a script for each handler."""
    return json.dumps({"action": "created", "repository": REPOSITORY, "handlers": handlers, **members})


def writes(*targets: str, **script: Any) -> dict[str, Any]:
    """Return the script of a handler that plans some plain effects."""
    return {"effects": [{"target": target} for target in targets], **script}
