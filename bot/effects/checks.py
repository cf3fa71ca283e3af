"""Check runs: one per name and commit, updated if GitHub's API allows the change, otherwise replaced by a new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import structlog

from bot.core.events import Payload
from bot.effects import texts
from bot.engine.records import Record
from bot.github.access import CHECKS, WritePermissions
from bot.github.addresses import check_run_on_github
from bot.github.check_runs import COMPLETED, Annotation, CheckContent
from bot.github.errors import is_unprocessable, message_of
from bot.github.limits.ledger import HeadWrite, about_head
from bot.plan.effect import Applied, EffectContext

FOR_COMMIT = "/repos/{+repo}/commits/{sha}/check-runs{?check_name,app_id,filter}"
CHECK_RUNS = "/repos/{+repo}/check-runs"
ONE_CHECK_RUN = "/repos/{+repo}/check-runs/{id}"
ANNOTATIONS = "/repos/{+repo}/check-runs/{id}/annotations"

log = structlog.get_logger(__name__)


_AnnotationKey = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class WrittenCheckRun:
    """A check run of ours: GitHub's ID, the `as_of` of its content, and what it says.

    `title` is empty in a record of an earlier release; `conclusion` is empty also while the check run is not completed.
    `again` is the `as_of` of the last request for a new run, and `over` the newest run at the time of that request.
    """

    as_of: float = 0.0
    id: int = 0
    again: float | None = None
    over: int = 0
    title: str = ""
    conclusion: str = ""


CHECK_RUN = Record("check-run", 1, WrittenCheckRun, "a check run of ours on a commit", days=90)


@dataclass(frozen=True, slots=True)
class PutCheckRun:
    """Ensure that the newest check run of a name on a commit has this content.

    `as_of` is when its plan began to read the data that it shows, in seconds since 1970. The plans for one check are
    made one after the other, but a retry may come late: an older effect does not overwrite newer content. `again`:
    somebody requested the check again. GitHub has reset its suite, so a new run is created even if the newest one
    already has this content.
    """

    permissions: ClassVar[WritePermissions] = frozenset({CHECKS})

    name: str
    sha: str
    external_id: str
    content: CheckContent
    as_of: float
    again: bool = False
    details_url: str = ""
    """The target of the link *Details*; if it is empty, GitHub links its own page."""
    head_since: float | None = None
    """When the commit appeared, in seconds since 1970. If GitHub's limits are tight, check runs of
    newer heads are written first. None: this one waits for no other."""

    @property
    def effect_key(self) -> str:
        """The commit and the check's name."""
        return f"check:{self.sha}:{self.name}"

    async def apply(self, context: EffectContext) -> Applied:
        """Find the newest run of the name; then write nothing, the differences, or a new run."""
        key = f"{context.repository.id}:{self.effect_key}"
        with about_head(None if self.head_since is None else HeadWrite(key, self.head_since)):
            return await self._ensure(context)

    async def _ensure(self, context: EffectContext) -> Applied:
        """Ensure the content; the caller has set the rank of the head for the writes.

        An update only adds annotations, so it sends those that GitHub does not have. GitHub's API cannot remove an
        annotation, so a run with outdated annotations is replaced by a new run.
        """
        key = CHECK_RUN.of(context.repository.id, self.sha, self.name)
        record = await context.records.get(key) or WrittenCheckRun()
        written = record.as_of
        if written > self.as_of:
            return Applied(texts.CHECK_NEWER.format(name=self.name), changed=False, page=check_run_on_github(record.id))
        if self.again and written == self.as_of:
            if context.writes.may_have_twins:
                await self._supersede_twins(context, await self._newest(context, record.id))
            return Applied(texts.CHECK_SAME.format(name=self.name), changed=False, page=check_run_on_github(record.id))
        newest = await self._newest(context, record.id)
        if context.writes.may_have_twins:
            await self._supersede_twins(context, newest)
        if self.again and record.again != self.as_of:
            # After a crash, the next try recognizes by `over` whether the new run was already created.
            record = replace(record, again=self.as_of, over=newest.integer("id") if newest else 0)
            await context.records.put(key, record)
        if newest is None or (self.again and newest.integer("id") == record.over) or self._must_restart(newest):
            applied, number = await self._create(context)
        else:
            applied, number = await self._change(context, newest)
        # Last: after a crash before this, the next try looks at GitHub again and finds what was written.
        content = self.content
        written_run = WrittenCheckRun(self.as_of, number, title=content.title, conclusion=content.conclusion)
        await context.records.put(key, written_run)
        return replace(applied, page=check_run_on_github(number))

    def _must_restart(self, check_run: Payload) -> bool:
        """Return whether a completed check run must become pending again, which requires a new run."""
        return self.content.status != COMPLETED and check_run.text("status") == COMPLETED

    async def _change(self, context: EffectContext, check_run: Payload) -> tuple[Applied, int]:
        """Update a check run, or replace it; return the outcome, and the ID of the run with this content."""
        unchanged = Applied(texts.CHECK_SAME.format(name=self.name), changed=False), check_run.integer("id")
        annotation_count = check_run.integer("output", "annotations_count")
        has_content = self._has_content(check_run)
        if has_content and not annotation_count and not self.content.annotations:
            return unchanged
        url_vars = {"repo": context.repository.full_name, "id": str(check_run.integer("id"))}
        # Request them only if there are any, which saves a request for most check runs.
        existing = await _annotations(context, url_vars) if annotation_count else Counter[_AnnotationKey]()
        expected = Counter(map(_annotation_key, self.content.annotations))
        if existing - expected:
            return await self._create(context)
        if has_content and existing == expected:
            return unchanged
        # GitHub appends the annotations of an update to the existing ones:
        # https://docs.github.com/en/rest/checks/runs#update-a-check-run
        _, refused = await self._send(_without(self.content, existing), partial(_patch_check_run, context, url_vars))
        return self._applied(refused), check_run.integer("id")

    async def _newest(self, context: EffectContext, recorded_id: int) -> Payload | None:
        """Return our newest run of the name; one request, or two if GitHub's list does not show the recorded one."""
        check_runs = await self._runs(context, "latest")
        # The list lags behind a run that was just created: docs/decisions/late-writes.md
        if recorded_id and all(run.integer("id") < recorded_id for run in check_runs):
            url_vars = {"repo": context.repository.full_name, "id": str(recorded_id)}
            return Payload(await context.github.getitem(ONE_CHECK_RUN, url_vars=url_vars), "check run")
        return max(check_runs, key=lambda run: run.integer("id"), default=None)

    async def _runs(self, context: EffectContext, run_filter: Literal["latest", "all"]) -> list[Payload]:
        url_vars = {
            "repo": context.repository.full_name,
            "sha": self.sha,
            "check_name": self.name,
            "app_id": str(context.me.app_id),
            "filter": run_filter,
        }
        answer = Payload(await context.github.getitem(FOR_COMMIT, url_vars=url_vars), "check runs")
        return [run for run in answer.items("check_runs") if run.integer("app", "id") == context.me.app_id]

    async def _supersede_twins(self, context: EffectContext, newest: Payload | None) -> None:
        """Mark other runs with the same content as superseded: writes that took effect late created them."""
        if newest is None or not self._has_content(newest):
            return
        body = {"status": "completed", "conclusion": "neutral", "output": texts.CHECK_SUPERSEDED}
        for run in await self._runs(context, "all"):
            if run.integer("id") != newest.integer("id") and self._has_content(run):
                url_vars = {"repo": context.repository.full_name, "id": str(run.integer("id"))}
                await context.github.patch(ONE_CHECK_RUN, url_vars=url_vars, data=body)

    async def _create(self, context: EffectContext) -> tuple[Applied, int]:
        identity = {"name": self.name, "head_sha": self.sha}
        created, refused = await self._send(self.content.annotations, partial(_post_check_run, context, identity))
        return self._applied(refused), created.integer("id")

    async def _send(
        self, annotations: Sequence[Annotation], send: Callable[[dict[str, Any]], Awaitable[Payload]]
    ) -> tuple[Payload, str]:
        """Send the body with these annotations, or without any if GitHub refuses them; return its reason, or ""."""
        try:
            return await send(self._body(annotations)), ""
        except Exception as error:
            # A check run without annotations still shows the result; a missing one would block everybody.
            if not annotations or not is_unprocessable(error):
                raise
            log.warning("GitHub refused annotations", check=self.name, sha=self.sha, reason=message_of(error))
            return await send(self._body(())), message_of(error)

    def _applied(self, refused: str) -> Applied:
        text = texts.CHECK_WRITTEN.format(name=self.name, sha=self.sha[:7], title=self.content.title)
        return Applied(texts.WITHOUT_ANNOTATIONS.format(said=text, reason=refused) if refused else text)

    def _has_content(self, check_run: Payload) -> bool:
        content, output = self.content, check_run.at("output")
        return (
            (check_run.text("status"), check_run.text("conclusion")) == (content.status, content.conclusion)
            and check_run.text("external_id") == self.external_id
            and (output.text("title"), output.text("summary")) == (content.title, content.summary)
            and output.text("text") == content.text
            and (not self.details_url or check_run.text("details_url") == self.details_url)
        )

    def _body(self, annotations: Iterable[Annotation]) -> dict[str, Any]:
        content = self.content
        output: dict[str, Any] = {"title": content.title, "summary": content.summary, "text": content.text}
        sent = [_as_json(annotation) for annotation in annotations]
        return {
            "external_id": self.external_id,
            **({"details_url": self.details_url} if self.details_url else {}),
            "status": content.status,
            **({"conclusion": content.conclusion} if content.conclusion else {}),
            "output": {**output, **({"annotations": sent} if sent else {})},
            "actions": [
                {"label": action.label, "description": action.description, "identifier": action.identifier}
                for action in content.actions
            ],
        }


