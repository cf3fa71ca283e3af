"""The features, one a file; `bot/` takes all of them from here."""

from bot.plan import joined
from handlers import (
    cc_reviewers,
    docker_update,
    docs_link,
    hardware_results,
    hardware_runs,
    help,
    last_good,
    lint,
    main_failures,
    merge,
    merge_when_green,
    news,
    nightly,
    regressions,
    repository_file,
    rerun,
    runtime,
    sections,
    skip_ci,
    skipped_tests,
    slow_tests,
    stale_reviews,
    team_tags,
    welcome,
)

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
