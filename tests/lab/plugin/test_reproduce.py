"""The printed command repeats the same failures, from any folder and without the variables of the first run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from nightjar_lab.pytest.remote import page_of_remote, page_of_repository
from nightjar_lab.pytest.reproduce import (
    LONGEST_ADDRESS,
    ReproducedRun,
    issue_address,
    named_on_command_line,
    reproduce_command,
    shared_options,
    shell_word,
)

from tests.lab.plugin.reports import outcomes

TITLE = "run the failed tests again"


def printed(result: pytest.RunResult) -> str:
    """Return the command printed by a run."""
    lines = result.outlines
    [place] = [number for number, line in enumerate(lines) if f" {TITLE} " in line]
    return lines[place + 1]


def failures(path: Path) -> dict[str, str]:
    return {name: ended for name, ended in outcomes(path).items() if ended != "passed"}


def run_again(pytester: pytest.Pytester, command: str) -> dict[str, str]:
    """Run a command in bash, in another folder, with only PATH set; return the failures."""
    report = pytester.path / "again.jsonl"
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(pytester.path)}
    done = subprocess.run(
        ["bash", "-c", f"{command} --nightjar-report {report}"],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return failures(report)


HOSTILE = """
    import os, pytest

    SHELL = ["a b", "it's", 'say "no"', "$(touch hacked)", "`x`;&|", "-x"]
    NAMES = [*SHELL, "c::d/e.py[f]", "\\x1b[31mred\\n\\t", "é##[error]"]

    class TestOuter:
        class TestInner:
            @pytest.mark.parametrize("name", NAMES)
            def test_names(self, name): assert 0

    @pytest.mark.parametrize("name", ["good"])
    def test_good(name): pass
"""


def test_the_printed_command_fails_as_the_run_did(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes, parameters with special characters of the shell, an option of the project, and a variable."""
    pytester.makeini(
        "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"
        "nightjar_reproduce_env = DEVICE\n"
    )
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--board')")
    Path("tests/deep").mkdir(parents=True)
    Path("tests/deep/test_n.py").write_text(HOSTILE.replace("\n    ", "\n"))
    Path("tests/test_e.py").write_text(
        "import os\ndef test_device(request):\n"
        "    assert not (os.environ.get('DEVICE') == 'Pixel 9' and request.config.getoption('--board') == 'b 1')\n"
    )
    monkeypatch.setenv("DEVICE", "Pixel 9")
    monkeypatch.setenv("NIGHTJAR_RESULTS", "results")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    options = ("--board", "b 1", "-xvs", "--maxfail=20", "-n0", "-k", "not nothing")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, "tests")
    first = failures(pytester.path / "results/pytest.jsonl")
    assert len(first) == 10
    command = printed(result)
    assert all(character.isprintable() for character in command)
    assert "##[" not in command
    assert run_again(pytester, command) == first
    assert not list(pytester.path.rglob("hacked"))


def test_the_configuration_is_that_of_the_run_and_not_a_nearer_one(pytester: pytest.Pytester) -> None:
    """pytest looks for its configuration from the common folder of all arguments."""
    Path("pytest.ini").write_text("[pytest]\npython_functions = check\n")
    Path("pkg/deep").mkdir(parents=True)
    Path("pkg/test_good.py").write_text("def check(): pass\n")
    Path("pkg/deep/test_d.py").write_text("def check(): assert 0\n")
    Path("pkg/deep/pytest.ini").write_text("[pytest]\n")
    os.chdir("pkg")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--nightjar-report", "r")
    assert run_again(pytester, printed(result)) == {"check": "failed"}


