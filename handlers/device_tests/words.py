"""Build answers and check runs about jobs from the sentences in `texts`. Pure.

Text from labs is shown as code only: it comes from outside, and must not become Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.github.check_runs import IN_PROGRESS, NEUTRAL, QUEUED, CheckContent
from bot.github.markdown import code, truncate
from handlers.device_tests import texts
from handlers.device_tests.model import MOST_ATTEMPTS, DeviceJob, DeviceJobState, JobEnd, ShownStep
from handlers.device_tests.waiting import QueuePlace

MINUTE, HOUR, DAY = 60, 3600, 86_400
MOST_NOTE = 200
"""Characters of a lab's text that are shown."""


def time_text(seconds: float) -> str:
    """Write a length of time in the unit that fits, as in `40 minutes`."""
    for unit, singular, plural in texts.UNITS:
        if seconds >= 2 * unit or unit == MINUTE:
            count = max(1, round(seconds / unit))
            return f"{count} {singular if count == 1 else plural}"
    raise AssertionError("the last unit fits everything")


def place_text(place: QueuePlace | None) -> str:
    """Say how many tests are before a job, and when its test is expected to begin."""
    if place is None or not place.jobs_before:
        return texts.NEXT
    queue = texts.ONE_BEFORE if place.jobs_before == 1 else texts.MANY_BEFORE.format(count=place.jobs_before)
    return f"{queue}; {texts.EXPECTED.format(time=time_text(place.seconds))}" if place.seconds >= MINUTE else queue


def status_row(job: DeviceJob, place: QueuePlace | None, moment: float, approve_command: str) -> str:
    """Return a line about a job for a list; `approve_command` approves it, and `moment` is the current time."""
    match job.state:
        case DeviceJobState.WAITING:
            status = texts.STATUS_WAITING.format(command=approve_command)
        case DeviceJobState.QUEUED:
            status = texts.STATUS_QUEUED.format(place=place_text(place))
        case DeviceJobState.LEASED:
            status = texts.STATUS_RUNNING.format(time=time_text(moment - job.leased_at), attempt=job.attempt)
            status += f" ({code(truncate(job.note, MOST_NOTE))})" if job.note else ""
        case DeviceJobState.DONE:
            status = texts.STATUS_DONE
        case _:
            status = texts.ENDS[job.end].rstrip(".")
    return f"- {code(job.about.full_name)}: {status}"


def step_content(
    job: DeviceJob, place: QueuePlace | None, contacts: Sequence[str], test_command: str, notice: str = ""
) -> CheckContent:
    """Return what the check run of a job says; `test_command` requests another test.

    `notice` (Markdown) says why the target accepts fewer requests than usual, empty if it accepts all.
    """
    last = [*filter(None, [notice]), texts.ADVISORY]
    people = texts.REQUESTED_BY.format(login=code(job.requested_by.login))
    if job.approved_by.id:
        people = f"{people} {texts.APPROVED_BY.format(login=code(job.approved_by.login))}"
    match job.to_show:
        case ShownStep.QUEUED:
            title, summary = texts.QUEUED_TITLE.format(place=place_text(place)), texts.QUEUED_SUMMARY
            return CheckContent("", title, "\n\n".join([people, summary, *last]), status=QUEUED)
        case ShownStep.RUNNING:
            title = texts.RUNNING_TITLE.format(attempt=job.attempt, most=MOST_ATTEMPTS)
            lines = [people, texts.RUNNING_SUMMARY, *_note(job), *last]
            return CheckContent("", title, "\n\n".join(lines), status=IN_PROGRESS)
        case _:
            lines = [texts.ENDS[job.end], *_note(job), people, texts.ASK_AGAIN.format(command=code(test_command))]
            if contacts and job.state is DeviceJobState.ENDED:
                lines.append(texts.CONTACTS.format(contacts=", ".join(map(code, contacts))))
            return CheckContent(NEUTRAL, texts.END_TITLES[job.end], "\n\n".join([*lines, *last]))


def _note(job: DeviceJob) -> list[str]:
    # The lab's text does not explain any other end.
    if not job.note or job.end not in (JobEnd.NONE, JobEnd.LAB_FAILED):
        return []
    return [texts.LAB_SAYS.format(note=code(truncate(job.note, MOST_NOTE)))]
