"""Run code over text from outside in a process of its own, within limits that the kernel enforces."""
