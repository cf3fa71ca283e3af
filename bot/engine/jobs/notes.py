"""The outcome of each job: one note per job, beside its row, written by the worker that ran it.

The column `text` holds a JSON object: `text` for operators, `message` for people, the `tries` so far, and in `about`
the subject of a delivery or the page of an effect:

    {"text": "for merge", "message": "", "tries": {"faults": 0}, "about": {"action": "created", "number": 42}, ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, LiteralString, cast

from bot.engine.retry import Tries
from bot.engine.sql.portable import JSONDict, dumps, loads
from bot.engine.sql.transactions import Connector

ROUTED, IGNORED, PLANNED, CONCLUDED = "routed", "ignored", "planned", "concluded"
APPLIED, UNCHANGED = "applied", "unchanged"
RETRYING, FAILED, REFUSED, REPLAYED = "retrying", "failed", "refused", "replayed"
AWAY = "away"
"""The job waits for a service that does not answer, and runs at once when the service answers again."""
WRITING = "writing"
"""A write of the job was sent, and its outcome is not known yet."""

REPLACE: LiteralString = (
    "ON CONFLICT (job_id) DO UPDATE SET at = excluded.at, outcome = excluded.outcome, text = excluded.text"
)
WRITE: LiteralString = (
    """
INSERT INTO nightjar_notes (job_id, at, outcome, text)
VALUES (%(job_id)s, date_part('epoch', now()), %(outcome)s, %(text)s)
"""
    + REPLACE
)
READ: LiteralString = "SELECT outcome, text AS note FROM nightjar_notes WHERE job_id = %(job_id)s"
FORGET: LiteralString = """
UPDATE nightjar_notes SET at = date_part('epoch', now()), outcome = 'replayed', text = '{}' WHERE job_id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """An effect on our own database, which was stored together with its plan.

    `place` is its index among all effects of the plan, `outcome` is `APPLIED` or `UNCHANGED`.
    """

    place: int
    target: str
    effect: Mapping[str, Any]
    outcome: str
    text: str


FOR_HANDLERS = "for {handlers}"
UNKNOWN_END = "it ended without a recorded reason"
UNREADABLE_NOTE = "its stored note cannot be read: {reason}"
ODD_FIELD = "a field has a value of another type"


class UnreadableNote(Exception):
    """The stored note of a job is damaged, or another version wrote it in a form that this one does not know."""

    def __init__(self, reason: str) -> None:
        super().__init__(UNREADABLE_NOTE.format(reason=reason))


@dataclass(frozen=True, slots=True)
class Note:
    """The result of a job's last run; `outcome` is empty if the job has not ended yet."""

    outcome: str = ""
    text: str = ""
    message: str = ""
    tries: Tries = field(default_factory=Tries)
    about: Mapping[str, Any] = field(default_factory=dict)
    writes: Mapping[str, Any] = field(default_factory=dict)
    """The writes that the job has sent and must not send twice: `bot.engine.writes.Writes.state`."""
    value: Any = None
    """The effect's value for the conclude stage, as JSON."""
    is_user_error: bool = False
    """Whether the job failed with a `UserError`: `message` then says what somebody has to do."""
    stored: tuple[StoredPart, ...] = ()
    """The effects of a plan that were stored together with it."""

    @classmethod
    def read(cls, outcome: str | None, stored: str | None) -> Note:
        """Read a row of the notes' table; a job without a row has an empty note. Raises `UnreadableNote`."""
        if outcome is None or stored is None:
            return cls()
        try:
            value = cast("dict[str, Any]", loads(stored))
            note = cls(
                outcome=outcome,
                text=value.get("text", ""),
                message=value.get("message", ""),
                tries=Tries.read(value.get("tries", {})),
                about=value.get("about", {}),
                writes=value.get("writes", {}),
                value=value.get("value"),
                is_user_error=value.get("is_user_error", False),
                stored=tuple(StoredPart(**part) for part in value.get("stored", ())),
            )
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableNote(f"{type(error).__name__}: {error}") from error
        if not (
            isinstance(note.text, str)
            and isinstance(note.message, str)
            and isinstance(note.about, dict)
            and isinstance(note.writes, dict)
        ):
            raise UnreadableNote(ODD_FIELD)
        return note

    @classmethod
    def shown(cls, outcome: str | None, stored: str | None) -> Note:
        """Read a row like `read`, for people: the text of an unreadable note says why it cannot be read."""
        try:
            return cls.read(outcome, stored)
        except UnreadableNote as error:
            return cls(outcome=outcome or "", text=str(error))

    def failed(self, text: str) -> Note:
        """Return this note for a job that fails now, with the same tries and writes."""
        return replace(self, outcome=FAILED, text=text)

    def written(self) -> str:
        """Return the JSON text that is stored."""
        note: JSONDict = {
            "text": self.text,
            "message": self.message,
            "tries": self.tries.asdict(),
            "about": dict(self.about),
            "writes": dict(self.writes),
            "value": self.value,
            "is_user_error": self.is_user_error,
            **({"stored": [asdict(part) for part in self.stored]} if self.stored else {}),
        }
        return dumps(note)


async def write_note(connector: Connector, job_id: int, note: Note) -> None:
    """Store a job's note in place of the one before."""
    await connector.execute_query_async(WRITE, job_id=job_id, outcome=note.outcome, text=note.written())


async def read_note(connector: Connector, job_id: int) -> Note:
    """Return a job's note, or an empty one."""
    rows = await connector.execute_query_all_async(READ, job_id=job_id)
    return Note.read(rows[0]["outcome"], rows[0]["note"]) if rows else Note()
