"""What the features that are on declare about their settings, and nothing of those that are off."""

from __future__ import annotations

from handlers.merge.texts import NOTHING_REQUIRED
from tests.settings import repository_config


def test_a_feature_that_is_on_says_what_it_waits_for() -> None:
    last_good = {"require": ("*/branch",)}
    config = repository_config(merge={"required": ("*/pr-head", "lint")}, last_good=last_good)
    patterns = dict(config.required())
    assert patterns["merge", "required"] == ("*/pr-head", "lint")
    assert patterns["last_good", "require"] == ("*/branch",)
    assert dict(repository_config(merge=False, last_good=last_good).required()) == {
        ("last_good", "require"): ("*/branch",)
    }


def test_who_may_use_a_feature_is_what_its_own_key_says() -> None:
    config = repository_config(rerun={"allow": ("triage",)}, slow_tests={"allow": ("author", "admin")}, merge={})
    assert config.allowed("rerun") == ("triage",)
    assert config.allowed("slow_tests") == ("author", "admin")
    assert config.allowed("merge") is None
    assert repository_config(rerun=False).allowed("rerun") is None


def test_only_a_doubtful_setting_causes_a_warning() -> None:
    assert list(repository_config(merge={"required": ("ci",)}).warnings()) == []
    assert list(repository_config(merge={}).warnings()) == [("merge", NOTHING_REQUIRED)]
