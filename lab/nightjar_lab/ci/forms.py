"""Read a decision from the bot's answer, and write it in the formats that a CI reads. Pure.

The lines that CI evaluates contain only names and values from this module. Reasons quote titles and file names, which
anybody can choose, so they are written in comments, with only characters that have no meaning to a shell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nightjar_formats.patterns import Pattern
from nightjar_formats.strict_json import read_json
from nightjar_lab import levels
from nightjar_lab.ci import texts
from nightjar_lab.ci.decision import CiDecision, CiVerdict, run_everything

LATER_LEVELS = (levels.NIGHTLY, levels.RELEASE)
_SHA = Pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OTHER = Pattern(r"[^A-Za-z0-9_ .,:/#@()+=-]")
_ASCII = str.maketrans({"[": "(", "]": ")", "…": "..."})


def read_answer(body: bytes) -> CiDecision | None:
    """Read a decision from the API's answer, None for any other text. The fallback replaces a missing verdict."""
    try:
        answer = read_json(body)
        sha = answer["sha"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(sha, str):
        return None
    fallbacks = run_everything(texts.LACKING).verdicts
    verdicts = {name: _verdict(answer, name) or fallbacks[name] for name in fallbacks}
    level = answer.get("level")
    later_level = level if level in LATER_LEVELS and verdicts["run_slow_tests"].value else ""
    return CiDecision(sha if _SHA.fullmatch(sha) else "", **verdicts, later_level=later_level)


def _verdict(answer: dict[str, Any], name: str) -> CiVerdict | None:
    verdict = answer.get(name)
    value, reason = (verdict.get("value"), verdict.get("reason")) if isinstance(verdict, dict) else (None, None)
    return CiVerdict(value, reason) if isinstance(value, bool) and isinstance(reason, str) else None


def variables(decision: CiDecision) -> dict[str, str]:
    """Return the variables that a step of CI reads: `SKIP_CI` is `false`."""
    values = {
        "SKIP_CI": decision.skip_ci.value,
        "DOCS_ONLY": decision.docs_only.value,
        "SKIP_SLOW_TESTS": not decision.run_slow_tests.value,
        "REBUILD_DOCKER": decision.rebuild_docker.value,
    }
    return {**{name: _word(value) for name, value in values.items()}, levels.VARIABLE: decision.level}


def as_env(decision: CiDecision) -> str:
    """Return lines for a shell to evaluate: `SKIP_CI=false`."""
    return "".join(f"{name}={value}\n" for name, value in variables(decision).items())


def as_github(decision: CiDecision) -> str:
    """Return lines for $GITHUB_OUTPUT: `skip_ci=false`.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#setting-an-output-parameter
    """
    values = {name: _word(verdict.value) for name, verdict in decision.verdicts.items()}
    values |= {"level": decision.level, "sha": decision.sha}
    return "".join(f"{name}={value}\n" for name, value in values.items())


def decision_json(decision: CiDecision) -> str:
    """Return the JSON of the API's answer."""
    return json.dumps(decision.as_json(), indent=2) + "\n"


FORMS = {"env": as_env, "json": decision_json, "github": as_github}


def explained(decision: CiDecision) -> list[str]:
    """Return the reason for each value, as comment lines for a shell."""
    return comments([f"{name}={_word(verdict.value)}: {verdict.reason}" for name, verdict in decision.verdicts.items()])


def comments(lines: Sequence[str]) -> list[str]:
    """Return lines as comments for a shell, with only characters that have no meaning to a shell."""
    return ["# " + _OTHER.sub("_", line.translate(_ASCII)) for line in lines]


def _word(value: bool) -> str:
    return "true" if value else "false"
