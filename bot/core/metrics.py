"""The Prometheus metrics of one process.

Every label has few values: events are those that handlers accept, routes are templates, and anything else from outside
counts as "other". A request for the metrics reads the gauges of the queue from the database, so that they are the same
on every replica, and correct after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bot.core.parts import PartKey

if TYPE_CHECKING:
    from bot.core.health import Health

Shows = Callable[[Mapping[str, str]], bool]
"""Returns for a series, by its labels, whether the reader may see it."""

OTHER = "other"
ALWAYS_KNOWN = frozenset({"ping", "installation", "installation_repositories"})
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True, slots=True)
class LeftQuota:
    """The rest of one of GitHub's quotas; `reset` is in seconds since 1970."""

    remaining: int
    limit: int
    reset: float


class Metrics:
    """The measurements of one process; the `Observer` of the engine and of the GitHub client."""

    def __init__(self, version: str, events: Collection[str] = ()) -> None:
        self.registry = registry = CollectorRegistry()
        self.quotas: dict[tuple[str, str], LeftQuota] = {}
        """The quotas in GitHub's last answers, by installation and resource."""
        self._events = ALWAYS_KNOWN.union(events)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        Info("nightjar_build", "The version that is running.", registry=registry).info({"version": version})
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        timing = partial(Histogram, registry=registry, buckets=SECONDS)

        # The client library adds `_total` to the name of each counter.
        self._webhooks = counter("nightjar_webhook_answers", "Answers to POST /webhook, by status.", ["status"])
        self._deliveries = counter("nightjar_deliveries", "Deliveries, by outcome.", ["event", "outcome"])
        # A look-up of a series takes as long as the rest of a delivery's metrics, so cache it.
        self._answers = cache(lambda status: self._webhooks.labels(str(status)))
        self._outcomes = cache(self._deliveries.labels)
        self._delivery_seconds = timing(
            "nightjar_delivery_seconds", "Time from the arrival of a delivery to its processing."
        )
        self._waiting = gauge("nightjar_waiting_jobs", "Waiting jobs, by task.", ["task"])
        self._oldest = gauge("nightjar_oldest_waiting_seconds", "Age of the oldest waiting delivery.")

        self._plans = counter(
            "nightjar_handler_runs",
            "Runs of handlers, by outcome: planned, concluded, refused, retrying, failed.",
            ["handler", "outcome"],
        )
        self._plan_seconds = timing("nightjar_handler_seconds", "Time that a handler took to plan.", ["handler"])
        self._effects = counter(
            "nightjar_effects",
            "Effects, by outcome: applied, unchanged, refused, retrying, failed.",
            ["kind", "outcome"],
        )
        self._effect_seconds = timing("nightjar_effect_seconds", "Time that an effect took.", ["kind"])

        self._requests = counter("nightjar_github_requests", "Requests to GitHub.", ["method", "route", "status"])
        self._request_seconds = timing(
            "nightjar_github_request_seconds", "Time that GitHub took to answer.", ["method", "route"]
        )
        self._quota = gauge(
            "nightjar_github_quota_remaining", "Requests left of GitHub's quota.", ["installation", "resource"]
        )

        self._failing = gauge(
            "nightjar_check_failing", "1 for a failing check of /readyz or nightjar doctor, else 0.", ["check"]
        )
        self._missing = gauge("nightjar_missed_deliveries", "Deliveries that GitHub sent but the bot has not received.")
        self._requested = counter(
            "nightjar_missed_deliveries_asked", "Redeliveries that the bot requested from GitHub."
        )
        self._recovered = counter("nightjar_missed_deliveries_recovered", "Missed deliveries that arrived later.")

    def webhook_answered(self, status: int) -> None:
        """Count an answer to a webhook."""
        self._answers(status).inc()

    def accepted(self, event: str, new: bool) -> None:
        """Count a delivery that was answered with 202; `new` is false if we already had its GUID."""
        self._outcomes(self._event(event), "accepted" if new else "duplicate").inc()

    def delivery(self, event: str, outcome: str, seconds: float) -> None:
        """Count that a delivery was routed, ignored, refused, retrying or failed, `seconds` after it was received."""
        self._outcomes(self._event(event), outcome).inc()
        self._delivery_seconds.observe(seconds)

    def handler(self, name: str, outcome: str, seconds: float) -> None:
        """Count that a handler ran for `seconds`: planned, concluded, refused, retrying or failed."""
        self._plans.labels(name, outcome).inc()
        self._plan_seconds.labels(name).observe(seconds)

    def effect(self, kind: str, outcome: str, seconds: float) -> None:
        """Count that an effect ran for `seconds`: applied, unchanged, refused, retrying or failed."""
        self._effects.labels(kind, outcome).inc()
        self._effect_seconds.labels(kind).observe(seconds)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request to GitHub; `route` is the template of its URL, `status` 0 if no answer came."""
        method = method if method in METHODS else OTHER
        self._requests.labels(method, route, str(status) if status else "none").inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        """Record the rest of a primary quota."""
        self._quota.labels(installation, resource).set(remaining)
        self.quotas[installation, resource] = LeftQuota(remaining, limit, reset)

    def redelivered(self, *, requested: int, recovered: int) -> None:
        """Count the missed deliveries that a sweep requested from GitHub, and those that have arrived since."""
        self._requested.inc(requested)
        self._recovered.inc(recovered)

    def health(self, names: Iterable[str], health: Health) -> None:
        """Record which checks fail at the moment."""
        failing = health.failures.keys() | health.warnings.keys()
        for name in names:
            self._failing.labels(name).set(name in failing)

    def set_queue(self, waiting: Mapping[str, int], oldest_seconds: float, missing: float) -> None:
        """Record what the database has: jobs by task, age of the oldest delivery, missed deliveries; NaN: unknown."""
        # A task without waiting jobs has no row, so clear its last value.
        self._waiting.clear()
        for task, count in waiting.items():
            self._waiting.labels(task).set(count)
        self._oldest.set(oldest_seconds)
        self._missing.set(missing)

    def _event(self, name: str) -> str:
        return name if name in self._events else OTHER

    def exposition(self, accept: str = "", shows: Shows | None = None) -> tuple[bytes, str]:
        """Return the metrics as text, and its content type, in the form that the Accept header prefers.

        `shows` says by its labels whether a reader may see a series; None: they may see all.
        """
        encode, content_type = choose_encoder(accept)
        if shows is None:
            return encode(self.registry), content_type
        visible = CollectorRegistry()
        visible.register(_Part(self.registry, shows))
        return encode(visible), content_type


class _Part(Collector):
    """Collects those series of a registry that the reader may see."""

    def __init__(self, registry: CollectorRegistry, shows: Shows) -> None:
        self._registry = registry
        self._shows = shows

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, without the series that the reader may not see."""
        for metric in self._registry.collect():
            visible = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            visible.samples = [sample for sample in metric.samples if self._shows(sample.labels)]
            yield visible


METRICS = PartKey[Metrics]("metrics")
"""The measurements of a process."""
