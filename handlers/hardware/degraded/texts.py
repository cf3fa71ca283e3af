"""Every sentence about targets that are degraded by one tier."""

from __future__ import annotations

# The issue
TITLE = "Target {where} is degraded"
ISSUE = """\
Since {since}, no nightly run of target {target} of lab {lab} has said anything about the code: {runs}.

{effect}

I'll close this issue after {good} good nightly runs in a row."""
RESTORED = "Target {where} is restored: {reason}."
TWO_GOOD = "{good} nightly runs in a row were good"
NO_REQUESTS = "app.yaml has no requests for it any more"
INFRA_COUNT = ("nightly run was an infrastructure failure", "nightly runs were infrastructure failures")
MISSING_COUNT = ("is missing", "are missing")
EFFECTS = {
    1: "Until then pushes are not tested here. People can still ask for a test by command or label.",
    2: "Until then the target takes no requests.",
}

# Answers and check runs
DEGRADED = "{name} takes no requests now: since {since}, no nightly run has said anything about the code ({runs})."
UNTIL = "It takes requests again after {good} good nightly runs in a row."
NOTICE = "This target is degraded: since {since}, no nightly run has said anything about the code ({runs}). {effect}"

# The audit log
WHY_SAME = "nothing changed"
WHY_DEGRADED = "{where} is degraded since {since}"
WHY_RESTORED = "{where} is restored"
WHY_ISSUE_FAILED = "the issue could not be written"
SWEEP_DONE = "{announced} announced"
SWEEP_FAILED = "targets could not be judged"
