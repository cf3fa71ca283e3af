"""Gauges of repositories' timers: the last run, its outcome, and the next run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.timers.timers import TimerState

LAST, NEXT = "Seconds since a timer last ran.", "Seconds until a timer runs next."
OUTCOME = "1 for a timer's state: never, waiting, working, done, ignored, refused, failed, forgotten, stopped."
LABELS = ("repository", "timer")


class TimerGauges(Collector):
    """The gauges. `states` reads the states of all timers, `clock` returns seconds since 1970.

    The series are made for each exposition: the objects of a `Gauge`, of which each refresh of thousands of timers
    would make new ones, cost ten times as much.
    """

    def __init__(
        self,
        states: Callable[[], Awaitable[Sequence[TimerState]]],
        clock: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._states = states
        self._clock = clock
        self._shown: Sequence[TimerState] = ()
        self._moment = 0.0
        registry.register(self)

    async def refresh(self) -> None:
        """Read the states from the records."""
        self._shown, self._moment = await self._states(), self._clock()

    def clear(self) -> None:
        """Remove the values of all timers."""
        self._shown = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges as of the last refresh."""
        last = GaugeMetricFamily("nightjar_timer_last_run_age_seconds", LAST, labels=LABELS)
        upcoming = GaugeMetricFamily("nightjar_timer_next_run_seconds", NEXT, labels=LABELS)
        outcome = GaugeMetricFamily("nightjar_timer_last_outcome", OUTCOME, labels=(*LABELS, "outcome"))
        for state in self._shown:
            labels = (state.repository, state.name)
            outcome.add_metric((*labels, state.outcome), 1)
            upcoming.add_metric(labels, state.next_run - self._moment)
            if state.last_run is not None:
                last.add_metric(labels, self._moment - state.last_run)
        yield from (last, upcoming, outcome)
