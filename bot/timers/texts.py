"""What operators read about timers."""

TIMER_FAILED = "could not start a timer"
UNKNOWN_TIMER = "Unknown timer `{name}`. Available: {known}."
NO_TIMERS = "none, as app.yaml enables no feature that has a timer"
NO_REPOSITORY_YET = (
    "No repository of {patterns} is known yet, so timer `{name}` has nothing to run for. `nightjar serve` lists the "
    "repositories of the App's installations at its start. If it has run, install the App on the repositories."
)
NO_TIMER_IN_REPOSITORY = "{repository} has no timer `{name}` in app.yaml."
