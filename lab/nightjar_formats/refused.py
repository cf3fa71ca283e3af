"""Why something that was uploaded is not accepted."""

from __future__ import annotations


class Refused(Exception):
    """A file or a manifest that cannot be taken as it is. The text is for the lab: what is wrong, and what to do."""


class TooMuch(Refused):
    """The file goes beyond one of the limits."""
