"""Gauges of repositories' timers: the last run, its outcome, and the next run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from bot.timers.timers import TimerState

Series = Mapping[tuple[str, ...], float]
"""The values of a gauge, by the values of its labels."""


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
        self._shown: dict[Gauge, Series] = {gauge: {} for gauge in (self._last, self._next, self._outcome)}

    async def refresh(self) -> None:
        """Set the gauges from the records."""
        states, moment = await self._states(), self._clock()
        timers = [((state.repository, state.name), state) for state in states]
        self._show(self._last, {key: moment - state.last_run for key, state in timers if state.last_run is not None})
        self._show(self._next, {key: state.next_run - moment for key, state in timers})
        self._show(self._outcome, {(*key, state.outcome): 1 for key, state in timers})

    def _show(self, gauge: Gauge, series: Series) -> None:
        """Set the values of a gauge. Series that it had before are kept: to make thousands anew would take longer."""
        for labels in self._shown[gauge].keys() - series.keys():
            gauge.remove(*labels)
        for labels, value in series.items():
            gauge.labels(*labels).set(value)
        self._shown[gauge] = series

    def clear(self) -> None:
        """Remove the values of all timers."""
        for gauge in self._shown:
            self._show(gauge, {})
