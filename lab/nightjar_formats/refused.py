"""Errors that say why an upload is not accepted."""

from __future__ import annotations


class Refused(Exception):
    """A file or a manifest is not accepted. The text tells the lab what is wrong and what to do."""


class TooMuch(Refused):
    """The file exceeds one of the limits."""
