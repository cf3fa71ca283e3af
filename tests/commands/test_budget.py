"""What a comment with commands gets, given the requests of the last hour: each limit one below, at, and above."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.commands.budget import (
    HOUR,
    MOST_COUNTED,
    MOST_NOTIFIED,
    REFUSALS_AN_HOUR,
    CommandOutcome,
    CommandResponse,
    CommandsQuestion,
    CommandTally,
    CountedComment,
    decide_response,
    is_ignored,
)
from bot.config.commands import Commands

NOW = 1_795_152_400.0
LIMITS = Commands(per_person=4, per_pull_request=6)
ME = 7


def tally(
    *counted: tuple[CommandOutcome, int], written_at: float = NOW - 10, notified: Sequence[int] = ()
) -> CommandTally:
    return CommandTally(
        {str(place): CountedComment(written_at, many, kind) for place, (kind, many) in enumerate(counted)},
        tuple(notified),
    )


def question(commands: int = 1, *, refused: bool = False, writer: bool = False) -> CommandsQuestion:
    return CommandsQuestion("this", NOW, commands, ME, refused=refused, writer=writer)


@pytest.mark.parametrize(
    ("earlier", "commands", "response"),
    [
        (2, 1, CommandResponse.RUN),
        (3, 1, CommandResponse.RUN),
        (4, 1, CommandResponse.PERSON_OVER),
        (0, 4, CommandResponse.RUN),
        (0, 5, CommandResponse.PERSON_OVER),
        (2, 2, CommandResponse.RUN),
        (2, 3, CommandResponse.PERSON_OVER),
    ],
)
@pytest.mark.parametrize("writer", [True, False])
def test_a_persons_limit_applies_to_everybody(
    earlier: int, commands: int, response: CommandResponse, writer: bool
) -> None:
    comment = question(commands, writer=writer)
    assert decide_response(comment, tally((CommandOutcome.RUN, earlier)), tally(), LIMITS) is response


@pytest.mark.parametrize(
    ("earlier", "writer", "response"),
    [
        (5, False, CommandResponse.RUN),
        (6, False, CommandResponse.PULL_OVER),
        (7, False, CommandResponse.PULL_OVER),
        (7, True, CommandResponse.RUN),
    ],
)
def test_a_pull_requests_limit_applies_to_people_without_the_write_role(
    earlier: int, writer: bool, response: CommandResponse
) -> None:
    assert decide_response(question(writer=writer), tally(), tally((CommandOutcome.RUN, earlier)), LIMITS) is response


def test_over_a_limit_one_answer_says_so() -> None:
    full, answered = tally((CommandOutcome.RUN, 4)), tally((CommandOutcome.RUN, 4), (CommandOutcome.OVER, 1))
    assert decide_response(question(), full, tally(), LIMITS) is CommandResponse.PERSON_OVER
    assert decide_response(question(), answered, tally(), LIMITS) is CommandResponse.NOTHING
    full, answered = tally((CommandOutcome.RUN, 6)), tally((CommandOutcome.RUN, 6), (CommandOutcome.OVER, 1))
    assert decide_response(question(), tally(), full, LIMITS) is CommandResponse.PULL_OVER
    assert decide_response(question(), tally(), answered, LIMITS) is CommandResponse.NOTHING


@pytest.mark.parametrize(
    ("person", "ignored"),
    [
        (tally((CommandOutcome.RUN, 4), (CommandOutcome.OVER, 1)), True),
        (tally((CommandOutcome.RUN, 5), (CommandOutcome.OVER, 1)), True),
        (tally((CommandOutcome.RUN, 3), (CommandOutcome.OVER, 2)), False),  # one command would still run
        (tally((CommandOutcome.RUN, 4)), False),
        (tally((CommandOutcome.RUN, 4), (CommandOutcome.REFUSED, 1)), False),
        (tally((CommandOutcome.RUN, 4), (CommandOutcome.OVER, 1), written_at=NOW - HOUR), False),
        (tally(), False),
    ],
)
def test_a_person_is_ignored_at_the_limit_after_the_answer_about_it(person: CommandTally, ignored: bool) -> None:
    assert is_ignored("this", NOW, person, LIMITS) is ignored


@pytest.mark.parametrize(
    ("written_at", "response"), [(NOW - HOUR, CommandResponse.RUN), (NOW - HOUR + 1, CommandResponse.PERSON_OVER)]
)
def test_requests_older_than_an_hour_do_not_count(written_at: float, response: CommandResponse) -> None:
    assert (
        decide_response(question(), tally((CommandOutcome.RUN, 4), written_at=written_at), tally(), LIMITS) is response
    )


@pytest.mark.parametrize(
    ("refusals", "notified", "response"),
    [
        (0, (), CommandResponse.REFUSE),
        (0, (ME,), CommandResponse.REACT),
        (0, (ME + 1,), CommandResponse.REFUSE),
        (REFUSALS_AN_HOUR - 1, (ME,), CommandResponse.REACT),
        (REFUSALS_AN_HOUR, (ME,), CommandResponse.NOTHING),
        (REFUSALS_AN_HOUR + 1, (ME,), CommandResponse.NOTHING),
        (REFUSALS_AN_HOUR - 1, (), CommandResponse.REFUSE),
        (REFUSALS_AN_HOUR, (), CommandResponse.NOTHING),
    ],
)
def test_a_stranger_gets_one_answer_then_reactions_then_nothing(
    refusals: int, notified: tuple[int, ...], response: CommandResponse
) -> None:
    person = tally(*[(CommandOutcome.REFUSED, 1)] * refusals)
    assert decide_response(question(refused=True), person, tally(notified=notified), LIMITS) is response


def test_refusals_use_up_nobodys_commands() -> None:
    refused = tally(*[(CommandOutcome.REFUSED, 20)] * 60)
    assert decide_response(question(), refused, refused, LIMITS) is CommandResponse.RUN


def test_a_comment_counts_once_however_often_it_is_planned() -> None:
    tally_with_it = CommandTally({"this": CountedComment(NOW, 4, CommandOutcome.RUN)})
    assert decide_response(question(4), tally_with_it, tally_with_it, LIMITS) is CommandResponse.RUN
    assert len(tally_with_it.with_comment("this", CountedComment(NOW, 4, CommandOutcome.RUN)).counted) == 1


def test_a_tally_stays_small() -> None:
    tally_of_many = CommandTally({}, ())
    for number in range(MOST_COUNTED + 5):
        tally_of_many = tally_of_many.with_comment(
            str(number), CountedComment(NOW, 1, CommandOutcome.RUN), notified=number
        )
    assert (len(tally_of_many.counted), len(tally_of_many.notified)) == (MOST_COUNTED, MOST_NOTIFIED)
    assert tally_of_many.with_comment("later", CountedComment(NOW + HOUR, 1, CommandOutcome.RUN)).counted.keys() == {
        "later"
    }
