"""Write the generated parts of the documents, and docs/texts.md. With --check, only list outdated documents."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bot.app.features import RECORDS, REGISTRY
from bot.app.load import app_model
from bot.app.registration import registration_text
from bot.commands.answers import commands_table
from bot.config import docs as config_docs
from bot.core.docs import replace_block, table
from bot.feature import Feature
from bot.results import guide
from handlers import FEATURES, MODULES
from scripts.limits import limits_table
from scripts.pages import contents
from scripts.scale import growth_table
from scripts.texts import texts_page

ROOT = Path(__file__).parents[1]
CONFIG = app_model()
CONTRIBUTORS = Path("docs/contributors.md")
INSTALLING = Path("docs/installing.md")
SECURITY = Path("docs/security.md")
ARCHITECTURE = Path("docs/architecture.md")
FEATURES_PAGE = Path("docs/features.md")
INDEX = Path("docs/README.md")
TEXTS = Path("docs/texts.md")
"""The page of all texts, which git does not keep."""
DURABLE_STATE = Path("docs/durable-state.md")
DEPLOY = Path("docs/deploy.md")
PAGES = tuple(sorted({path.relative_to(ROOT) for path in ROOT.glob("docs/*.md")} - {INDEX, TEXTS}))
"""The pages of docs/ that git keeps, each with a table of contents."""
RECORDS_HEADER = ("prefix", "version", "what it holds", "removed after", "feature")
FOR_EVER = "never"
OWN_EFFECTS = "\n\nEffects that only one feature has:\n\n"
FEATURE_MAP_HEADER = ("feature", "keys of app.yaml", "commands")


def documents(root: Path = ROOT) -> dict[Path, str]:
    """Return what each generated file that git keeps should contain, by its path in the checkout."""
    written: dict[Path, str] = {**config_docs.documents(root, CONFIG), **guide.documents(root)}
    for page, name, content in (
        (CONTRIBUTORS, "commands", commands_table(REGISTRY)),
        (FEATURES_PAGE, "features", config_docs.features_table(CONFIG)),
        (INSTALLING, "registration", registration_text()),
        (SECURITY, "limits", limits_table()),
        (ARCHITECTURE, "feature-map", feature_map()),
        (DURABLE_STATE, "records", records_table()),
        (DEPLOY, "growth", growth_table(root)),
        (FEATURES_PAGE, "guides", guides(root)),
    ):
        written[page] = replace_block(_text(page, written, root), name, content)
    for page in PAGES:
        text = _text(page, written, root)
        written[page] = replace_block(text, "contents", contents(text))
    return written


def _text(page: Path, written: dict[Path, str], root: Path) -> str:
    return written[page] if page in written else (root / page).read_text(encoding="utf-8")


def feature_map() -> str:
    """Return the table of features, with the folder or file of each."""
    rows = []
    for module, feature in zip(MODULES, FEATURES, strict=True):
        path = module.removesuffix(".feature").replace(".", "/") + ("/" if module.endswith(".feature") else ".py")
        rows.append(
            (
                f"`{path}`",
                _listed(map(str, feature.config)),
                _listed(spec.name for spec, _ in feature.commands),
            )
        )
    return table(FEATURE_MAP_HEADER, rows) + OWN_EFFECTS + "".join(map(_own_effects, FEATURES))


def guides(root: Path) -> str:
    """Return the `guide.md` of each feature that has one, in the order of the features."""
    files = [root.joinpath(*module.split(".")[:-1], "guide.md") for module in MODULES]
    texts = [file.read_text(encoding="utf-8").strip() for file in files if file.exists()]
    # Links lead from the feature's folder to that of the page.
    return "\n\n".join(texts).replace("](../../docs/", "](")


def _own_effects(feature: Feature) -> str:
    line = f"- {feature.name.replace('_', ' ')}: {_listed(effect.__name__ for effect in feature.effects)}"
    return textwrap.fill(line, 120, subsequent_indent="  ") + "\n" if feature.effects else ""


def _age(days: float | None) -> str:
    if days is None:
        return FOR_EVER
    return f"{days:g} days" if days >= 1 else f"{days * 24:g} hours"


def records_table() -> str:
    """Return the table of all kinds of records, by prefix."""
    rows = [
        (
            f"`{prefix}`",
            str(record.version),
            record.holds,
            _age(record.days),
            RECORDS.features[prefix].replace("_", " "),
        )
        for prefix, record in sorted(RECORDS.kinds.items())
    ]
    return table(RECORDS_HEADER, rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> int:
    """Write the outdated files, or only list them."""
    written = documents()
    stale = {
        path: text
        for path, text in written.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text
    }
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} is outdated; run: make docs")  # noqa: T201
        return 1 if stale else 0
    for path, text in (stale | {TEXTS: texts_page()}).items():
        (ROOT / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
