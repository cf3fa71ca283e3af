"""The errors about a file: every fault at once, with its place and what is allowed."""

from pathlib import Path

import pytest

from bot.app.load import load_config, parse_config
from bot.config import Config, ConfigError, ConfigFault, check
from bot.config.repository_keys import ConfigKey
from handlers.rerun.config import RERUN
from handlers.slow_tests.config import SLOW_TESTS
from tests.settings import MODEL, enabled

NAME = 'must be a name with its @ or a slash before it, in quotes, as in "@ci" or "/ci"'
PATTERN = "must be a name or a pattern of *, ? and [letters], as in release/*"
REPOSITORY = "must be a repository's owner/name, as in octocat/compiler, or a pattern such as octo-org/*"
CONTEXT = "a name of up to 100 characters in one line, as in ci/slow-tests"
ROLES = "one of author, triage, write, maintain, admin"
FEATURES = ", ".join(MODEL.model_fields)
LABEL = "the name of a label, up to 50 characters in one line, as in ready-for-merge"
SWITCH = "it must be true, false or a mapping of keys"
ADDRESS = "must be a web address that starts with https:// or http:// and names a host"
NO_ALIASES = "anchors and aliases (& and *) are not supported; write the value out, or share it through defaults"
QUOTED = 'a value that starts with * must be in quotes, as in "*/branch"'


def faults(text: str | bytes) -> list[str]:
    raw = text.encode() if isinstance(text, str) else text
    try:
        parse_config(raw, "app.yaml")
    except ConfigError as error:
        return str(error).splitlines()
    return []


def loaded(text: str) -> Config:
    return parse_config(text.encode(), "app.yaml")


