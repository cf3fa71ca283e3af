"""What a repository may set for itself, what it may not, and how its file changes app.yaml."""

from pathlib import Path
from textwrap import indent

import pytest

from bot.app.load import load_repository_file, parse_config
from bot.config import ConfigError, RepositoryConfig
from bot.config.keys import model_of
from bot.config.repository_file import MOST_BYTES, is_repository_file
from bot.config.shared import file_model, files_for, overlaid, settings, switches
from handlers.last_good.config import LAST_GOOD
from handlers.main_failures.config import MAIN_FAILURES
from handlers.nightly.config import NIGHTLY
from handlers.rerun.config import RERUN
from handlers.slow_tests.config import SLOW_TESTS
from tests.settings import MODEL, enabled, own_file

SWITCHES = switches(MODEL)
HERE = ".github/nightjar.yaml"
KNOWN = ", ".join(file_model(MODEL).model_fields)
ONLY_APP_YAML = "can only be set in app.yaml, by the operator of the bot; remove it here"
NOT_ON = (
    "is not enabled in app.yaml, and cannot be enabled here; remove it, or ask the operator of the bot to enable it"
)
PATTERNS = "a list, each item a name or a pattern of *, ? and [letters], as in release/*"
EVERYTHING_ON = """
rerun: {jenkins: [{url: "https://ci.example.org"}]}
nightly: {branch: labs, at: "03:00"}
last_good: {require: ["*/branch"], every: 5m}
main_failures: {to: [discord], wait: 5m}
"""


def given(keys: str = "") -> RepositoryConfig:
    """Return app.yaml's settings for a repository."""
    text = f"repositories:\n  octocat/compiler:\n{indent(keys, '    ')}\n"
    found = parse_config(text.encode(), "app.yaml").repository("octocat/compiler")
    assert found is not None
    return found


def faults(written: str | bytes, keys: str = EVERYTHING_ON) -> list[str]:
    raw = written.encode() if isinstance(written, str) else written
    try:
        own_file(raw, given(keys))
    except ConfigError as error:
        return [line.removeprefix(f"{HERE}:") for line in str(error).splitlines()]
    return []


def over(keys: str, written: str) -> RepositoryConfig:
    return overlaid(given(keys), own_file(written))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("slow_tests: {status: ci/other}", f"1:14: slow_tests.status: {ONLY_APP_YAML}"),
        ('rerun: {jenkins: [{url: "https://ci.example.org"}]}', f"1:9: rerun.jenkins: {ONLY_APP_YAML}"),
        ("nightly: {branch: other}", f"1:11: nightly.branch: {ONLY_APP_YAML}"),
        ("nightly: {from: other}", f"1:11: nightly.from: {ONLY_APP_YAML}"),
        ("nightly: {at: '21:00'}", f"1:11: nightly.at: {ONLY_APP_YAML}"),
        ("last_good: {every: 1m}", f"1:13: last_good.every: {ONLY_APP_YAML}"),
        ("main_failures: {to: [slack]}", f"1:17: main_failures.to: {ONLY_APP_YAML}"),
        ("results: {bucket: other}", f"1:1: results: {ONLY_APP_YAML}"),
        ("regressions: {to: [slack]}", f"1:1: regressions: {ONLY_APP_YAML}"),
        ("repository_file: true", f"1:1: repository_file: {ONLY_APP_YAML}"),
        ("mentions: ['@other']", f"1:1: mentions: {ONLY_APP_YAML}"),
        ("repositories: {octocat/other: }", f"1:1: repositories: {ONLY_APP_YAML}"),
        ("defaults: {}", f"1:1: defaults: {ONLY_APP_YAML}"),
        ("public_url: https://example.org", f"1:1: public_url: {ONLY_APP_YAML}"),
        ("merge: {}", f"1:1: merge: {ONLY_APP_YAML}"),
    ],
)
def test_keys_for_operators_only_are_refused_with_the_remedy(written: str, expected: str) -> None:
    assert faults(written) == [expected]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("slow_test: {}", f"1:1: slow_test: unknown key (did you mean slow_tests?); allowed: {KNOWN}"),
        ("frobnicate: 1", f"1:1: frobnicate: unknown key; allowed: {KNOWN}"),
        ("help: {x: 1}", "1:8: help.x: unknown key; help has no keys, write true or false"),
        (
            "slow_tests: {alow: [write]}",
            "1:14: slow_tests.alow: unknown key (did you mean allow?); allowed: branches, levels, allow, rerun",
        ),
        ("cc_reviewers: no", '1:15: cc_reviewers: is the text "no"; write false'),
        (
            "slow_tests: []",
            "1:13: slow_tests: is a list; it must be true, false or a mapping of keys; "
            'for example {"branches": ["main"]}',
        ),
        (
            "rerun: 1",
            "1:8: rerun: is a number; it must be true, false or a mapping of keys; "
            'for example {"allow": ["author", "triage"]}',
        ),
        (
            "nightly: false",
            '1:10: nightly: is false; it must be a mapping of keys; for example {"require": ["*/branch"]}',
        ),
        ("last_good: {require: []}", f"1:22: last_good.require: is empty; it must be {PATTERNS}"),
        (
            "rerun: {allow: [triager]}",
            "1:17: rerun.allow[0]: must be one of author, triage, write, maintain, admin (did you mean triage?)",
        ),
        ("- a", "1:1: is a list; it must be a mapping of keys"),
        (
            "help: &a true",
            "1:7: anchors and aliases (& and *) are not supported; write the value out, or share it through defaults",
        ),
        ("help: true\nhelp: false", "2:1: help: is there twice, first in line 1; remove one of them"),
        ("help: \x01", "1:7: a control character, which YAML does not allow; remove it"),
        (b"help: \xff", "1:7: the file is not UTF-8 text; save it as UTF-8"),
        ("#" * (MOST_BYTES + 1), "1:1: the file is larger than 64 KiB, the maximum"),
    ],
)
def test_a_fault_is_named_with_its_place_and_what_is_allowed(written: str | bytes, expected: str) -> None:
    assert faults(written) == [expected]


