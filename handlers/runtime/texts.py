"""Every sentence of the section about runtimes."""

from __future__ import annotations

RUNTIMES_TITLE = "Runtime of tests"
RUNTIME_CHANGED = "{suite}: {change} ({before} → {now}, {tests_before:,} → {tests}), compared with {base}."
COST = " This adds {seconds} to each run{per_day}."
COST_PER_DAY = ", about {time} a day at {runs:,.0f} runs a day"
GROWN_TITLE = "Tests that became slower"
GROWN = "{test}, {before} → {now}"
MANY_TIMES = "{times:,.0f} times as long"
SLOW_TITLE = "Slow new tests"
RUNTIMES_UNSEARCHED = (
    "The search for renamed tests was skipped because it would take more than {most:,} steps, so some of these may be "
    "renamed."
)
RUNTIMES_FAILED = "**Runtime of tests:** we could not compare the runtimes at {sha}: {why}"

# The reason in the audit log
WHY_RUNTIMES_FAILED = "comparing test runtimes failed"
