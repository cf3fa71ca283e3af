"""The features, one a file; `bot/` takes all of them from here."""

from bot.plan import joined
from handlers import cc_reviewers, help, rerun, slow_tests

COMMANDS = (*slow_tests.COMMANDS, *rerun.COMMANDS, *help.COMMANDS)
ROUTER = joined([slow_tests.router, rerun.router, cc_reviewers.router])