@pytest.mark.parametrize(
    "written", ["nightly: {require: [a]}", "last_good: {require: [a]}", "main_failures: {branches: [main]}", "nightly:"]
)
def test_a_feature_that_app_yaml_does_not_switch_on_cannot_be_set(written: str) -> None:
    key = written.partition(":")[0]
    assert faults(written, keys="") == [f"1:1: {key}: {NOT_ON}"]
    assert faults(written) == []
    # It may have been on when the file was read.
    assert getattr(over("", written), key) is None


def test_all_faults_are_reported_together_in_the_order_of_the_file() -> None:
    written = "nightly: {require: a}\nresults: {}\nhelp: {x: 1}\nhelp: true\nslow_tests:\n  allow: [writer, admin]\n"
    assert [fault.partition(" ")[0] for fault in faults(written, keys="")] == [
        "1:1:",
        "1:20:",
        "2:1:",
        "3:8:",
        "4:1:",
        "6:11:",
    ]


@pytest.mark.parametrize("written", ["", "# nothing\n", "~", "{}", "slow_tests:", "slow_tests: true", "rerun: {}"])
def test_an_empty_file_changes_nothing(written: str) -> None:
    assert faults(written) == []
    assert over(EVERYTHING_ON, written) == given(EVERYTHING_ON)


def test_the_file_wins_key_by_key_and_the_rest_is_as_in_app_yaml() -> None:
    before = given(EVERYTHING_ON)
    after = over(
        EVERYTHING_ON,
        """
        slow_tests: {allow: [write]}
        rerun: {allow: [admin]}
        cc_reviewers: false
        nightly: {require: ["gpu/*"]}
        last_good: {require: [all]}
        main_failures: {branches: [dev], contexts: ["*/branch"]}
        """,
    )
    assert (enabled(after, SLOW_TESTS).allow, enabled(after, SLOW_TESTS).status) == (("write",), "ci/slow-tests")
    assert (enabled(after, RERUN).allow, [server.url for server in enabled(after, RERUN).jenkins]) == (
        ("admin",),
        ["https://ci.example.org"],
    )
    assert (enabled(after, NIGHTLY).require, enabled(after, NIGHTLY).branch, enabled(after, NIGHTLY).at) == (
        ("gpu/*",),
        "labs",
        "03:00",
    )
    assert (enabled(after, LAST_GOOD).require, enabled(after, LAST_GOOD).every) == (("all",), "5m")
    assert (
        enabled(after, MAIN_FAILURES).branches,
        enabled(after, MAIN_FAILURES).to,
        enabled(after, MAIN_FAILURES).wait,
    ) == (
        ("dev",),
        ("discord",),
        "5m",
    )
    assert before.features - after.features == {"cc_reviewers"}
    assert after.allowed("slow_tests") == ("write",)
    assert after.timers == before.timers


