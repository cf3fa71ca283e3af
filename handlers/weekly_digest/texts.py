"""Texts of the weekly digest."""

TITLE = "{lab}, week to {day}: {summary}"
BROKE = "broke on {target}, since {since}"
RECOVERED = "{how} on {target}"
EXPIRES = "leaves quarantine after {until}; owner: {owner}"
LATE = "{count} without a result"
FLAKY = "flaky on {target}: {failed} of {runs} runs failed"
SLOW = "slow on {target}: {duration}"
ISSUE_TITLE = "Weekly digest of {lab}"
NEWLY_FAILING, RECOVERIES, LATE_RUNS, EXPIRING = (
    "{count} broke",
    "{count} recovered",
    "{count} late",
    "{count} expiring",
)
QUARANTINED = "{count} quarantined here."
WHY = "{count} of {all} labs have news of the week"
NOTHING_HAPPENED = "nothing happened in this week"
