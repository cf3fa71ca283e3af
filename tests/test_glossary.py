"""One word for one thing: names and texts use the words of docs/glossary.md. `scripts/glossary.py` has the old ones."""

from pathlib import Path

import pytest

from scripts.glossary import ROOT, files, in_file, in_name, in_python, in_text

FOLDERS = (
    "benchmarks",
    "bot",
    "deploy",
    "docs",
    "handlers",
    "lab/nightjar_formats",
    "lab/nightjar_lab",
    "sandbox",
    "scripts",
    "tests",
)
CHECKED = ("CHANGELOG.md", "README.md", "SECURITY.md", "app.yaml", "compose.yaml", *FOLDERS)


@pytest.mark.parametrize("root", CHECKED)
def test_names_and_texts_use_the_words_of_the_glossary(root: str) -> None:
    checked = list(files([ROOT / root]))
    assert checked, f"there are no files in {root}"
    assert "\n".join(str(hit) for file in checked for hit in in_file(file)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The wish ends.",
        "People are told.",
        "This tells people of it.",
        "whoever is\nkept",
        "the same look",
        "two looks",
        "the second night",
        "nights",
        "a run that\nwas taken",
        "take the lab's runs",
        "is due",
        "well\n    # again",
        "`told_at` is a time",
        "KeepIssue is an effect",
        "events/is_a_hint.md",
        "It is not there any more.",
        "PASSING",
        "a passing error",
        "It is read anew.",
        "whom it asks",
        "Runs are looked at.",
        "a name that was looked for",
        "It waits in vain.",
        "This leads to\n# nothing.",
        "a delivery that nobody wants",
        "Labs hear of it.",
        "what came of it",
        "decided at the door",
        "It is not there\n# any more.",
        "the newest first",
        "in small letters",
        "it passed last at",
        "The test fails since Monday.",
        "a run that says nothing about the code",
        "the target takes no requests",
        "tests on devices",
        "what became of it",
        "GitHub could not be asked",
        "known are {names}",
        "It knows no names.",
        "what it says of a test",
        "GitHub is away.",
        "Tell whether it ended.",
        "created, or made if need be",
        "Work off the queue.",
        "a red colour",
        "It recognises a label.",
        "a labelled pull request",
        "an unexpected behaviour",
    ],
)
def test_an_old_word_is_found_in_text(text: str) -> None:
    assert [word for _, word, _ in in_text(text)]


@pytest.mark.parametrize(
    "text",
    [
        "That is due to a crash, due\n# to two of them.",
        "Keep the file. It keeps its order.",
        "keep-alive, KeepAlive and keepalive_timeout",
        "the following keys",
        "Look up the name; it looks like one. The bot looks for it.",
        "a long-standing bug",
        "files that look like ours",
        "by handler",
        "410 Gone",
        "<aside>note</aside>",
        "{\n}\naside p { margin: 0 }",
        '{"followers": 0}',
        "Please take\na look.",
        "written by hand",
        "a type hint",
        "one commit a night.",
        "last night",
        "missed deliveries",
        "the command registry",
        "passing tests",
        "https://example.org/told/night",
        "It takes two runs of a test.",
        "the conclusion of a check run, `conclude` a plan",
        "It is two commits away from the base. They say so, of course.",
        "Nothing comes of age; nobody wants to wait.",
        "It knows no longer than that.",
        "cancelled, four otherwise precise promises, and one exercise",
        '<section aria-labelledby="title">',
    ],
)
def test_another_meaning_of_a_word_is_no_old_word(text: str) -> None:
    assert list(in_text(text)) == []


@pytest.mark.parametrize(
    "name",
    ["wish_key", "KeepIssue", "kept", "next_look", "TIMER_DUE", "NightTown", "ConcludeNightly", "ByHand", "_passing"],
)
def test_an_old_word_is_found_in_a_name(name: str) -> None:
    assert in_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "keepalive",
        "keep_blank_values",
        "lookup",
        "look_up",
        "due_on",
        "get_type_hints",
        "handler",
        "conclude",
        "Registry",
    ],
)
def test_a_name_with_another_meaning_is_no_old_word(name: str) -> None:
    assert in_name(name) == ()


def test_a_module_is_checked_in_its_names_comments_and_strings_and_each_hit_names_its_line(tmp_path: Path) -> None:
    module = '"""One\n\ntold."""\n\n# It is due\n# to a fault. It is\n# due.\nwish = f"a {1}\\ngone"\n'
    assert [(line, word) for line, word, _ in in_python(module)] == [(3, "told"), (7, "due"), (8, "wish"), (8, "gone")]
    path = tmp_path / "well_again.py"
    path.write_text(module)
    assert f"{path}:7: 'due' -> scheduled, pending" in [str(hit) for hit in in_file(path)]
    assert (0, "well_again") in [(hit.line, hit.word) for hit in in_file(path)]