def inside(line: str) -> str:
    """Return a file whose only repository contains one line, which is line 3, from column 5."""
    return f"repositories:\n  octocat/compiler:\n    {line}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("slow_test: false", f"3:5: {{}}.slow_test: unknown key (did you mean slow_tests?); allowed: {FEATURES}"),
        ("Help: true", f"3:5: {{}}.Help: unknown key (did you mean help?); allowed: {FEATURES}"),
        ("frobnicate: true", f"3:5: {{}}.frobnicate: unknown key; allowed: {FEATURES}"),
        ("1: true", f"3:5: {{}}.1: unknown key; allowed: {FEATURES}"),
        ("merge: {method: fast}", "3:21: {}.merge.method: must be one of squash, merge, rebase"),
        (f"merge: {{label: {'a' * 51}}}", f"3:20: {{}}.merge.label: must be {LABEL}"),
        ("help: no", '3:11: {}.help: is the text "no"; write false'),
        ("help: ON", '3:11: {}.help: is the text "ON"; write true'),
        ("help: maybe", f"3:11: {{}}.help: is text; {SWITCH}; for example false"),
        ("repository_file: yes", '3:22: {}.repository_file: is the text "yes"; write true'),
        ("help: 1", f"3:11: {{}}.help: is a number; {SWITCH}; for example false"),
        ("help: [x]", f"3:11: {{}}.help: is a list; {SWITCH}; for example false"),
        ("help: {x: 1}", "3:12: {}.help.x: unknown key; help has no keys, write true or false"),
        (
            "slow_tests: {statsu: x}",
            "3:18: {}.slow_tests.statsu: unknown key (did you mean status?); "
            "allowed: status, branches, levels, allow, rerun, budget",
        ),
        (
            "slow_tests: {status: 5}",
            f"3:26: {{}}.slow_tests.status: is a number; it must be {CONTEXT}; put it in quotes",
        ),
        ("slow_tests: {status: }", f"3:25: {{}}.slow_tests.status: is empty; it must be {CONTEXT}"),
        (
            "slow_tests: {status: true}",
            f"3:26: {{}}.slow_tests.status: is true; it must be {CONTEXT}; put it in quotes",
        ),
        ("slow_tests: {status: [a]}", f"3:26: {{}}.slow_tests.status: is a list; it must be {CONTEXT}"),
        ("slow_tests: {status: ' a'}", f"3:26: {{}}.slow_tests.status: must be {CONTEXT}"),
        (f"slow_tests: {{status: {'a' * 101}}}", f"3:26: {{}}.slow_tests.status: must be {CONTEXT}"),
        (
            "slow_tests: {branches: main}",
            f"3:28: {{}}.slow_tests.branches: is text; it must be a list, each item {PATTERN.removeprefix('must be ')}"
            '; for example ["main", "release/*"]',
        ),
        ("slow_tests: {branches: [main, '[']}", f"3:35: {{}}.slow_tests.branches[1]: {PATTERN}"),
        ("slow_tests: {branches: ['a]']}", f"3:29: {{}}.slow_tests.branches[0]: {PATTERN}"),
        ("slow_tests: {branches: ['[!]']}", f"3:29: {{}}.slow_tests.branches[0]: {PATTERN}"),
        (
            "slow_tests: {branches: ['']}",
            f"3:29: {{}}.slow_tests.branches[0]: {PATTERN.replace('must be', 'is empty; it must be')}",
        ),
        (
            f"slow_tests: {{branches: [{'a' * 256}]}}",
            "3:29: {}.slow_tests.branches[0]: is longer than 255 characters, the maximum",
        ),
        ("rerun: {allow: []}", f"3:20: {{}}.rerun.allow: is empty; it must be a list, each item {ROLES}"),
        ("rerun: {allow: [triager]}", f"3:21: {{}}.rerun.allow[0]: must be {ROLES} (did you mean triage?)"),
        ("rerun: {allow: [everyone]}", f"3:21: {{}}.rerun.allow[0]: must be {ROLES}"),
        (
            "rerun: {jenkins: [{}]}",
            "3:23: {}.rerun.jenkins[0]: the key url is missing; it must be an https address, as in "
            "https://ci.example.org",
        ),
        ("rerun: {jenkins: [x]}", "3:23: {}.rerun.jenkins[0]: is text; it must be a mapping of keys"),
        ("rerun: {jenkins: [{url: ci.example.org}]}", f"3:29: {{}}.rerun.jenkins[0].url: {ADDRESS}"),
        (
            "rerun: {jenkins: [{url: 'http://ci.example.org'}]}",
            "3:29: {}.rerun.jenkins[0].url: must start with https://, because a password is sent to it (http:// is "
            "accepted for this machine only)",
        ),
        ("? [a]\n    : b", "3:7: {}: a key must be plain text"),
        ('"": b', "3:5: {}: a key must be plain text"),
        (
            "<<: {help: false}",
            f"3:5: {{}}.<<: unknown key; allowed: {FEATURES}",
        ),
    ],
)
def test_a_fault_in_a_repository_is_named_with_its_place_and_what_is_allowed(line: str, expected: str) -> None:
    assert faults(inside(line)) == ["app.yaml:" + expected.replace("{}", "repositories.octocat/compiler", 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '1:1: the file is empty; it needs at least "repositories: {octocat/compiler: {}}"'),
        ("# nothing\n", '1:1: the file is empty; it needs at least "repositories: {octocat/compiler: {}}"'),
        ("null", '1:1: the file is empty; it needs at least "repositories: {octocat/compiler: {}}"'),
        ("- a", "1:1: is a list; it must be a mapping of keys"),
        ("hello", "1:1: is text; it must be a mapping of keys"),
        ("mentions: ['@ci']", f"1:1: the key repositories is missing; it must be a mapping, each key {REPOSITORY[8:]}"),
        (
            "repositories:",
            f"1:14: repositories: is empty; it must be a mapping, each key {REPOSITORY[8:]}"
            '; for example {"octocat/compiler": {}}',
        ),
        ("repositories: {}", f"1:15: repositories: is empty; it must be a mapping, each key {REPOSITORY[8:]}"),
        ("repositories: {compiler: }", f"1:16: repositories.compiler: {REPOSITORY}"),
        ("repositories: {octocat/..: }", f"1:16: repositories.octocat/..: {REPOSITORY}"),
        ("repositories: {octocat/a/b: }", f"1:16: repositories.octocat/a/b: {REPOSITORY}"),
        ('repositories: {"octocat/a\\nb": }', f"1:16: repositories.octocat/a\\nb: {REPOSITORY}"),
        (
            "repositories: {octocat/compiler: true}",
            "1:34: repositories.octocat/compiler: is true; it must be a mapping of keys; leave the value empty for the "
            "defaults, or indent keys below it",
        ),
        (
            "repositories: {octocat/a: , Octocat/A: }",
            "1:29: repositories.Octocat/A: the same repository as in line 1: "
            "GitHub ignores upper and lower case; remove one of them",
        ),
        (
            "repositories: {octocat/a: }\nrepositories: {octocat/b: }",
            "2:1: repositories: is there twice, first in line 1; remove one of them",
        ),
        (
            "repositories: {octocat/a: }\nmentions: []",
            f"2:11: mentions: is empty; it must be a list, each item {NAME[8:]}",
        ),
        ("repositories: {octocat/a: }\nmentions: [ci]", f"2:12: mentions[0]: {NAME}"),
        ("repositories: {octocat/a: }\npublic_url: ci.example.org", f"2:13: public_url: {ADDRESS}"),
        (
            "repositories: {octocat/a: }\nslow_tests: {}",
            "2:1: slow_tests: is a key of a repository; indent it below a repository, or below defaults",
        ),
        (
            "repositories:\n  octocat/a:\n  merge: {method: x}",
            "3:3: repositories.merge: is a key of a repository; indent it below a repository",
        ),
        ("repositories:\n  help: on", "2:3: repositories.help: is a key of a repository; indent it below a repository"),
        (
            "repositories: {octocat/a: }\nresults: {}",
            "2:1: results: is a key of a repository; indent it below a repository, or below defaults",
        ),
        (
            "repositories: {octocat/a: }\nmention: ['@x']",
            "2:1: mention: unknown key (did you mean mentions?); allowed: mentions, public_url, operators, commands, "
            "http, log, defaults, repositories",
        ),
    ],
)
def test_a_fault_of_the_whole_file_is_named(text: str, expected: str) -> None:
    assert faults(text) == [f"app.yaml:{expected}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mentions: [@ci]", '1:12: a value that starts with @ must be in quotes, as in "@ci"'),
        ("a: *x", f"1:4: {NO_ALIASES}; {QUOTED}"),
        ("a: [*/branch]", f"1:5: {NO_ALIASES}; {QUOTED}"),
        ("a: [*]", f"1:6: {NO_ALIASES}; {QUOTED}"),
        ("a: &b c", f"1:4: {NO_ALIASES}"),
        ("a: !!python/object:os.system x", "1:4: tags (!) are not supported; write the plain value"),
        (
            "%YAML 1.1\n---\nrepositories: {octocat/a: {help: off}}",
            "1:1: directives (%) are not supported; remove the line",
        ),
        ("# x\n%YAML 1.11", "2:1: directives (%) are not supported; remove the line"),
        ("a:\n\tb: 1", "2:1: tabs cannot indent YAML; use spaces"),
        ("a: 1\n---\nb: 2", "2:1: a second YAML document starts here; a file holds one document, remove the ---"),
        ("a: b: c", "1:5: not valid YAML: mapping values are not allowed here"),
        ("repositories:\n  octocat/a\n    help: true", "2:12: a colon is missing after octocat/a"),
        ("repositories:\n  octocat/a  # ours\n\n    help: true", "2:12: a colon is missing after octocat/a"),
        ("mentions ['@ci']\nrepositories:\n", "1:9: a colon is missing after mentions"),
        ("public_url: x\nrepositories\ndefaults: {}", "2:13: a colon is missing after repositories"),
        (
            "a: 1\nb: 'x\n",
            "3:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar that starts in line 2",
        ),
        (
            "a: 1\r\nb:\r\n  - [c\r\n",
            "4:1: not valid YAML: expected ',' or ']', but got '<stream end>', "
            "while parsing a flow sequence that starts in line 3",
        ),
        ("a: \x01", "1:4: a control character, which YAML does not allow; remove it"),
        (b"a: 1\nb: \xff", "2:4: the file is not UTF-8 text; save it as UTF-8"),
        ("a: 1".encode("utf-16"), "1:1: the file is not UTF-8 text; save it as UTF-8"),
    ],
)
def test_invalid_yaml_is_reported_with_its_place_and_the_fix(text: str | bytes, expected: str) -> None:
    assert faults(text) == [f"app.yaml:{expected}"]


