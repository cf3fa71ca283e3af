"""What people read about slow tests: the commit status on each head, and the answers to the two commands.

A status's description is cut at 140 characters (`bot.effects.statuses`).
"""

from __future__ import annotations

RUN_SUMMARY = "Run the slow tests for this pull request, on this push and on later ones."
LEVEL_SUMMARY = (
    "Run the tests of a level and of those before it: `main` has the slow tests, `nightly` and `release` are longer."
)
SKIP_SUMMARY = "Stop running the slow tests for this pull request."

OFF_PREFIX = "Off:"
"""The beginning of the status if slow tests are off; CI may read it (`handlers.ci_decisions.ask_github`)."""
OFF_IN_GROUP = "Off: a merge group runs them only if `slow_tests: branches` matches its branch"
ON_BRANCH = "On: the branch {branch} always runs slow tests."
ON_REQUESTED = "On: requested by {login}. To turn off, comment: {mention} skip slow tests"
LEVEL_PREFIX = "On, level "
"""The beginning of the status if tests of a later level run; its name and a colon follow, and CI may read it."""
ON_LEVEL = f"{LEVEL_PREFIX}{{level}}: requested by {{login}}. To turn off, comment: {{mention}} skip slow tests"
OFF_SKIPPED = f"{OFF_PREFIX} turned off by {{login}}. To turn on, comment: {{mention}} run slow tests"
OFF_DEFAULT = f"{OFF_PREFIX} nobody requested them. To turn on, comment: {{mention}} run slow tests"

NAME_LEVEL = "Name a level, as in {command}. The levels are {levels}."
CLOSED = "This pull request is closed, so nothing changed. Reopen it and ask again."
ALWAYS_ON = "The branch {branch} always runs slow tests, so there is nothing to turn on."
NEVER_OFF = "The branch {branch} always runs slow tests. To change that, edit `slow_tests: branches:` in {files}."
OVERTAKEN = "{login} commented {command} later, so that applies."
RESTARTING = "CI had already finished on {sha}, so I'm restarting it with slow tests: {names}."
STILL_RUNNING = (
    "Still running, so left alone: {names}. If a run has already decided to skip the slow tests, restart it by name "
    "with {command} once it has finished."
)
NOTHING_MATCHES = (
    "Slow tests are on, but nothing was restarted: no finished run on {sha} matches `slow_tests: rerun:` in {files}."
)
NOTHING_RESTARTABLE = "Slow tests are on, but nothing was restarted: I can't restart {names} on {sha}."
NOTHING_SEEN = "Slow tests are on, but I couldn't check whether CI has to restart. {why}"
