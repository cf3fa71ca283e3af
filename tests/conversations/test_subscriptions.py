"""A channel that subscribed to some targets and tests gets their part of each message about regressions, once."""

from __future__ import annotations

from pathlib import Path

from bot.results.deliveries import CHECK_EVENT
from handlers.regressions.nightly_news import NIGHTLY_NEWS
from tests.bucket import World
from tests.conversations.channels import town_with_channels
from tests.conversations.test_nightly_news import FILE, HALF_AN_HOUR, ManyTargets

ADRENO, HEXAGON, OTHER = TARGETS = ("example-lab/adreno", "example-lab/hexagon-v73", "lab-2/a")
FEATURES = f"""regressions:
      to: [discord]
      subscriptions:
      - {{to: [slack, issue, discord], targets: [{ADRENO}, {HEXAGON}], paths: ["{FILE}::test_a"]}}
      - {{to: [slack], targets: [{OTHER}], paths: ["{FILE}::test_d"]}}"""


async def test_subscribed_channels_get_their_part_of_each_message_once(tmp_path: Path, aws_world: World) -> None:
    async with town_with_channels(tmp_path, aws_world, "lab-2: {targets: [a]}", FEATURES) as (place, opened):
        targets = ManyTargets(place, opened)
        read = {"discord": 0, "slack": 0}

        def new_titles(name: str, messages: list[str]) -> list[str]:
            """Return the first lines of the messages since the last call, without marks and commits, sorted."""
            start, read[name] = read[name], len(messages)
            lines = [message.splitlines()[0][2:] for message in messages[start:]]
            return sorted(line.partition(" at nightly")[0].partition(" since")[0] for line in lines)

        def titles() -> tuple[list[str], list[str]]:
            return new_titles("discord", opened.discord.said), new_titles("slack", opened.slack.said)

        # The same tests fail on three targets: one message, of which the subscribers get their test and targets.
        for failed in ("", "ab", "ab"):
            await targets.nightly_run(failed, TARGETS)
        assert titles() == (["2 tests failing on 3 targets"], ["1 test failing on 2 targets"])
        assert all(text in opened.slack.said[0] for text in (ADRENO, HEXAGON, f"{FILE}::test_a"))
        assert not any(text in opened.slack.said[0] for text in (OTHER, "test_b"))
        (group,) = targets.issues
        assert (group.title.partition(" since")[0], group.state) == ("1 test failing on 2 targets", "open")
        assert not any(text in (group.body or "") for text in (OTHER, "test_b"))

        await targets.nightly_run("b", TARGETS)
        assert titles() == (
            [f"1 test recovered on {target}" for target in TARGETS],
            [f"1 test recovered on {target}" for target in (ADRENO, HEXAGON)],
        )
        assert group.state == "closed"

        # Each target has its own failures.
        for _ in range(2):
            await targets.arrive(place.nightly_run(), {ADRENO: "abc", HEXAGON: "b", OTHER: "bd"})
        await place.scan(later=HALF_AN_HOUR)
        assert titles() == (
            [f"1 test began to fail on {OTHER}", f"2 tests began to fail on {ADRENO}"],
            [f"1 test began to fail on {target}" for target in (ADRENO, OTHER)],
        )
        _, own = targets.issues
        assert (own.title, own.state) == (f"Regressions on {ADRENO}", "open")
        assert f"{FILE}::test_a" in (own.body or "")
        assert not any(test in (own.body or "") for test in ("test_b", "test_c"))

        await targets.nightly_run("", TARGETS)
        assert titles() == (
            [f"1 test recovered on {HEXAGON}", f"2 tests recovered on {OTHER}", f"3 tests recovered on {ADRENO}"],
            [f"1 test recovered on {target}" for target in (ADRENO, OTHER)],
        )
        assert [issue.state for issue in targets.issues] == ["closed", "closed"]

        engine = place.town.bot.engine
        for record in await engine.journal.recent(limit=500):
            if record.event in (CHECK_EVENT.name, NIGHTLY_NEWS.name):
                await engine.replay(record.guid)
        await place.settle()
        await place.scan(later=HALF_AN_HOUR)
        assert (titles(), len(targets.issues), await place.town.failures()) == (([], []), 2, [])
