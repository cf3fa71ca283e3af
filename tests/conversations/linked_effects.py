"""Check that each effect of a conversation links a page on GitHub that shows what it did, and that the page exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from bot.app.features import ALL_FEATURES
from bot.engine.jobs.definitions import repository_of
from bot.engine.jobs.notes import APPLIED, Note
from bot.github.access import NO_PERMISSIONS
from bot.github.addresses import stored_page

if TYPE_CHECKING:
    from bot.engine.sql.transactions import Connector
    from bot.plan.effect import Effect
    from sandbox import GitHubSandbox
    from sandbox.model.repository import Repository

ELSEWHERE = frozenset({"StartLabWorkflow"})
"""Effects on another repository, whose pages the story does not link."""


def writes(kind: type[Effect]) -> bool:
    """Return whether effects of a kind may write to GitHub: they declare permissions, or a property has them."""
    declared: object = kind.permissions
    return declared != NO_PERMISSIONS


WRITERS = {kind.__name__ for feature in ALL_FEATURES for kind in feature.effects if writes(kind)} - ELSEWHERE
EFFECTS: LiteralString = """
SELECT job.args, note.outcome, note.text AS note
  FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name = 'effect' AND job.status = 'succeeded'
"""


async def unlinked_effects(connector: Connector, github: GitHubSandbox) -> list[str]:
    """Return the effects that wrote something on GitHub but link no existing page."""
    rows = await connector.execute_query_all_async(EFFECTS)
    return [
        f"{row['args']['effect']['kind']} {page!r}" for row in rows if (page := _missing_page(row, github)) is not None
    ]


def _missing_page(row: Any, github: GitHubSandbox) -> str | None:
    """Return the page of an effect if it does not exist; None if all is well."""
    note = Note.read(row["outcome"], row["note"])
    if row["args"]["effect"]["kind"] not in WRITERS or note.outcome != APPLIED:
        return None
    repository_id = repository_of(row["args"]).id
    repository = next((repo for repo in github.repositories.values() if repo.id == repository_id), None)
    page = note.about.get("page", "")
    exists = stored_page(page) and (repository is None or is_there(page, repository))  # it may have been deleted since
    return None if exists else str(page)


def is_there(page: str, repository: Repository) -> bool:
    """Return whether the subject of a page exists in a repository; a comment may have been deleted since."""
    path, _, _ = page.partition("#")
    kind, *rest = path.split("/")
    match kind, rest:
        case (("pull" | "issues"), [number]):
            return int(number) in repository.issues
        case "runs", [number]:
            return any(run.id == int(number) for suite in repository.suites for run in suite.runs)
        case "actions", ["runs", number, *_]:
            return any(run.id == int(number) for run in repository.workflow_runs)
        case "commit", [sha, *_]:
            return sha in repository.git.commits
        case "tree", parts:
            return bool(parts)
    return False
