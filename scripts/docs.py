"""Write the parts of the documents that are generated from the code, or with --check say which are stale."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bot.app.features import REGISTRY
from bot.app.registration import registration_text
from bot.commands.texts import commands_table
from bot.config import docs as config_docs
from bot.core.docs import replace_block
from bot.results import guide
from scripts.limits import limits_table

ROOT = Path(__file__).parents[1]
README = Path("README.md")
SECURITY = Path("docs/security.md")


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Return what every generated file should hold, by its path below the root of the checkout."""
    table = commands_table(REGISTRY)
    readme = replace_block((root / README).read_text(encoding="utf-8"), "commands", table)
    readme = replace_block(readme, "features", config_docs.features_table())
    readme = replace_block(readme, "registration", registration_text())
    security = replace_block((root / SECURITY).read_text(encoding="utf-8"), "limits", limits_table())
    return {README: readme, SECURITY: security, **config_docs.documents(root), **guide.documents(root)}


def main() -> int:
    """Write what is stale, or only name it."""
    stale = {path: text for path, text in documents().items() if (ROOT / path).read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if "--check" in sys.argv:
            print(f"{path} is not what the code says; run: make docs")  # noqa: T201
        else:
            (ROOT / path).write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
