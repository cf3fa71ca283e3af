"""The keys below `nightly`."""

import pytest

from bot.app.load import parse_config
from bot.config import ConfigError
from bot.core.schedule import Daily
from handlers.nightly.config import NIGHTLY as NIGHTLY_KEY
from tests.settings import enabled

NIGHTLY = "repositories:\n  octocat/a:\n    nightly: %s\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{at: 21:00 h}", '3:19: {}.at: must be a time of day in quotes, as in "21:00"'),
        ("{at: '24:00'}", '3:19: {}.at: must be a time of day in quotes, as in "21:00"'),
        (
            "{timezone: America/Los_Angels}",
            "3:25: {}.timezone: is not a time zone known here; "
            "it must be one of the IANA database, as in America/Los_Angeles",
        ),
        (
            "{timezone: America}",
            "3:25: {}.timezone: is not a time zone known here; "
            "it must be one of the IANA database, as in America/Los_Angeles",
        ),
        ("{timezone: ../../etc}", "3:25: {}.timezone: must be a time zone of IANA's, as in America/Los_Angeles"),
        ("{from: -x}", "3:21: {}.from: must be the name of a branch, as in nightly"),
        ("{form: x}", "3:15: {}.form: unknown key (did you mean from?); allowed: from, branch, at, timezone, require"),
    ],
)
def test_a_fault_is_named_with_its_place_and_the_remedy(written: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config((NIGHTLY % written).encode(), "app.yaml")
    assert str(caught.value).splitlines() == ["app.yaml:" + expected.replace("{}", "repositories.octocat/a.nightly")]


@pytest.mark.parametrize(("written", "source"), [("true", "main"), ("{from: develop, at: 21:00}", "develop")])
def test_the_default_values_are_those_of_tvm(written: str, source: str) -> None:
    repository = parse_config((NIGHTLY % written).encode(), "app.yaml").repository("octocat/a")
    assert repository is not None
    nightly = enabled(repository, NIGHTLY_KEY)
    assert (nightly.branch, nightly.source) == ("nightly", source)
    assert repository.timers == {"nightly": Daily("21:00", "America/Los_Angeles")}


def test_nightly_is_off_by_default() -> None:
    repository = parse_config(b"repositories:\n  octocat/a:\n", "app.yaml").repository("octocat/a")
    assert repository is not None
    assert repository.timers == {}
