"""The kit that labs install: commands for their machines, and a pytest plugin. It does not need the server's code."""

# pip refuses an older Python, but people also run the kit in a checkout. Any Python 3 can read this file.
import sys

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit("nightjar-lab needs Python 3.9 or newer; this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031
