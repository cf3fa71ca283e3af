"""Run jobs: the worker of a process, the tasks, and what protects them from each other."""
