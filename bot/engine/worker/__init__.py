"""Run jobs: the worker of a process, its tasks, and the guard that protects jobs from each other."""
