"""The command line of the lab kit: one module for each command."""
