"""The first sentence of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handlers.dashboard.compare.rows import ChangeClass

CHANGES: Mapping[ChangeClass, tuple[str, str]] = {
    "new-failure": ("new failure", "{count}"),
    "fixed": ("fixed test", "{count}"),
    "still-failing": ("", "{count} still failing"),
    "quarantined": ("quarantined failure", "{count}"),
    "flaky": ("flaky test", "{count}"),
    "new-test": ("new test", "{count}"),
    "newly-skipped": ("", "{count} newly skipped"),
    "removed": ("removed test", "{count}"),
}
"""How the sentence counts each change, in its order: the noun for one, and the words around the count."""
FROM_TO = " on {target}, from {base} to {head}"
NO_CHANGE = "Nothing changed, and no test fails,"
NOT_COMPARED = "No suite could be compared"
