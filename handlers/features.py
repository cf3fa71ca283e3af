"""All features, joined."""

from bot.commands import help
from bot.news import handler as news
from bot.plan.handler import joined
from handlers import docs_link, lint, merge_group, sections, slow_tests, welcome
from handlers.branches import last_good, nightly
from handlers.cc_reviewers import handler as cc_reviewers
from handlers.ci_decisions import skip_ci
from handlers.ci_tests import runtime, skipped_tests
from handlers.docker_update import handler as docker_update
from handlers.hardware import check_runs as hardware_results
from handlers.hardware import ingest_runs as hardware_runs
from handlers.hardware import regressions
from handlers.main_failures import handler as main_failures
from handlers.merge import commands as merge
from handlers.merge import waiting as merge_when_green
from handlers.repository_file import handler as repository_file
from handlers.rerun import commands as rerun
from handlers.stale_reviews import handler as stale_reviews
from handlers.team_tags import handler as team_tags

COMMANDS = (*slow_tests.COMMANDS, *rerun.COMMANDS, *merge.COMMANDS, *help.COMMANDS)
ROUTER = joined(
    [
        slow_tests.router,
        rerun.router,
        cc_reviewers.router,
        hardware_runs.router,
        hardware_results.router,
        regressions.router,
        nightly.router,
        last_good.router,
        main_failures.router,
        news.router,
        repository_file.router,
        merge.router,
        merge_when_green.router,
        merge_group.router,
        team_tags.router,
        welcome.router,
        lint.router,
        skip_ci.router,
        docs_link.router,
        skipped_tests.router,
        runtime.router,
        sections.router,
        stale_reviews.router,
        docker_update.router,
    ]
)
