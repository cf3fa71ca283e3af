"""The owners of a file by CODEOWNERS are those that GitHub's page about it describes."""

from __future__ import annotations

import pytest

from bot.results.compare.codeowners import MOST_WILDCARDS, CodeOwners

# The example of GitHub's documentation, and lines that it says are skipped.
EXAMPLE = r"""
# A comment
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/* docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
!/apps/secret @nobody
/apps/[ab] @nobody
/invalid nonsense
/deep/**/test_*.py @hubot
src/*/generated/ @octo-org/robots
/lone/* @hubot
kernel_?.cu @octocat
bench*/ @octo-org/speed
/anch?red.md @octocat
**/vendor/lib @hubot
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("README.md", ("@global-owner1", "@global-owner2")),
        ("web/a.js", ("@js-owner",)),
        ("main.go", ("docs@example.com",)),
        ("a/b/notes.txt", ("@octo-org/octocats",)),
        ("build/logs/today.js", ("@octocat",)),
        ("build/notes", ("@global-owner1", "@global-owner2")),
        ("docs/getting-started.md", ("@doctocat",)),
        ("docs/build-app/troubleshooting.md", ("@doctocat",)),
        ("other/docs/x.md", ("@global-owner1", "@global-owner2")),
        ("scripts/run", ("@doctocat", "@octocat")),
        ("deeply/nested/logs/x", ("@octocat",)),
        ("inner/apps/x", ("@octocat",)),
        ("apps/github", ()),
        ("apps/github/x", ()),
        ("apps/secret", ("@octocat",)),
        ("apps/a", ("@octocat",)),
        ("invalid", ("@global-owner1", "@global-owner2")),
        ("deep/test_a.py", ("@hubot",)),
        ("deep/a/b/test_a.py", ("@hubot",)),
        ("deep/a/b/no.py", ("@global-owner1", "@global-owner2")),
        ("src/x/generated/y/z", ("@octo-org/robots",)),
        ("src/x/y/generated/z", ("@global-owner1", "@global-owner2")),
        ("lone/x", ("@hubot",)),
        ("kernel_1.cu", ("@octocat",)),
        ("src/deep/kernel_1.cu", ("@octocat",)),
        ("src/deep/kernel_10.cu", ("@global-owner1", "@global-owner2")),
        ("src/benchmarks/a/b", ("@octo-org/speed",)),
        ("src/a_benchmark/a", ("@global-owner1", "@global-owner2")),
        ("src/x/benchmark", ("@global-owner1", "@global-owner2")),
        ("anchored.md", ("@octocat",)),
        ("a/anchored.md", ("@global-owner1", "@global-owner2")),
        ("lib/src/x/generated/y", ("@global-owner1", "@global-owner2")),
        ("lone/x/y", ("@global-owner1", "@global-owner2")),
        ("vendor/lib/x", ("@hubot",)),
        ("src/a/vendor/lib", ("@hubot",)),
        ("src/vendor/x/lib", ("@global-owner1", "@global-owner2")),
    ],
)
def test_the_last_line_that_matches_counts(path: str, owners: tuple[str, ...]) -> None:
    assert CodeOwners(EXAMPLE).owners(path) == owners


@pytest.mark.parametrize(
    ("pattern", "of_file", "of_nested"),
    [
        ("*", True, True),
        ("**", True, True),
        ("/", True, True),
        ("/**", True, True),
        ("**/*", True, True),
        ("/*", True, False),
    ],
)
def test_a_pattern_without_a_name_owns_all_files_or_those_of_the_first_folder(
    pattern: str, of_file: bool, of_nested: bool
) -> None:
    owners = CodeOwners(f"{pattern} @hubot").owners
    assert (bool(owners("README.md")), bool(owners("src/a.py"))) == (of_file, of_nested)


def test_a_large_file_costs_no_more_per_test() -> None:
    lines = [f"/src/folder{number}/ @octocat" for number in range(20_000)]
    lines += [f"/src/*/folder{number}/a @hubot" for number in range(MOST_WILDCARDS * 3)]
    code_owners = CodeOwners("\n".join(lines))
    assert code_owners.owners("src/folder19999/test_a.py") == ("@octocat",)
    assert code_owners.owners(f"src/x/folder{MOST_WILDCARDS * 3 - 1}/a") == ("@hubot",)
    # Each line with a wildcard in the middle is tried alone, so only the last ones count.
    assert code_owners.owners("src/x/folder0/a") == ()
