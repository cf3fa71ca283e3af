"""Check runs: one of a name on a commit, written over as long as GitHub lets it say what it should, else superseded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.effects.base import Applied, EffectContext
from bot.github.check_runs import LEVEL, Annotation, CheckContent
from bot.payload import Payload

FOR_COMMIT = "/repos/{+repo}/commits/{sha}/check-runs{?check_name,app_id,filter}"
CHECK_RUNS = "/repos/{+repo}/check-runs"
ONE_CHECK_RUN = "/repos/{+repo}/check-runs/{id}"
ANNOTATIONS = "/repos/{+repo}/check-runs/{id}/annotations"

NEWER = "{name} shows something newer already"
SAME = "{name} said so already"

_Remark = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class PutCheckRun:
    """Make the newest check run of a name on a commit say this.

    `as_of` is when its plan began to read what it tells of, in seconds since 1970. The plans for one check are made one
    after the other, but a retry may come late: once something newer was written, what is older is left undone.
    `pressed_at` (ISO 8601) is when somebody asked for the check again: GitHub has reset its suite, so a run that is
    older is superseded even if it says the same.
    """

    name: str
    sha: str
    external_id: str
    content: CheckContent
    as_of: float
    pressed_at: str = ""

    @property
    def target(self) -> str:
        """The commit and the check's name."""
        return f"check:{self.sha}:{self.name}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look for the newest run of the name, then write nothing, what differs, or a new run.

        A PATCH adds its annotations to those that are there, so only those that GitHub does not have are sent; and a
        run whose annotations are no longer true is superseded by a new one, for none can be taken away.
        """
        record = f"hardware-check:{context.repository.id}:{self.name}:{self.sha}"
        stored = await context.records.get(record)
        if stored is not None and stored["as_of"] > self.as_of:
            return Applied(NEWER.format(name=self.name), changed=False)
        done = await self._write(context)
        await context.records.put(record, {"as_of": self.as_of})
        return done

    async def _write(self, context: EffectContext) -> Applied:
        shown = f"{self.name} on {self.sha[:7]}: {self.content.title}"
        found = await self._newest(context)
        if found is None or self._reset_since(found):
            return await self._create(context, shown)
        there = found.integer("output", "annotations_count")
        says_so = self._says_so(found)
        if says_so and not there and not self.content.annotations:
            return Applied(SAME.format(name=self.name), changed=False)
        where = {"repo": context.repository.full_name, "id": str(found.integer("id"))}
        known = await _annotations(context, where) if there else Counter[_Remark]()
        wanted = Counter(map(_remark, self.content.annotations))
        if known - wanted:
            return await self._create(context, shown)
        if says_so and known == wanted:
            return Applied(SAME.format(name=self.name), changed=False)
        await context.github.patch(ONE_CHECK_RUN, url_vars=where, data=self._body(_without(self.content, known)))
        return Applied(shown)

    async def _newest(self, context: EffectContext) -> Payload | None:
        """Return our newest run of the name; one request."""
        where = {
            "repo": context.repository.full_name,
            "sha": self.sha,
            "check_name": self.name,
            "app_id": str(context.me.app_id),
            "filter": "latest",
        }
        answer = Payload(await context.github.getitem(FOR_COMMIT, url_vars=where), "check runs")
        ours = [run for run in answer.items("check_runs") if run.integer("app", "id") == context.me.app_id]
        return max(ours, key=lambda run: run.integer("id"), default=None)

    async def _create(self, context: EffectContext, shown: str) -> Applied:
        body = {"name": self.name, "head_sha": self.sha, **self._body(self.content.annotations)}
        if self.pressed_at:
            # By this a try after a crash knows the run for the one that was asked for.
            body["completed_at"] = self.pressed_at
        await context.github.post(CHECK_RUNS, url_vars={"repo": context.repository.full_name}, data=body)
        return Applied(shown)

    def _says_so(self, found: Payload) -> bool:
        content, output = self.content, found.at("output")
        return (
            found.text("conclusion") == content.conclusion
            and found.text("external_id") == self.external_id
            and (output.text("title"), output.text("summary")) == (content.title, content.summary)
            and output.text("text") == content.text
        )

    def _reset_since(self, found: Payload) -> bool:
        completed = found.text("completed_at")
        return bool(self.pressed_at) and (not completed or _moment(completed) < _moment(self.pressed_at))

    def _body(self, annotations: Iterable[Annotation]) -> dict[str, Any]:
        content = self.content
        output: dict[str, Any] = {"title": content.title, "summary": content.summary, "text": content.text}
        sent = [_as_json(annotation) for annotation in annotations]
        return {
            "external_id": self.external_id,
            "status": "completed",
            "conclusion": content.conclusion,
            "output": {**output, **({"annotations": sent} if sent else {})},
            "actions": [
                {"label": action.label, "description": action.description, "identifier": action.identifier}
                for action in content.actions
            ],
        }


async def _annotations(context: EffectContext, where: dict[str, str]) -> Counter[_Remark]:
    found: Counter[_Remark] = Counter()
    async for item in context.github.getiter(ANNOTATIONS, url_vars=where):
        sent = Payload(item, "annotation")
        found[(sent.string("path"), sent.integer("start_line"), sent.text("title"), sent.text("message").strip())] += 1
    return found


def _remark(annotation: Annotation) -> _Remark:
    return (annotation.path, annotation.line, annotation.title, annotation.message.strip())


def _without(content: CheckContent, known: Counter[_Remark]) -> list[Annotation]:
    """Return the annotations that GitHub does not have."""
    rest = known.copy()
    new = []
    for annotation in content.annotations:
        if rest[_remark(annotation)]:
            rest[_remark(annotation)] -= 1
        else:
            new.append(annotation)
    return new


def _as_json(annotation: Annotation) -> dict[str, Any]:
    body = {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": LEVEL,
        "title": annotation.title,
        "message": annotation.message,
    }
    return {**body, "raw_details": annotation.details} if annotation.details else body


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
