"""`@ci run slow tests` and `@ci skip slow tests`."""
