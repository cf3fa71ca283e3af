"""Which text is a command, which is an error that teaches, and which is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import texts
from bot.commands.grammar import (
    LONGEST_NAME,
    MOST_COMMANDS,
    MOST_NAMES,
    MOST_SHOWN,
    Arguments,
    BadCommand,
    Command,
    CommandSpec,
    new_commands,
    parse,
)
from bot.commands.spec import CommandRegistry
from bot.github.text.markdown import TEXT_LIMIT

RUN_SLOW = CommandSpec(
    name="run slow tests",
    synonyms=("run slow test", "run slow", "slow tests", "slow test", "slow"),
    summary="Runs the slow tests too.",
    example="run slow tests",
    feature="slow_tests",
)
SKIP_SLOW = CommandSpec(
    name="skip slow tests",
    synonyms=("skip slow",),
    summary="Skips the slow tests.",
    example="skip slow tests",
    feature="slow_tests",
)
RERUN = CommandSpec(
    name="rerun",
    synonyms=("re-run",),
    phrases=("run", "run ci", "rerun ci", "re-run ci"),
    arguments=Arguments(choices=("failed", "all"), names="NAME…"),
    summary="Runs again what failed.",
    example="rerun failed",
    feature="rerun",
)
SHOW = CommandSpec(
    name="show",
    arguments=Arguments(choices=("queue", "labs")),
    summary="Shows what waits.",
    example="show queue",
    feature="show",
    allowed=("maintain",),
)
HELP = CommandSpec(name="help", summary="Lists the commands.", example="help", feature="help")
REGISTRY = CommandRegistry([RUN_SLOW, SKIP_SLOW, RERUN, SHOW, HELP])
MENTIONS = ("@ci", "@tvm-bot")
BUILDS = ("Linux / build", "arm build", "gpu build", "cpu build")


def read(text: str) -> list[Command | BadCommand]:
    return parse(text, registry=REGISTRY, mentions=MENTIONS)


def commands_of(text: str) -> list[str]:
    return [command.text for command in read(text) if isinstance(command, Command)]


def bad(text: str) -> tuple[str, str | None]:
    [command] = read(text)
    assert isinstance(command, BadCommand)
    return command.reason, command.nearest


MOST_DIFFERENT = tuple(f"n{number}" for number in range(MOST_NAMES))


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("@ci run slow tests", "run slow tests"),
        ("@ci slow", "run slow tests"),
        ("@ci skip slow tests", "skip slow tests"),
        ("@ci rerun", "rerun"),
        ("@ci re-run failed", "rerun failed"),
        ("@ci rerun ALL", "rerun all"),
        ("@ci run ci", "rerun"),
        ("@ci help", "help"),
        ("@tvm-bot rerun", "rerun"),
        ("@CI Run  SLOW\ttests", "run slow tests"),
        ("@ci\N{NO-BREAK SPACE}rerun", "rerun"),
        ("@ci \N{FULLWIDTH LATIN SMALL LETTER R}erun", "rerun"),
        ("\N{ZERO WIDTH NO-BREAK SPACE}@ci\N{ZERO WIDTH SPACE} re\N{SOFT HYPHEN}run", "rerun"),
        ("  @ci rerun  \r\n", "rerun"),
        ("@ci, rerun", "rerun"),
        ("@ci: rerun", "rerun"),
        ("@ci! rerun!", "rerun"),
        ("@ci rerun.", "rerun"),
        ("@ci rerun please", "rerun"),
        ("@ci please rerun, thank you!", "rerun"),
        ("@ci rerun 🙏🏽 :pray:", "rerun"),
        ("- @ci rerun", "rerun"),
        ("1. @ci rerun", "rerun"),
        ("## @ci rerun", "rerun"),
        ("@ci rerun\n---", "rerun"),
        ("**@ci** rerun", "rerun"),
        ("@ci rerun <!-- the runner died -->", "rerun"),
        ("<!-- a template's advice --> @ci rerun", "rerun"),
    ],
)
def test_a_command_is_understood_in_every_common_form(line: str, meant: str) -> None:
    [command] = read(line)
    assert isinstance(command, Command)
    assert (command.text, command.names) == (meant, ())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("@ci rerun cpu/pr-head", ("cpu/pr-head",)),
        ("@ci rerun cpu/pr-head, gpu/pr-head.", ("cpu/pr-head", "gpu/pr-head")),
        ('@ci rerun "Linux / build (3.11)"', ("Linux / build (3.11)",)),
        ("@ci rerun “Linux / build (3.11)”.", ("Linux / build (3.11)",)),
        ("@ci rerun 'Linux / build' cpu", ("Linux / build", "cpu")),
        ("@ci rerun \u2018Linux / build (3.11)\u2019, \u2018cpu\u2019.", ("Linux / build (3.11)", "cpu")),
        ("@ci rerun „Linux / build“ „arm build” «gpu build» \u201acpu build\u2018", BUILDS),
        ('@ci rerun `Linux / build (*.*)`, `a "b"`', ("Linux / build (*.*)", 'a "b"')),
        ("@ci rerun */pr-head cpu-?", ("*/pr-head", "cpu-?")),
        ('@ci rerun "all"', ("all",)),
        ("@ci rerun `failed`", ("failed",)),
        ('@ci rerun "faild"', ("faild",)),
        ('@ci rerun "please"', ("please",)),
        ("@ci rerun cpu cpu", ("cpu",)),
        ("@ci rerun CPU please", ("CPU",)),
        ("@ci rerun prüfung", ("prüfung",)),
        ('@ci rerun "🛠\ufe0f 👩\u200d🔧 build"', ("🛠\ufe0f 👩\u200d🔧 build",)),
        ("@ci rerun " + " ".join(MOST_DIFFERENT), MOST_DIFFERENT),
    ],
)
def test_names_may_be_bare_in_quotes_or_in_code(line: str, names: tuple[str, ...]) -> None:
    assert read(line) == [Command(RERUN, names=names)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("@ci rerun cpu/pr-head  please", "rerun cpu/pr-head"),
        ("@ci rerun “Linux / build” cpu", 'rerun "Linux / build" cpu'),
        ('@ci rerun "all" "please" `a b` cpu?.', 'rerun "all" "please" "a b" cpu?'),
        ('@ci rerun "ci"', 'rerun "ci"'),
        ("@ci rerun thanks cpu thanks cpu", 'rerun "thanks" cpu'),
    ],
)
def test_an_answer_quotes_names_as_the_person_did(line: str, text: str) -> None:
    (command,) = read(line)
    assert isinstance(command, Command)
    assert command.text == text
    assert read(f"@ci {text}") == [command]


def test_a_name_is_quoted_with_marks_of_which_none_ends_it() -> None:
    command = Command(RERUN, names=("Linux '\"\u2019\u201d",))
    assert read(f"@ci {command.text}") == [command]


def test_a_name_with_every_closing_mark_is_written_as_code() -> None:
    command = Command(RERUN, names=("Linux \"'\u201d\u201c\u2019\u2018»",))
    assert read(f"@ci rerun `{command.names[0]}`") == [command]
    assert read(f"@ci {command.text}") == [command]


@pytest.mark.no_cover
@pytest.mark.parametrize("quotes", ['""', "''", "“”", "\u2018\u2019", "„“", "„”", "\u201a\u2018", "\u201a\u2019", "«»"])
@given(text=st.text(st.sampled_from("ab 1?/(),\"'“”\u2018\u2019„\u201a«»"), max_size=12))
def test_a_name_in_quotes_of_any_kind_is_read_and_written_back(quotes: str, text: str) -> None:
    closing = {"„": "“”", "\u201a": "\u2018\u2019"}.get(quotes[0], quotes[1])
    name = "Linux " + " ".join("".join(letter for letter in text if letter not in closing).split())
    command = Command(RERUN, names=(name.strip(),))
    assert read(f"@ci rerun {quotes[0]}{name}{quotes[1]}") == [command]
    assert read(f"@ci {command.text}") == [command]


@pytest.mark.parametrize("opening", ['"', "'", "“", "\u2018", "„", "\u201a", "«"])
def test_a_quotation_mark_without_its_closing_mark_is_refused(opening: str) -> None:
    [command] = read(f"@ci rerun {opening}Linux build")
    assert isinstance(command, BadCommand)
    assert command.reason == texts.QUOTE_OPEN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rerun",
        "hey @ci rerun",
        "me@ci rerun",
        "@cirrus rerun",
        "@ci-bot rerun",
        "@ci_bot rerun",
        "@ci/team rerun",
        "@ci's rerun is broken",
        "@ci.example.org rerun",
        "/ci rerun",
        "@\N{ZERO WIDTH SPACE}ci rerun",
        "@<!-- -->ci rerun",
        "- [ ] @ci rerun",
        "`x` @ci rerun",
        "~~never mind~~ @ci rerun",
        "![](https://example.org/x.png) @ci rerun",
        "> @ci rerun\nlazy",
        "\\@ci rerun",
        "@ci thanks!",
        "@ci 👍",
    ],
)
def test_a_line_without_a_mention_of_the_bot_is_ignored(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("line", "reason", "nearest"),
    [
        ("@ci", texts.NOTHING_ASKED, None),
        ("@ci:", texts.NOTHING_ASKED, None),
        ("@ci rerunn", texts.UNKNOWN_COMMAND, "rerun"),
        ("@ci rerun?", texts.UNKNOWN_COMMAND, "rerun"),
        ("@ci rerrun cpu/pr-head", texts.UNKNOWN_COMMAND, "rerun"),
        ("@ci rerun-failed", texts.UNKNOWN_COMMAND, "rerun failed"),
        ("@ci run slowtests", texts.UNKNOWN_COMMAND, "run slow tests"),
        ("@ci run-slow-tests", texts.UNKNOWN_COMMAND, "run slow tests"),
        ("@ci run all tests", texts.UNKNOWN_COMMAND, "run slow tests"),
        ("@ci skip tests", texts.UNKNOWN_COMMAND, "skip slow tests"),
        ("@ci hlep", texts.UNKNOWN_COMMAND, "help"),
        ("@ci `rerun`", texts.UNKNOWN_COMMAND, "rerun"),
        ("@ci merge", texts.UNKNOWN_COMMAND, None),
        ("@ci is broken again, can somebody look?", texts.UNKNOWN_COMMAND, None),
        ("@ci help me", texts.TAKES_NO_ARGUMENTS, "help"),
        ("@ci run slow tests on hexagon", texts.TAKES_NO_ARGUMENTS, "run slow tests"),
        ("@ci show everything", texts.UNKNOWN_ARGUMENT, "show"),
        ("@ci rerun failed jobs", texts.CHOICE_STANDS_ALONE, "rerun failed"),
        ("@ci rerun cpu all", texts.CHOICE_STANDS_ALONE, "rerun all"),
        ("@ci rerun faild", texts.NAME_OR_TYPO, "rerun failed"),
        ("@ci rerun Linux / build", texts.BAD_NAME, None),
        ('@ci rerun ""', texts.BAD_NAME, None),
        ("@ci rerun `a\x07`", texts.BAD_NAME, None),
        ("@ci rerun " + "x" * (LONGEST_NAME + 1), texts.BAD_NAME, None),
        ("@ci rerun " + " ".join(f"n{i}" for i in range(MOST_NAMES + 1)), texts.TOO_MANY_NAMES, None),
        ('@ci rerun "Linux', texts.QUOTE_OPEN, None),
        ("@ci rerun [cpu](https://example.org)", texts.NOT_A_NAME, None),
        ("@ci rerun ~~all~~", texts.NOT_A_NAME, None),
        ("@ci rerun a`b`", texts.NOT_A_NAME, None),
        ("@ci rerun @ci help", texts.ONE_COMMAND_A_LINE, None),
        ("@ci @tvm-bot rerun", texts.ONE_COMMAND_A_LINE, None),
    ],
)
def test_an_invalid_command_is_never_taken_for_another(line: str, reason: str, nearest: str | None) -> None:
    assert bad(line) == (reason, nearest)


@pytest.mark.parametrize("line", ["merge", "merge this", "merge this pr", "cancel", "stop the merge", "rebase"])
def test_commands_of_predecessors_that_we_lack_are_answered_without_a_guess(line: str) -> None:
    assert bad(f"@ci {line}") == (texts.UNKNOWN_COMMAND, None)


def test_a_comment_may_contain_several_commands_among_other_text() -> None:
    text = "Thanks!\n\n@ci run slow tests\n@tvm-bot rerun cpu\nnot @ci help\n\n```\n@ci help\n```\n- @ci nonsense"
    assert [(command.mention, command.text, command.line) for command in read(text)] == [
        ("@ci", "run slow tests", 3),
        ("@tvm-bot", "rerun cpu", 4),
        ("@ci", "nonsense", 10),
    ]


def test_a_repeated_command_runs_once_in_its_last_place() -> None:
    assert commands_of("@ci rerun\n@tvm-bot re-run ci") == ["rerun"]
    assert commands_of("@ci run slow tests\n@ci skip slow tests\n@ci slow") == ["skip slow tests", "run slow tests"]


def test_of_too_many_commands_the_first_run_and_the_rest_are_reported_as_left_out() -> None:
    commands = read("\n".join(f"@ci rerun n{i}" for i in range(3_000)))
    assert [command.text for command in commands] == [f"rerun n{i}" for i in range(MOST_COMMANDS)] + ["rerun n20"]
    assert commands[-1] == BadCommand("rerun n20", texts.TOO_MANY_COMMANDS)


@pytest.mark.parametrize(
    ("old", "new", "added"),
    [
        ("", "@ci rerun", ["rerun"]),
        ("@ci rerun", "@ci rerun", []),
        ("@ci rerun", "Typo fixed.\n\n@CI  re-run ci, please", []),
        ("@ci rerun", "@ci rerun all", ["rerun all"]),
        ("@ci rerunn", "@ci rerun", ["rerun"]),
        ("@ci rerunn", "@ci rerunn\nwords", []),
        ("`@ci rerun`", "@ci rerun", []),
        ("```\n@ci rerun", "@ci rerun", []),
        ("<!--\n@ci rerun", "@ci rerun", []),
        ("<!-- @ci rerun -->", "@ci rerun", []),
        ("<details>@ci rerun</details>", "@ci rerun", []),
        ("> 1. @ci rerun", "@ci rerun", []),
        ("so @ci rerun", "@ci rerun", []),
        ("| @ci rerun | x |\n|-|-|", "@ci rerun", []),
        ("~~@ci rerun~~", "@ci rerun", []),
        ("```\n@*c*i r&#101;run", "@*c*i r&#101;run", []),
        ("```\n@ci rerun\n```\n@ci rerun", "@ci rerun\n\n@ci rerun", []),
        ("```\n@ci rerun\n```", "@ci rerun\n\n@ci rerun", ["rerun"]),
        ("@ci help\n" * 20 + "@ci rerun", "@ci rerun", []),
        ("@ci rerunn\n" * 21, "@ci rerunn\n" * 21 + "words", []),
        ("> @ci rerun", "> @ci rerun\n\n@ci rerun", ["rerun"]),
        ("@ci rerun\n@ci help", "@ci help", []),
        ("@ci help\n@ci rerun", "@ci rerun\n@ci help", []),
        ("@ci rerun", "@ci rerun\n@ci rerun", ["rerun"]),
        ("@ci run slow tests", "@ci skip slow tests\n@ci run slow tests", ["skip slow tests"]),
    ],
)
def test_an_edit_runs_only_new_commands(old: str, new: str, added: list[str]) -> None:
    commands = new_commands(old, new, registry=REGISTRY, mentions=MENTIONS)
    assert [command.text for command in commands] == added


AROUND = ("```", "<!--", "-->", "<details>", "</details>", "> so", "", "| a |", "|-|", "    x", "words", "`", "---")
ASKED = ("@ci rerun", "> @ci rerun all", "  @ci help", "@tvm-bot skip slow", "`@ci rerun`", "@ci <!-- x --> rerun")


@pytest.mark.no_cover
@given(
    lines=st.lists(st.sampled_from([*AROUND, *ASKED, *(["@ci help"] * 3)]), max_size=40),
    stays=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_an_edit_that_only_removes_lines_runs_nothing(lines: list[str], stays: list[bool]) -> None:
    """Whatever hid a command before, nobody has written it now."""
    remaining = [line for line, stay in zip(lines, stays, strict=False) if stay]
    assert new_commands("\n".join(lines), "\n".join(remaining), registry=REGISTRY, mentions=MENTIONS) == []


PAIRS = (
    *[
        ("```\n", "\n```"),
        ("```\n", ""),
        ("<!--", "-->"),
        ("<!--\n", "\n-->"),
        ("<!--\n", ""),
        ("> ", ""),
        ("    ", ""),
    ],
    *[("<details>", "</details>"), ("<details>\n\n", "\n\n</details>"), ("| ", " | x |\n|-|-|"), ("so ", ""), ("", "")],
    *[("~~", "~~"), ("**", "**"), ("`", "`"), ("``` ", "```"), ("- > 1. ", ""), ("<pre>\n", "\n</pre>"), ("[", "](x)")],
    ("    ", ""),
)


@pytest.mark.parametrize("written", [written.strip("> `") for written in ASKED])
@pytest.mark.parametrize(("prefix", "suffix"), PAIRS)
def test_an_edit_that_removes_marks_around_a_command_runs_nothing(prefix: str, written: str, suffix: str) -> None:
    assert new_commands(f"{prefix}{written}{suffix}", written, registry=REGISTRY, mentions=MENTIONS) == []


def test_a_long_invalid_line_is_truncated_in_the_answer() -> None:
    [command] = read("@ci " + "nonsense " * 500 + "`" + "x" * 5_000 + "`")
    assert len(command.text) == MOST_SHOWN


def test_removed_elements_are_shown_as_what_they_were() -> None:
    [command] = read("@ci nonsense `code` [text](https://example.org) end")
    assert command.text == "nonsense `code` […] end"


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "unit", ["@ci\n", "@ci x", "@ci rerun “", '"a ', "'", "` ", "@ci rerunn\n", "\N{SOFT HYPHEN}", " "]
)
def test_the_longest_comment_is_read(unit: str) -> None:
    text = "@ci rerun " + unit * ((TEXT_LIMIT - 20) // len(unit)) + "x"
    assert len(read(text)) <= MOST_COMMANDS + 1
    assert new_commands(text, f"{text[:-1]}y", registry=REGISTRY, mentions=MENTIONS) is not None


@pytest.mark.parametrize(
    "head",
    [
        "On Tue, 20 Nov 2018 at 11:11, somebody <notifications@github.com> wrote:",
        "On Tue, 20 Nov 2018, 11:11 somebody <notifications@github.com>\nwrote:",
        "Am Di., 20. Nov. 2018 schrieb somebody ***@***.***>:",
        "---- On Tue, 20 Nov 2018 11:11:11 -0800 somebody wrote ----",
        "-----Original Message-----",
        "From: somebody [mailto:notifications@github.com]\r\nSent: Tuesday",
        "To: octocat/compiler <compiler@noreply.github.com>",
    ],
)
def test_text_in_a_quoted_mail_is_somebody_elses(head: str) -> None:
    below = BadCommand("rerun all", texts.IN_EARLIER_MAIL)
    assert read(f"Looks good.\n\n{head}\n\nHello,\n@ci rerun all\n") == [below]
    assert read(f"@ci rerun\n\n{head}\n\n@ci rerun all\n") == [Command(RERUN), below]
    assert read(f"@ci rerun\n\n{head}\n> @ci rerun all\n") == [Command(RERUN)]


@pytest.mark.parametrize(
    "line",
    [
        "On Tuesday somebody wrote:",
        "Co-authored-by: Somebody <1+somebody@users.noreply.github.com>",
        "On 20 Nov 2018 I wrote a test.",
        "--message--",
    ],
)
def test_text_that_only_looks_like_a_mail_header_hides_no_command(line: str) -> None:
    assert read(f"{line}\n\n@ci rerun all") == [Command(RERUN, "all")]


def test_removing_a_mail_header_turns_nothing_below_it_into_a_command() -> None:
    old = "Thanks\n\n-----Original Message-----\n\n@ci rerun all"
    assert new_commands(old, "Thanks\n\n@ci rerun all", registry=REGISTRY, mentions=MENTIONS) == []
