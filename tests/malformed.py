"""Generate addresses with invalid parameters from the declarations of the routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1.5",
    "1e400",
    "nan",
    "9" * 9,
    "9" * 12,
    "9" * 25,
    "true",
    "null",
    "a" * 40,
    "0" * 40,
    "0" * 7,
    "2026-13-45",
    "2026-02-30",
    "0000-00-00",
    "0001-01-01",
    "9999-12-31",
    "2026-11-20T00:00:00",
    "example-lab/hexagon-v73",
    "example-lab/no-such-target",
    "no-such-lab/no-such-target",
    "example-lab/",
    "a/b/c",
    "..",
    "octocat/compiler",
    "nobody/nothing",
    "%",
    "%_\\",
    "'; --",
    "\x00",
    "a\x00b",
    "\ud800",
    "\N{FULLWIDTH DIGIT ONE}",
    "\N{GRINNING FACE}" * 60,
    "x" * 201,
    "x" * 1_500,
    "\n",
    "{{ 7 * 7 }}",
    '"><script>',
    "csv",
    "json",
)
"""Texts that people, programs and scanners put into parameters."""
Described = tuple[str, Sequence[str], Sequence[tuple[str, Mapping[str, Any]]]]
"""A path, its parts in braces, and its parameters with their schemas."""


def read_routes(document: Mapping[str, Any]) -> list[Described]:
    """Return the parts and parameters of each address that an OpenAPI document describes."""
    found: list[Described] = []
    for path, methods in document["paths"].items():
        if "get" not in methods or path in ("/login/callback", "/login", "/logout"):
            continue
        given = methods["get"].get("parameters", [])
        parts = [one["name"] for one in given if one["in"] == "path"]
        found.append((path, parts, [(one["name"], one["schema"]) for one in given if one["in"] == "query"]))
    return found


def each_alone(routes: Sequence[Described], known: Mapping[str, str], texts: Sequence[str]) -> Iterator[str]:
    """Yield addresses in which one thing is wrong; the `known` parts and parameters are right."""
    for path, parts, query in routes:
        right = {name: known.get(name, "1") for name in parts}
        needed = {name: known[name] for name, _ in query if name in known}
        for text in texts:
            for name in parts:
                if name not in ("owner", "repo"):
                    yield address(path, {**right, name: text or "-"}, needed)
            for name, _ in query:
                yield address(path, right, {**needed, name: text})


def several(routes: Sequence[Described], known: Mapping[str, str]) -> st.SearchStrategy[str]:
    """Return addresses in which anything may be wrong."""
    wrong = st.one_of(st.sampled_from(TEXTS), st.text(max_size=60), st.integers().map(str), st.dates().map(str))

    @st.composite
    def made(draw: st.DrawFn) -> str:
        path, parts, query = draw(st.sampled_from(routes))
        names = [name for name, _ in query]
        chosen = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        values = {name: known[name] for name in names if name in known}
        values |= {name: draw(st.one_of(wrong, st.sampled_from(allowed(dict(query)[name])))) for name in chosen}
        return address(path, {name: known.get(name) or draw(wrong) or "-" for name in parts}, values)

    return made()


def allowed(schema: Mapping[str, Any]) -> list[str]:
    """Return the values that a schema lists, and one that it does not."""
    return [str(one) for part in (schema, *schema.get("anyOf", ())) for one in part.get("enum", ())] or ["-"]


def address(path: str, parts: Mapping[str, str], query: Mapping[str, str]) -> str:
    """Return an address in which every character is encoded as a server may receive it."""
    filled = path.format(**{name: quote(text, safe="", errors="surrogatepass") for name, text in parts.items()})
    return f"{filled}?{urlencode(query, errors='surrogatepass')}" if query else filled
