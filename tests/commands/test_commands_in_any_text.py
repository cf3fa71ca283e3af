"""Commands are found in any prose, but never in what is not the author's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.grammar import MOST_COMMANDS, Command, new_commands
from bot.github.text.markdown import code, escape
from tests.commands.test_grammar import HELP, MENTIONS, REGISTRY, RERUN, RUN_SLOW, SHOW, SKIP_SLOW, read

PROSE = st.text(st.sampled_from("abc XYZ0129.,!?éß中"), max_size=30).map(lambda text: f"So {text}")
NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="|`"), min_size=1, max_size=20)
COMMANDS = st.sampled_from(
    [Command(RUN_SLOW), Command(SKIP_SLOW), Command(RERUN), Command(RERUN, "all"), Command(HELP), Command(SHOW, "labs")]
) | st.lists(NAMES.filter(lambda name: any(map(str.isalnum, name))), min_size=1, max_size=3, unique=True).map(
    lambda names: Command(RERUN, names=tuple(names))
)


def written(command: Command) -> str:
    return " ".join(filter(None, ["@ci", command.spec.name, command.choice, *map(code, command.names)]))


@pytest.mark.no_cover
@given(COMMANDS, PROSE, PROSE, st.sampled_from(["\n", "\r\n", "\n\n"]), st.sampled_from(["", "- ", "**", "### "]))
def test_every_command_is_found_in_any_prose(
    command: Command, beginning: str, ending: str, end: str, bullet: str
) -> None:
    line = f"{bullet}{written(command)}{bullet if bullet == '**' else ''}"
    assert read(f"{beginning}{end}{line}{end}{ending}") == [command]


@pytest.mark.no_cover
@given(COMMANDS.filter(lambda command: not any('"' in name for name in command.names)))
def test_the_canonical_text_of_a_command_is_parsed_as_the_same_command(command: Command) -> None:
    # Names are only escaped for Markdown; the grammar gets the text as it is.
    names = [f'"{escape(name).replace("&#8203;", "")}"' for name in command.names]
    assert read(" ".join(["@ci", command.spec.name, command.choice, *names])) == [command]


HIDING = [
    "```\n{}\n```",
    "~~~\n{}\n~~~",
    "    {}",
    "> {}",
    "> words\n{}",
    "`{}`",
    "<!-- {} -->",
    "<!--\n\n{}\n\n-->",
    "~~{}~~",
]
HIDING += [
    "[{}](https://example.org)",
    "<details>\n\n{}\n\n</details>",
    "<div>\n{}\n</div>",
    "| a |\n|---|\n| {} |",
    "\\{}",
    "> - {}",
]


@pytest.mark.no_cover
@given(COMMANDS.filter(lambda command: not command.names), PROSE, PROSE, st.sampled_from(HIDING))
def test_no_command_is_found_outside_the_authors_own_words(
    command: Command, beginning: str, ending: str, hiding: str
) -> None:
    assert read(f"{beginning}\n\n{hiding.format(written(command))}\n\n{ending}") == []


MARKUP = [
    "@ci",
    "@ci ",
    "rerun",
    " failed",
    "run slow tests",
    "\n",
    " ",
    '"',
    "“",
    "'",
    "`",
    "```\n",
    "> ",
    "- ",
    "[",
    "](/u)",
]
MARKUP += [
    "<!--",
    "-->",
    "<b>",
    "~~",
    "*",
    "\\",
    "&commat;",
    "\u200b",
    "\ufffc",
    "\x00",
    "@tvm-bot",
    ",",
    ":",
    "please",
]


@pytest.mark.no_cover
@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=5), max_size=30).map("".join), st.text(max_size=20))
def test_any_text_is_read_without_an_error(text: str, new_text: str) -> None:
    commands = read(text)
    assert len(set(commands)) == len(commands) <= MOST_COMMANDS + 1
    assert set(new_commands(text, text, registry=REGISTRY, mentions=MENTIONS)) == set()
    assert all(command.mention in MENTIONS and command.line >= 1 for command in commands)
    assert set(new_commands("", text + new_text, registry=REGISTRY, mentions=MENTIONS)) == set(read(text + new_text))
