"""Report tests that ran at the merge base and are skipped at a pull request's head, and the reverse, suite by suite.

So nobody can skip a suite unnoticed. This differs from the predecessor on purpose: a test that the base does not have
did not run there; a suite that the base does not have is not an error; a missing file of required tests is reported,
not read as an empty one; and the base is the nearest tested ancestor, not the current `main` (TVM #13368).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.errors import UserError
from bot.effects.section_state import SECTION_EVENT
from bot.github.commits.contents import FILE, found_at
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.ci_reports import sections as reports
from handlers.skipped_tests import texts
from handlers.skipped_tests.config import SKIPPED_TESTS
from handlers.skipped_tests.decide import Required, read_required
from handlers.skipped_tests.section import describe_skips

if TYPE_CHECKING:
    from handlers.skipped_tests.config import SkippedTests

NAME = "skipped-tests"
KEY = "skipped_tests"


router = Router()
reports.request_when_tested(router, NAME, KEY, lambda config: config.of(SKIPPED_TESTS))


async def report_failure(context: Context, message: str) -> Plan:
    """Show in the section that there are no results, and why."""
    return reports.failure_section(context, NAME, texts.SKIPS_FAILED, message, reason=texts.WHY_SKIPS_FAILED)


@router.on(SECTION_EVENT.name, NAME, name=NAME, feature=KEY, on_failure=report_failure)
async def show(context: Context) -> Plan:
    """Show which tests are skipped at a head, if it is still the head."""
    config, event = context.config.of(SKIPPED_TESTS), SECTION_EVENT.read(context.delivery.payload)
    if config is None:
        return NOTHING
    outcomes = await reports.read_outcomes(context, config, event)
    if isinstance(outcomes, str):
        return Plan(why=outcomes)
    required = await _required(context, config, outcomes.branch)
    listed_in = config.required or ""
    return await reports.compare(context, NAME, event, outcomes, describe_skips, required, listed_in, outcomes.branch)


async def _required(context: Context, config: SkippedTests, branch: str) -> Required:
    """Read which tests are required at the base branch; one request, and none where app.yaml names no file."""
    if config.required is None:
        return Required()
    file = await found_at(context.github, context.repository.full_name, config.required, branch)
    if file is None:
        return Required(problem=texts.NO_FILE)
    if file.kind != FILE:
        return Required(problem=texts.NO_PLAIN_FILE)
    # The contents API sends no text of files over 1 MB:
    # https://docs.github.com/rest/repos/contents#get-repository-content
    if file.size and not file.raw:
        return Required(problem=texts.FILE_TOO_LARGE)
    try:
        return Required(read_required(file.raw))
    except UserError as error:
        return Required(problem=str(error))
