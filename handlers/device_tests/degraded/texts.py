"""Every sentence about targets that are degraded by one tier."""

from __future__ import annotations

# The issue
TITLE = "Target {where} is degraded"
ISSUE = """\
No nightly run of target {target} of lab {lab} has had usable results since {since}: {runs}.

{effect}

I'll close this issue after {good} good nightly runs in a row."""
RESTORED = "Target {where} is restored: {reason}."
TWO_GOOD = "{good} nightly runs in a row were good"
NO_REQUESTS = "app.yaml no longer enables requests for it"
INFRA_COUNT = ("nightly run was an infrastructure failure", "nightly runs were infrastructure failures")
MISSING_COUNT = ("is missing", "are missing")
EFFECTS = {
    1: "Until then pushes are not tested here. People can still request a test with a command or a label.",
    2: "Until then the target accepts no requests.",
}

# Answers and check runs
DEGRADED = "{name} accepts no requests now: no nightly run has had usable results since {since} ({runs})."
UNTIL = "It will accept requests again after {good} good nightly runs in a row."
NOTICE = "This target is degraded: no nightly run has had usable results since {since} ({runs}). {effect}"

# The audit log
WHY_SAME = "nothing changed"
WHY_DEGRADED = "{where} has been degraded since {since}"
WHY_RESTORED = "{where} is restored"
WHY_ISSUE_FAILED = "the issue could not be written"
SWEEP_DONE = "{announced} announced"
SWEEP_FAILED = "could not check which targets are degraded"