def test_all_errors_are_reported_together_in_the_order_of_the_file() -> None:
    text = (
        "mentions: [ci]\n"
        "repositories:\n"
        "  octocat/compiler:\n"
        "    help: off\n"
        "    help: true\n"
        "    team: {}\n"
        "    rerun: {jenkins: [{url: 'https://me:sesame@ci.example.org'}, {}]}\n"
        "  hubot: {x: 1}\n"
        "public_url: 7\n"
    )
    assert faults(text) == [
        f"app.yaml:1:12: mentions[0]: {NAME}",
        'app.yaml:4:11: repositories.octocat/compiler.help: is the text "off"; write false',
        "app.yaml:5:5: repositories.octocat/compiler.help: is there twice, first in line 4; remove one of them",
        f"app.yaml:6:5: repositories.octocat/compiler.team: unknown key (did you mean teams?); allowed: {FEATURES}",
        "app.yaml:7:29: repositories.octocat/compiler.rerun.jenkins[0].url: must not contain a user name or password",
        "app.yaml:7:66: repositories.octocat/compiler.rerun.jenkins[1]: the key url is missing; "
        "it must be an https address, as in https://ci.example.org",
        f"app.yaml:8:3: repositories.hubot: {REPOSITORY}",
        f"app.yaml:8:11: repositories.hubot.x: unknown key; allowed: {FEATURES}",
        "app.yaml:9:13: public_url: is a number; it must be a web address, as in https://ci.example.org",
    ]