async def _patch_check_run(context: EffectContext, url_vars: Mapping[str, str], body: dict[str, Any]) -> Payload:
    return Payload(await context.github.patch(ONE_CHECK_RUN, url_vars=url_vars, data=body), "check run")


async def _post_check_run(context: EffectContext, identity: Mapping[str, str], body: dict[str, Any]) -> Payload:
    url_vars = {"repo": context.repository.full_name}
    return Payload(await context.github.post(CHECK_RUNS, url_vars=url_vars, data={**identity, **body}), "check run")


async def _annotations(context: EffectContext, url_vars: dict[str, str]) -> Counter[_AnnotationKey]:
    counter: Counter[_AnnotationKey] = Counter()
    async for item in context.github.getiter(ANNOTATIONS, url_vars=url_vars):
        sent = Payload(item, "annotation")
        counter[
            (sent.string("path"), sent.integer("start_line"), sent.text("title"), sent.text("message").strip())
        ] += 1
    return counter


def _annotation_key(annotation: Annotation) -> _AnnotationKey:
    return (annotation.path, annotation.line, annotation.title, annotation.message.strip())


def _without(content: CheckContent, existing: Counter[_AnnotationKey]) -> list[Annotation]:
    """Return the annotations that GitHub does not have."""
    rest = existing.copy()
    new = []
    for annotation in content.annotations:
        if rest[_annotation_key(annotation)]:
            rest[_annotation_key(annotation)] -= 1
        else:
            new.append(annotation)
    return new


def _as_json(annotation: Annotation) -> dict[str, Any]:
    body = {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
    }
    if annotation.column:
        # GitHub accepts columns only if both lines are the same:
        # https://docs.github.com/en/rest/checks/runs#create-a-check-run
        body |= {"start_column": annotation.column, "end_column": annotation.column}
    return {**body, "raw_details": annotation.details} if annotation.details else body