@pytest.mark.parametrize("feature", sorted(SWITCHES))
@pytest.mark.parametrize("on", [True, False])
def test_a_feature_of_the_repositorys_own_is_switched_whatever_app_yaml_says(feature: str, on: bool) -> None:
    before, after = str(not on).lower(), str(on).lower()
    found = over(f"{feature}: {before}", f"{feature}: {after}")
    assert (feature in found.features) is on
    assert found.features - {feature} == given().features - {feature}


def accepted(written: str) -> bool:
    try:
        own_file(written, given())
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("feature", MODEL.model_fields)
def test_a_text_names_the_file_for_a_feature_that_is_off_only_if_the_file_can_switch_it_on(feature: str) -> None:
    assert (HERE in files_for(given(), feature)) is (feature in SWITCHES and accepted(f"{feature}: true"))
    assert files_for(given("repository_file: false"), feature) == "`app.yaml`"


@pytest.mark.parametrize(
    ("keys", "own"),
    [
        (("slow_tests", "branches"), True),
        (("slow_tests", "rerun"), True),
        (("slow_tests", "status"), False),
        (("rerun", "allow"), True),
        (("rerun", "jenkins"), False),
        (("merge", "method"), False),
        (("merge", "required"), False),
        (("welcome", "text"), True),
        (("nothing", "here"), False),
    ],
)
def test_a_text_names_the_file_for_a_key_that_it_accepts(keys: tuple[str, ...], own: bool) -> None:
    assert (HERE in files_for(given(), *keys)) is own
    assert files_for(given("repository_file: false"), *keys) == "`app.yaml`"


def test_a_feature_that_the_file_switches_on_has_default_settings_and_no_credentials() -> None:
    found = over("rerun: false", "rerun: {allow: [write]}")
    assert (enabled(found, RERUN).allow, enabled(found, RERUN).jenkins) == (("write",), ())


def test_the_possible_settings_of_the_file_are_listed_with_their_values() -> None:
    listed = settings(over("rerun: false", "help: false\nslow_tests: {rerun: []}"))
    names = ("slow_tests", "rerun", "cc_reviewers", "help")
    assert {key: value for key, value in listed.items() if key.startswith(names)} == {
        "slow_tests": "true",
        "slow_tests.branches": '["main"]',
        "slow_tests.levels": '{"nightly": ["nightly"]}',
        "slow_tests.allow": '["author", "triage"]',
        "slow_tests.rerun": "[]",
        "rerun": "false",
        "cc_reviewers": "true",
        "help": "false",
    }


def test_each_section_of_the_file_has_the_descriptions_of_app_yaml() -> None:
    for name, field in file_model(MODEL).model_fields.items():
        assert field.description == MODEL.model_fields[name].description
        section = model_of(field.annotation)
        assert section is not None, name
        assert section.model_fields or name in SWITCHES


def test_the_file_is_recognized_by_its_name_and_its_folder(tmp_path: Path) -> None:
    assert is_repository_file(tmp_path / ".github" / "nightjar.yaml")
    assert not is_repository_file(tmp_path / "nightjar.yaml")
    assert not is_repository_file(tmp_path / ".github" / "app.yaml")


def test_a_file_on_disk_is_read_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nightjar.yaml"
    file.write_text("help: false")
    assert load_repository_file(file).model_fields_set == {"help"}
    with pytest.raises(ConfigError, match=r"no\.yaml:1:1: the file does not exist"):
        load_repository_file(tmp_path / "no.yaml")
