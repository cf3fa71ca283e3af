"""A target simulates another one: the check run and the message say which tests pass on the simulator only."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import aiohttp
import pytest

from bot.app.load import parse_config
from bot.config import ConfigError
from tests.bucket import World
from tests.conversations.channels import channels
from tests.conversations.lab import LAB, TARGET, junit, lab_town
from tests.conversations.town import REPOSITORY

SIMULATOR = "simulator"
TARGETS = f"{{{TARGET}: nightly, {SIMULATOR}: {{simulates: {LAB}/{TARGET}}}}}"
GOOD = junit(test_add="passed", test_mul="passed")
BAD = junit(test_add="passed", test_mul="AssertionError: 3 != 4")


async def test_a_test_that_fails_on_the_device_only_is_named_as_such(tmp_path: Path, aws_world: World) -> None:
    database, features = f"sqlite:///{tmp_path}/nightjar.db", "regressions: {to: [discord]}"
    async with (
        channels() as opened,
        lab_town(database, aws_world, targets=TARGETS, features=features, environment=opened.environment) as place,
    ):
        for device, simulator in ((GOOD, GOOD), (BAD, GOOD), (BAD, GOOD)):
            sha = place.nightly_run()
            place.upload(sha, {"a.xml": simulator}, target=SIMULATOR)
            await place.settle()
            place.upload(sha, {"a.xml": device})
            await place.settle()
            if "1 new failure" in str(place.check(sha).title):
                summary = str(place.check(sha).summary)
                assert "Passes on the simulator, fails on the device: 1 new failure." in summary
                assert f"passes on the simulator `{LAB}/{SIMULATOR}`" in summary
        async with aiohttp.ClientSession(place.town.url, headers={"Accept": "text/html"}) as session:

            async def page(view: str) -> str:
                async with session.get(f"/r/{REPOSITORY}{view}") as response:
                    return await response.text()

            grid = await page("")
            assert f"compare with {SIMULATOR}" in grid
            assert "1 failed, 1 of them passed on the simulator, 1 passed" in grid
            listed = await page("?status=fails-on-device-only")
            (test,) = re.findall(r'href="(/r/[^"]*/tests\?id=[^"]*)"', listed)
            history = await page(unescape(test).removeprefix(f"/r/{REPOSITORY}"))
            assert re.search(f"It passes on the simulator <a [^>]*>{LAB}/{SIMULATOR}</a>\\.", history)
            assert "No test fails on a simulator" in await page("?status=fails-on-simulator-only")
        (message,) = opened.discord.said
        assert f"passes on the simulator {LAB}/{SIMULATOR}" in message


@pytest.mark.parametrize("device", ["example-lab/nosuch", "example-lab/simulator", "simulator"])
def test_a_target_simulates_another_target_of_a_lab(device: str) -> None:
    lines = f"""
repositories:
  octocat/compiler:
    results:
      labs:
        example-lab: {{targets: {{hexagon-v73: nightly, simulator: {{simulates: {device}}}}}}}
"""
    with pytest.raises(ConfigError):
        parse_config(lines.encode(), "app.yaml")