def test_an_error_in_the_defaults_is_reported_once_where_it_was_written() -> None:
    text = (
        "repositories: {octocat/a: , octocat/b: {slow_tests: true}, octocat/c: {slow_tests: {rerun: []}}}\n"
        "defaults:\n"
        "  slow_tests: {status: 5, x: 1}\n"
    )
    assert faults(text) == [
        f"app.yaml:3:24: defaults.slow_tests.status: is a number; it must be {CONTEXT}; put it in quotes",
        "app.yaml:3:27: defaults.slow_tests.x: unknown key; allowed: status, branches, levels, allow, rerun, budget",
    ]


def test_an_error_in_the_defaults_is_reported_even_if_every_repository_overrides_it() -> None:
    text = "repositories: {octocat/a: {help: false}}\ndefaults: {help: maybe}"
    assert faults(text) == [f"app.yaml:2:18: defaults.help: is text; {SWITCH}; for example false"]


def test_defaults_apply_to_every_repository_key_by_key() -> None:
    config = loaded(
        """
        defaults:
          slow_tests: {status: ci/all, branches: [main, next]}
          rerun: {jenkins: [{url: "https://one.example.org/"}]}
          help: false
        repositories:
          octocat/a:
          octocat/b:
            slow_tests: {branches: [dev]}
            rerun: {jenkins: [{url: "https://two.example.org"}]}
            help: true
          octocat/c: {slow_tests: true, rerun: false}
        """
    )
    a, b, c = (config.repositories[f"octocat/{name}"] for name in "abc")
    assert (enabled(a, SLOW_TESTS).status, enabled(a, SLOW_TESTS).branches) == ("ci/all", ("main", "next"))
    assert enabled(a, SLOW_TESTS).allow == ("author", "triage")
    assert a.features == {"slow_tests", "rerun", "cc_reviewers"}
    assert (enabled(b, SLOW_TESTS).status, enabled(b, SLOW_TESTS).branches) == ("ci/all", ("dev",))
    assert [server.url for server in enabled(b, RERUN).jenkins] == ["https://two.example.org"]
    assert b.features == {"slow_tests", "rerun", "cc_reviewers", "help"}
    assert enabled(c, SLOW_TESTS) == enabled(a, SLOW_TESTS)
    assert c.features == {"slow_tests", "cc_reviewers"}


