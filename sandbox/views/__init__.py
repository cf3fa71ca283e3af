"""GitHub's JSON bodies for the sandbox's objects: functions without side effects, one module per family."""
