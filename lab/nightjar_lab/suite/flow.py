"""Define flows: the steps of a backend's user with a model, as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Union

from nightjar_lab.suite.case import CaseData, Tolerance

Patterns = Union[Sequence[str], Mapping[str, str]]
"""Patterns over whole names of cases (`*` is any text, `?` one character), or such patterns, each with its reason."""


@dataclass(frozen=True)
class LoweringReport:
    """What a flow reports about a lowered program; every field is optional.

    The counts of nodes are the sums of the operators' counts, unless they are given.
    """

    delegated_ops: Mapping[str, int] = field(default_factory=dict)
    undelegated_ops: Mapping[str, int] = field(default_factory=dict)
    delegated_nodes: int | None = None
    undelegated_nodes: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class Flow:
    """One way through a backend: quantize -> lower -> load -> run. All stages are called in a worker process.

    - `quantize(model, data)` returns the quantized model. Without it, the stage is left out.
    - `lower(model, data)` returns a program.
    - `load(program)` returns what `run` takes. Without it, `run` takes the program.
    - `run(loaded, inputs)` returns the outputs, a sequence in the order of the expected ones.
    - `report(program)` returns a LoweringReport. It is called after `lower`, and its time is not measured.

    A stage fails by raising any exception; `SkipCase` skips the case, `InvalidCase` blames the case.
    A case that matches `skip` is not run. A case that matches `known_failing` runs: if it fails, it is a known failure;
    if it passes, it is an unexpected pass, and somebody should remove the pattern.
    `version` is a text or a function that returns one: reports of two versions are not mixed.
    `quantization` says how the flow quantizes, such as `static int8`; empty for a flow that does not.
    `model_format` is what its models are, such as `onnx` or `torch`: a matrix pairs it with suites of that format only,
    and with those that name none.
    """

    name: str
    backend: str
    lower: Callable[[Any, CaseData], Any]
    run: Callable[[Any, Sequence[Any]], Sequence[Any]]
    quantize: Callable[[Any, CaseData], Any] | None = None
    load: Callable[[Any], Any] | None = None
    report: Callable[[Any], LoweringReport | None] | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    skip: Patterns = ()
    known_failing: Patterns = ()
    version: str | Callable[[], str] = ""
    description: str = ""
    quantization: str = ""
    model_format: str = ""


def matching(patterns: Patterns, name: str) -> str | None:
    """Return the reason of the first pattern that a name matches (the pattern itself where it has none), or None."""
    for pattern in patterns:
        if matches_pattern(pattern, name):
            return (patterns[pattern] if isinstance(patterns, Mapping) else "") or pattern
    return None


def matches_pattern(pattern: str, name: str) -> bool:
    """Say whether a whole name matches a pattern. A `[` is a character like any other: names of parameters have it."""
    first, *rest = pattern.split("*")
    if not rest:
        return len(name) == len(first) and _at(first, name, 0)
    last = rest.pop()
    end = len(name) - len(last)
    if end < len(first) or not _at(first, name, 0) or not _at(last, name, end):
        return False
    position = len(first)
    for part in rest:
        while not (position + len(part) <= end and _at(part, name, position)):
            position += 1
            if position + len(part) > end:
                return False
        position += len(part)
    return True


def _at(part: str, name: str, position: int) -> bool:
    """Say whether a name has a part without `*` at a place; the name must be long enough."""
    return all(
        pattern_character in ("?", character)
        for pattern_character, character in zip(part, name[position : position + len(part)])
    )