@pytest.mark.exhaustive
def test_only_the_first_failures_are_named(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTJAR_REPOSITORY", "octocat/compiler")
    pytester.makepyfile(test_m="import pytest\n@pytest.mark.parametrize('n', range(1500))\ndef test_m(n): assert n < 0")
    result = pytester.runpytest_inprocess("-q", "--tb=no")
    assert printed(result).count("::test_m[") == 10
    result.stdout.fnmatch_lines(["# 1,490 more tests failed"])
    addresses = [line for line in result.outlines if "/issues/new?" in line]
    assert len(addresses) == 3
    query = parse_qs(urlsplit(addresses[0].strip()).query)
    assert (query["labels"], query["title"]) == (["test: flaky"], ["[Flaky Test] test_m.py::test_m[0]"])


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ((), "", False),
        (("--nightjar-reproduce", "always"), "", True),
        (("--shard", "1/1"), "", True),
        (("--shard", "1/1", "--nightjar-reproduce", "never"), "", False),
        ((), "SKIP_SLOW_TESTS", True),
    ],
)
def test_the_command_is_printed_only_if_the_plugin_is_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], variable: str, expected: bool
) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    pytester.makepyfile("def test_fails(): assert 0")
    assert (TITLE in pytester.runpytest_inprocess(*options).stdout.str()) is expected


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("a/t.py::C::test[x::y]", "a/t.py::C::test[x::y]"),
        ("a/t.py::test[nul\0]", "a/t.py::test"),
        ("a/t.py::C\ud800::test[x]", "a/t.py"),
        ("a/t.py::test[\udc80]", "a/t.py::test[\udc80]"),
        ("a[1]/t.py::test", "."),
        ("b/a[1]/t.py::test", "b"),
        ("-t.py::test", "./-t.py::test"),
    ],
)
def test_a_test_that_a_command_line_cannot_name_is_replaced_by_what_contains_it(nodeid: str, expected: str) -> None:
    assert named_on_command_line(nodeid) == expected


@pytest.mark.parametrize(
    "text", ["a", "a b", "it's", "\x00"[:0], "\x1b\n\\'", "é\u202e", "\udc80", "##[error]", "$'x'", "\x7f9"]
)
def test_a_quoted_word_comes_out_of_the_shell_unchanged(text: str) -> None:
    word = shell_word(text)
    assert word.isprintable()
    assert "##" not in word
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == os.fsencode(text)


def test_options_that_select_tests_or_write_files_are_left_out() -> None:
    options = [
        "-n",
        "4",
        "-n2",
        "--dist=load",
        "tests",
        "-c",
        "x.ini",
        "-xvs",
        "-x",
        "--shard",
        "1/2",
        "--lf",
        "-p",
        "no:x",
    ]
    assert shared_options([*options, "--junitxml=o.xml", "a::b", "-W", "error"], ["tests", "a::b"]) == [
        *("-c", "x.ini", "-vs", "-p", "no:x", "-W", "error"),
    ]


def test_the_command_names_variables_first() -> None:
    run = ReproducedRun("/src/my code", ["python3", "-m", "pytest"], ["-v"], {"NIGHTJAR_TEST_TARGETS": "llvm;cuda"})
    expected = "cd '/src/my code' && NIGHTJAR_TEST_TARGETS='llvm;cuda' python3 -m pytest -v t.py::test"
    assert reproduce_command(run, ["t.py::test", "t.py::test"]) == expected


def test_an_issue_is_filled_in_and_its_address_is_short_enough() -> None:
    page = "https://github.com/octocat/compiler"
    address = issue_address(page, "t.py::test[`@hubot`\n]", "assert `1` == 2\x1b", "pytest t.py", {"Target": "cuda"})
    query = parse_qs(urlsplit(address).query)
    assert query["title"] == ["[Flaky Test] t.py::test[`@hubot`\\n]"]
    assert query["body"] == [
        "Test: ``t.py::test[`@hubot`\\n]``\nTarget: `cuda`\n\n```\nassert `1` == 2\\x1b\n```\n\n"
        "To reproduce, in the folder of the repository:\n\n```\npytest t.py\n```"
    ]
    for letter in ("é", "x", "`", "\U0001f600"):
        assert (
            len(issue_address(page, letter * 9000, letter * 9000, letter * 9000, {"Lab": letter * 900}))
            <= LONGEST_ADDRESS
        )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("git@github.com:octocat/compiler.git", "https://github.com/octocat/compiler"),
        ("https://octocat:secret@github.com/octocat/compiler.git", "https://github.com/octocat/compiler"),
        ("ssh://git@ghe.example.org:2222/octocat/compiler", "https://ghe.example.org/octocat/compiler"),
        ("/srv/git/compiler.git", ""),
        ("https://[", ""),
        ("https://github.com/octocat", ""),
        ("javascript://x/octocat/compiler", ""),
        ("", ""),
    ],
)
def test_a_remote_becomes_a_page(url: str, expected: str) -> None:
    assert page_of_remote(url) == expected


def test_the_repository_comes_from_the_environment_or_from_git(tmp_path: Path) -> None:
    assert (
        page_of_repository(tmp_path, {"NIGHTJAR_REPOSITORY": "octocat/compiler"})
        == "https://github.com/octocat/compiler"
    )
    assert page_of_repository(tmp_path, {"NIGHTJAR_REPOSITORY": "../compiler", "PATH": ""}) == ""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", "git@github.com:hubot/compiler"], check=True)
    assert page_of_repository(tmp_path, {}) == "https://github.com/hubot/compiler"
