"""Gauges of repositories' timers: the last run, its outcome, and the next run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from bot.timers.timers import TimerState


class TimerGauges:
    """The gauges. `states` reads the states of all timers, `clock` returns seconds since 1970."""

    def __init__(
        self,
        states: Callable[[], Awaitable[Sequence[TimerState]]],
        clock: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._states = states
        self._clock = clock
        gauge, timer = partial(Gauge, registry=registry), ["repository", "timer"]
        self._last = gauge("nightjar_timer_last_run_age_seconds", "Seconds since a timer last ran.", timer)
        self._next = gauge("nightjar_timer_next_run_seconds", "Seconds until a timer runs next.", timer)
        self._outcome = gauge(
            "nightjar_timer_last_outcome",
            "1 for a timer's state: never, waiting, working, done, ignored, refused, failed, forgotten, stopped.",
            [*timer, "outcome"],
        )

    async def refresh(self) -> None:
        """Set the gauges from the records."""
        states, moment = await self._states(), self._clock()
        self.clear()
        for state in states:
            labels = (state.repository, state.name)
            self._outcome.labels(*labels, state.outcome).set(1)
            self._next.labels(*labels).set(state.next_run - moment)
            if state.last_run is not None:
                self._last.labels(*labels).set(moment - state.last_run)

    def clear(self) -> None:
        """Remove the values of all timers."""
        for gauge in (self._last, self._next, self._outcome):
            gauge.clear()
