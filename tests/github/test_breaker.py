"""During an outage single requests check whether GitHub answers again; after an answer all may go."""

from __future__ import annotations

from bot.github.transport.breaker import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, Breaker, Breakers


def away(failures: int = FAILURES, moment: float = 100.0) -> Breaker:
    breaker = Breaker()
    for _ in range(failures):
        breaker.fail(moment)
    return breaker


def test_a_few_failures_stop_no_requests() -> None:
    assert not away(FAILURES - 1).is_open
    assert away(FAILURES - 1).may_ask(100.0)
    assert away(FAILURES).is_open


def test_while_github_is_down_one_request_is_allowed_after_each_pause() -> None:
    breaker = away()
    assert not breaker.may_ask(100.0 + FIRST_PAUSE - 0.01)
    allowed = [breaker.may_ask(100.0 + FIRST_PAUSE) for _ in range(1000)]
    assert allowed.count(True) == 1


def test_the_pauses_grow_to_half_a_minute() -> None:
    breaker, moment, probes = away(), 100.0, list[float]()
    while len(probes) < 10:
        moment += 0.5
        if breaker.may_ask(moment):
            probes.append(moment)
            breaker.fail(moment)
    assert probes[1] - probes[0] == 2 * FIRST_PAUSE
    assert probes[-1] - probes[-2] == LONGEST_PAUSE


def test_one_answer_lets_all_requests_go() -> None:
    breaker = away()
    breaker.succeed()
    assert all(breaker.may_ask(100.0) for _ in range(1000))


def test_failures_with_answers_in_between_are_no_outage() -> None:
    breaker = Breaker()
    for _ in range(FAILURES * 2):
        breaker.fail(100.0)
        breaker.succeed()
    assert not breaker.is_open


def test_after_an_answer_the_next_outage_begins_with_the_first_pause() -> None:
    breaker = away()
    assert breaker.may_ask(100.0 + FIRST_PAUSE)
    breaker.succeed()
    for _ in range(FAILURES):
        breaker.fail(200.0)
    assert (breaker.pause, breaker.next_probe) == (FIRST_PAUSE, 200.0 + FIRST_PAUSE)


def test_each_installation_has_a_breaker_which_probes_when_the_pause_ends() -> None:
    moments = [100.0]
    breakers = Breakers(lambda: moments[-1])
    for _ in range(FAILURES):
        assert breakers.may_ask("7")
        breakers.fail("7")
    assert (breakers.may_ask("7"), breakers.may_ask("8")) == (False, True)
    moments.append(100.0 + FIRST_PAUSE)
    assert (breakers.may_ask("7"), breakers.may_ask("7")) == (True, False)
    breakers.succeed("7")
    assert (breakers.may_ask("7"), breakers.of("7").failures, breakers.of("7").pause) == (True, 0, 0.0)
