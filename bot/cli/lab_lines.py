"""What an operator and a lab copy to begin: the lines of app.yaml, and the commands of the first run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from bot.core.patterns import Pattern

_PLAIN = Pattern(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS_OF_YAML = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def app_yaml_lines(
    repository: str, lab: str, targets: Sequence[str], *, bucket: str | None = None, branch: str | None = None
) -> str:
    """Return the lines of app.yaml that name a lab, with the bucket and the tested branch if they are given."""
    names = ", ".join(_scalar(target) for target in targets)
    bucket_lines = [f"      bucket: {bucket}"] if bucket else []
    return "\n".join(
        [
            "repositories:",
            f"  {repository}:",
            "    results:",
            *bucket_lines,
            *([f"      branches: [{branch}]"] if branch else []),
            "      labs:",
            f"        {_scalar(lab)}: {{targets: [{names}]}}",
        ]
    )


def first_run_commands(url: str, token: str, repository: str, lab: str, target: str) -> tuple[str, ...]:
    """Return the commands of a lab's first run, for a shell in the checkout that it tests."""
    variables = {
        "NIGHTJAR_URL": url,
        "NIGHTJAR_LAB_TOKEN": token,
        "NIGHTJAR_REPOSITORY": repository,
        "NIGHTJAR_LAB": lab,
    }
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return (
        f"export {exports}",
        f"nightjar-lab doctor --target {shlex.quote(target)}",
        f"nightjar-lab run --target {shlex.quote(target)} -- pytest",
    )


def _scalar(text: str) -> str:
    """Return a name as YAML writes it, in quotes where YAML would read something else."""
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS_OF_YAML
    return text if is_plain else json.dumps(text)
