"""What a comment with commands gets, by what was asked for in the hour before: each limit one below, at, and above."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.commands.budget import (
    HOUR,
    MOST_COUNTED,
    MOST_TOLD,
    REFUSALS_AN_HOUR,
    Counted,
    Kind,
    Question,
    Response,
    Tally,
    decide_response,
)
from bot.config.commands import Commands

NOW = 1_795_152_400.0
LIMITS = Commands(per_person=4, per_pull_request=6)
ME = 7


def tally(*counted: tuple[Kind, int], at: float = NOW - 10, told: Sequence[int] = ()) -> Tally:
    return Tally({str(place): Counted(at, many, kind) for place, (kind, many) in enumerate(counted)}, tuple(told))


def question(commands: int = 1, *, refused: bool = False, writer: bool = False) -> Question:
    return Question("this", NOW, commands, ME, refused=refused, writer=writer)


@pytest.mark.parametrize(
    ("before", "commands", "response"),
    [
        (2, 1, Response.RUN),
        (3, 1, Response.RUN),
        (4, 1, Response.PERSON_OVER),
        (0, 4, Response.RUN),
        (0, 5, Response.PERSON_OVER),
        (2, 2, Response.RUN),
        (2, 3, Response.PERSON_OVER),
    ],
)
@pytest.mark.parametrize("writer", [True, False])
def test_a_persons_limit_holds_for_everybody(before: int, commands: int, response: Response, writer: bool) -> None:
    asked = question(commands, writer=writer)
    assert decide_response(asked, tally((Kind.RUN, before)), tally(), LIMITS) is response


@pytest.mark.parametrize(
    ("before", "writer", "response"),
    [
        (5, False, Response.RUN),
        (6, False, Response.PULL_OVER),
        (7, False, Response.PULL_OVER),
        (7, True, Response.RUN),
    ],
)
def test_a_pull_requests_limit_holds_for_those_without_the_write_role(
    before: int, writer: bool, response: Response
) -> None:
    assert decide_response(question(writer=writer), tally(), tally((Kind.RUN, before)), LIMITS) is response


def test_over_a_limit_one_answer_says_so() -> None:
    full, said = tally((Kind.RUN, 4)), tally((Kind.RUN, 4), (Kind.OVER, 1))
    assert decide_response(question(), full, tally(), LIMITS) is Response.PERSON_OVER
    assert decide_response(question(), said, tally(), LIMITS) is Response.NOTHING
    full, said = tally((Kind.RUN, 6)), tally((Kind.RUN, 6), (Kind.OVER, 1))
    assert decide_response(question(), tally(), full, LIMITS) is Response.PULL_OVER
    assert decide_response(question(), tally(), said, LIMITS) is Response.NOTHING


@pytest.mark.parametrize(("at", "response"), [(NOW - HOUR, Response.RUN), (NOW - HOUR + 1, Response.PERSON_OVER)])
def test_what_is_an_hour_old_counts_no_longer(at: float, response: Response) -> None:
    assert decide_response(question(), tally((Kind.RUN, 4), at=at), tally(), LIMITS) is response


@pytest.mark.parametrize(
    ("refusals", "told", "response"),
    [
        (0, (), Response.REFUSE),
        (0, (ME,), Response.REACT),
        (0, (ME + 1,), Response.REFUSE),
        (REFUSALS_AN_HOUR - 1, (ME,), Response.REACT),
        (REFUSALS_AN_HOUR, (ME,), Response.NOTHING),
        (REFUSALS_AN_HOUR + 1, (ME,), Response.NOTHING),
        (REFUSALS_AN_HOUR - 1, (), Response.REFUSE),
        (REFUSALS_AN_HOUR, (), Response.NOTHING),
    ],
)
def test_a_stranger_is_told_once_then_gets_reactions_then_nothing(
    refusals: int, told: tuple[int, ...], response: Response
) -> None:
    person = tally(*[(Kind.REFUSED, 1)] * refusals)
    assert decide_response(question(refused=True), person, tally(told=told), LIMITS) is response


def test_refusals_use_up_nobodys_commands() -> None:
    refused = tally(*[(Kind.REFUSED, 20)] * 60)
    assert decide_response(question(), refused, refused, LIMITS) is Response.RUN


def test_the_same_comment_counts_once_however_often_it_is_planned() -> None:
    known = Tally({"this": Counted(NOW, 4, Kind.RUN)})
    assert decide_response(question(4), known, known, LIMITS) is Response.RUN
    assert len(known.with_one("this", Counted(NOW, 4, Kind.RUN)).counted) == 1


def test_a_tally_stays_small() -> None:
    kept = Tally({}, ())
    for number in range(MOST_COUNTED + 5):
        kept = kept.with_one(str(number), Counted(NOW, 1, Kind.RUN), told=number)
    assert (len(kept.counted), len(kept.told)) == (MOST_COUNTED, MOST_TOLD)
    assert kept.with_one("later", Counted(NOW + HOUR, 1, Kind.RUN)).counted.keys() == {"later"}
