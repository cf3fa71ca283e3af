"""What operators read about timers."""

TIMER_FAILED = "could not start a timer"
UNKNOWN_TIMER = "Unknown timer `{name}`. Available: {known}."
NO_TIMERS = "none"
NO_TIMER_IN_REPOSITORY = "{repository} has no timer `{name}` in app.yaml."