@pytest.mark.parametrize("entry", ["", "{}", "null", "~"])
def test_an_empty_entry_switches_every_feature_on(entry: str) -> None:
    repository = loaded(f"repositories: {{octocat/compiler: {entry}}}").repository("octocat/compiler")
    assert repository is not None
    assert repository.features == {"slow_tests", "rerun", "cc_reviewers", "help"}


@pytest.mark.parametrize(
    ("written", "on"), [("true", True), ("{}", True), ("", True), ("False", False), ("false", False)]
)
def test_a_feature_is_switched_by_true_and_false(written: str, on: bool) -> None:
    repository = loaded(f"repositories: {{octocat/compiler: {{rerun: {written}}}}}").repository("octocat/compiler")
    assert repository is not None
    assert ("rerun" in repository.features) is on
    assert repository.allowed("rerun") == (("author", "triage") if on else None)


def test_a_repository_is_found_in_any_letter_case_and_others_are_not_found() -> None:
    config = loaded("repositories: {Octocat/Compiler: {help: false}}")
    found = config.repository("oCTOCAT/cOMPILER")
    assert found is not None
    assert "help" not in found.features
    assert config.repository("octocat/hello-world") is None


def test_permissions_are_per_feature() -> None:
    repository = loaded(inside("rerun: {allow: [write]}")).repository("octocat/compiler")
    assert repository is not None
    assert repository.allowed("rerun") == ("write",)
    assert repository.allowed("slow_tests") == ("author", "triage")
    assert repository.allowed("help") is None
    assert repository.allowed("") is None


def test_a_file_with_a_byte_order_mark_is_read() -> None:
    assert parse_config(b"\xef\xbb\xbfrepositories: {octocat/compiler: }", "app.yaml").repository("octocat/compiler")


def test_an_unreadable_file_is_a_fault_that_names_it(tmp_path: Path) -> None:
    missing = tmp_path / "app.yaml"
    assert check(missing, load_config) == [
        ConfigFault(str(missing), 1, 1, "", "the file does not exist; create it or name another one")
    ]
    assert check(tmp_path, load_config) == [
        ConfigFault(
            str(tmp_path), 1, 1, "", "cannot be read: is a directory; name another file, or make this one readable"
        )
    ]
    with pytest.raises(ConfigError, match=r"app\.yaml:1:1: the file does not exist; create it"):
        load_config(missing)


def test_a_good_file_has_no_faults_and_a_bad_one_the_same_as_loading_it(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("repositories: {octocat/compiler: }")
    assert check(file, load_config) == []
    file.write_text("repositories: {compiler: }")
    assert [fault.as_json() for fault in check(file, load_config)] == [
        {"file": str(file), "line": 1, "column": 16, "key": "repositories.compiler", "message": REPOSITORY}
    ]


def test_the_sample_is_valid_and_switches_everything_on() -> None:
    config = load_config(Path(__file__).parents[2] / "app.yaml")
    usual = {"slow_tests", "rerun", "cc_reviewers", "help"}
    assert {name: repository.features for name, repository in config.repositories.items()} == {
        "octocat/hello-world": usual,
        "octocat/compiler": {key.name for key in MODEL.KEYS if isinstance(key, ConfigKey)},
    }
