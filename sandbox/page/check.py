"""Check runs as a person sees them: a line among the checks of a commit, and a page of its own with its buttons."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from sandbox.model.checks import CheckRun

from .layout import choose_person, frame, icon, moment, person
from .markdown import rendered

if TYPE_CHECKING:
    from sandbox.model.home import Home
    from sandbox.model.workflows import WorkflowRun

ANNOTATIONS_SHOWN = 10
LINES_AROUND = 2
NEWER = "There is a newer run of this check."
UNKNOWN_FILE = "There is no such file at this commit."


def address(run: CheckRun) -> str:
    """Return the address of a check run's page."""
    return f"/{run.suite.repository.full_name}/runs/{run.id}"


def newest(run: CheckRun) -> CheckRun:
    """Return the newest run of the same App and name on the same commit; only that one counts."""
    return next(latest for latest in run.suite.latest if latest.name == run.name)


def marks(repository: Home, sha: str) -> str:
    """Return the marks of a commit's statuses and check runs, each a link to its details."""
    commit = f"/{repository.full_name}/commit/{sha}"
    links = [
        (commit, f"{status.context}: {status.description or status.state}", status.state)
        for status in sorted(repository.statuses(sha), key=lambda status: status.context)
    ]
    links += [
        (address(run), f"{run.name}: {run.title or _state(run)}", _state(run))
        for run in sorted(repository.check_runs(sha), key=lambda run: run.name)
    ]
    return "".join(f'<a href="{link}" title="{escape(label)}">{icon(state)}</a>' for link, label, state in links)


def check_run(run: CheckRun) -> str:
    """Return one check run in a list: a line that expands to its summary and annotations."""
    label = escape(run.title or _state(run).replace("_", " "))
    line = (
        f'{icon(_state(run))} <img class="avatar small" alt="" src="/avatars/{run.app.bot.id}">'
        f"<p><b>{escape(run.name)}</b> — {label}</p>"
    )
    details = f'<a href="{address(run)}">Details</a>'
    if not run.summary and not run.annotations:
        return f'<div class="check">{line}{details}</div>'
    annotations = "".join(_annotation(run, annotation) for annotation in run.annotations[:ANNOTATIONS_SHOWN])
    hidden = len(run.annotations) - ANNOTATIONS_SHOWN
    rest = f'<p class="quiet">and {hidden} more annotations</p>' if hidden > 0 else ""
    return (
        f'<details class="check"{" open" * bool(run.annotations)}><summary>{line}{details}</summary>'
        f'<div class="markdown">{rendered(run.summary or "")}</div>{annotations}{rest}</details>'
    )


def check_run_page(run: CheckRun) -> str:
    """Return the page of one check run, with its whole content and its buttons."""
    repository = run.suite.repository
    home, commit = f"/{repository.full_name}", f"/{repository.full_name}/commit/{run.head_sha}"
    title = f'<h2 class="verdict">{escape(run.title)}</h2>' if run.title else ""
    details = f' · <a href="{escape(run.details_url)}">View more details</a>' if run.details_url else ""
    completed = f" · {moment(run.completed_at)}" if run.completed_at else ""
    pulls = [
        f' · <a href="{home}/pull/{pull.number}">#{pull.number} {escape(pull.title)}</a>'
        for pull in repository.pulls
        if pull.head_sha == run.head_sha
    ]
    old = "" if newest(run) is run else f'<p class="older"><a href="{address(newest(run))}">{NEWER}</a></p>'
    content = (
        f"<h1>{icon(_state(run))} {escape(run.name)}</h1>"
        f'<p class="subtitle">{_state(run).replace("_", " ")} on '
        f'<a href="{commit}"><code>{run.head_sha[:10]}</code></a>'
        f"{''.join(pulls)}{completed}{details}</p>{old}{_buttons(run)}{title}"
        f'<div class="markdown">{rendered(run.summary or "")}</div>{_annotations(run)}'
        f'<div class="markdown">{rendered(run.text or "")}</div>'
    )
    crumbs = [(repository.full_name, home), (run.head_sha[:7], commit), (run.name, "")]
    return frame(run.name, crumbs, content)


def workflow_run_page(run: WorkflowRun) -> str:
    """Return the page of one workflow run, with the jobs of its newest attempt."""
    home, commit = f"/{run.repository.full_name}", f"/{run.repository.full_name}/commit/{run.head_sha}"
    jobs = "".join(check_run(job.check_run) for job in run.latest_jobs)
    state = run.conclusion or run.status
    content = (
        f"<h1>{icon(state)} {escape(run.name)} #{run.run_number}</h1>"
        f'<p class="subtitle">{escape(state.replace("_", " "))} on '
        f'<a href="{commit}"><code>{run.head_sha[:10]}</code></a>'
        f" · attempt {run.attempt} · {person(run.actor)} · {moment(run.updated_at)}</p>"
        f'<section class="checks">{jobs}</section>'
    )
    crumbs = [(run.repository.full_name, home), (run.head_sha[:7], commit), (run.name, "")]
    return frame(run.name, crumbs, content)


def _state(run: CheckRun) -> str:
    return run.conclusion or run.status


def _buttons(run: CheckRun) -> str:
    """Return the buttons, and the people who may press them: nobody is logged in here."""
    if not run.actions or newest(run) is not run:
        return ""
    buttons = "".join(
        f'<button name="action" value="{escape(action["identifier"])}" title="{escape(action["description"])}">'
        f"{escape(action['label'])}</button>"
        for action in run.actions
    )
    return f'<form class="buttons" method="post">{buttons}{choose_person(run.suite.repository)}</form>'


def _annotations(run: CheckRun) -> str:
    if not run.annotations:
        return ""
    annotations = "".join(_annotation(run, annotation) for annotation in run.annotations)
    return f"<h2>Annotations</h2>{annotations}"


def _annotation(run: CheckRun, annotation: dict[str, Any]) -> str:
    level = escape(str(annotation["annotation_level"]))
    place = f"{annotation['path']}:{annotation['start_line']}"
    title = f"<b>{escape(str(annotation['title']))}</b> " if annotation.get("title") else ""
    details = escape(str(annotation.get("raw_details") or ""))
    raw = f"<details><summary>Raw output</summary><pre>{details}</pre></details>" if details else ""
    message = f'<p class="message">{escape(str(annotation["message"]))}</p>'
    lines = _lines(run, str(annotation["path"]), int(annotation["start_line"]))
    return f'<div class="annotation {level}">{title}<code>{escape(place)}</code>{lines}{message}{raw}</div>'


def _lines(run: CheckRun, path: str, line: int) -> str:
    """Return the lines around an annotation, as they are at the commit."""
    text = run.suite.repository.git.commits[run.head_sha].files.get(path)
    if text is None:
        return f'<p class="quiet">{UNKNOWN_FILE}</p>'
    first = max(line - LINES_AROUND, 1)
    lines_shown = text.splitlines()[first - 1 : line + LINES_AROUND]
    rows = [
        f"<{tag}><i>{number:5}</i>  {escape(code)}</{tag}>"
        for number, code in enumerate(lines_shown, first)
        for tag in ["mark" if number == line else "span"]
    ]
    return f'<pre class="lines">{"".join(rows)}</pre>'
