"""Lists flows and suites. Each is loaded in a process of its own: one that crashes hides no other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from nightjar_lab.suite import texts
from nightjar_lab.suite.discovery import FLOWS, SUITES, entry_points
from nightjar_lab.suite.runner import CannotRun, SuiteRunner


@dataclass(frozen=True)
class ListedFlow:
    """A flow or a suite. `reason` says why it is not available; it is empty where it is."""

    name: str
    kind: str
    backend: str = ""
    version: str = ""
    cases: int | None = None
    description: str = ""
    reason: str = ""

    @property
    def words(self) -> str:
        """What is known of it, in one line."""
        if self.reason:
            return texts.UNAVAILABLE.format(reason=self.reason)
        count = "" if self.cases is None else texts.CASES.format(count=self.cases)
        return "; ".join(part for part in (f"{self.backend} {self.version}".strip(), count, self.description) if part)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return asdict(self)


def list_flows() -> Iterable[ListedFlow]:
    """Yield all flows."""
    for name in entry_points(FLOWS):
        try:
            with SuiteRunner(name, "") as runner:
                info = runner.start()
            yield ListedFlow(name, "flow", info.backend, info.flow_version, description=info.description)
        except CannotRun as error:
            yield ListedFlow(name, "flow", reason=" ".join(str(error).split()))


def list_suites() -> Iterable[ListedFlow]:
    """Yield all suites."""
    for name in entry_points(SUITES):
        try:
            with SuiteRunner("", name) as runner:
                info = runner.start()
                count = len(runner.names())
            yield ListedFlow(name, "suite", version=info.suite_version, cases=count, description=info.description)
        except CannotRun as error:
            yield ListedFlow(name, "suite", reason=" ".join(str(error).split()))
