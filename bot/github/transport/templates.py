"""URI templates of GitHub's API, such as `/repos/{+repo}/issues/{number}` (https://www.rfc-editor.org/rfc/rfc6570)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from uritemplate import URITemplate
from uritemplate.variable import VariableValue

UrlVars = Mapping[str, VariableValue] | None
MOST_TEMPLATES = 512
"""Parsed templates that a process remembers; the code has some two hundred."""


def expanded(template: str, url_vars: UrlVars = None) -> str:
    """Return a template with its variables filled in: a path that begins with a slash, or an absolute URL."""
    if "://" in template:  # from a payload, so it is used once
        return URITemplate(template).expand(dict(url_vars or {}))
    return f"/{_parsed(template).expand(dict(url_vars or {})).removeprefix('/')}"


def absolute_url(uri: str, base_url: str) -> str:
    """Return the absolute URL of an expanded template; `base_url` is that of the API."""
    return f"{base_url.removesuffix('/')}{uri}" if uri.startswith("/") else uri


_parsed = lru_cache(MOST_TEMPLATES)(URITemplate)
