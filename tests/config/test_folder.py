"""The folder `app.d` beside `app.yaml`: its files are joined, and nothing in them is overridden silently."""

from pathlib import Path

import pytest

from bot.app.load import load_config
from bot.config import check
from bot.config.load import MAX_MERGED_VALUES
from handlers.slow_tests.config import SLOW_TESTS
from tests.settings import enabled


def written(folder: Path, **files: str) -> Path:
    """Write app.yaml, and the others into app.d; return the path of app.yaml."""
    (folder / "app.d").mkdir()
    for name, text in files.items():
        path = folder / ("app.yaml" if name == "app" else f"app.d/{name}.yaml")
        path.write_text(text, encoding="utf-8")
    return folder / "app.yaml"


def errors(path: Path) -> list[str]:
    """Return the errors, with paths relative to the folder of app.yaml."""
    return [str(fault).replace(f"{path.parent}/", "") for fault in check(path, load_config)]


def test_the_files_are_joined_in_the_order_of_their_names(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        app="defaults: {help: false}\nrepositories: {octocat/z: }",
        b="repositories: {octocat/b: , 'octo-org/*': {slow_tests: {branches: [dev]}}}",
        a="mentions: ['@hubot']\nrepositories: {octocat/a: {help: true}, octo-org/one: {slow_tests: {status: ci/x}}}",
    )
    (tmp_path / "app.d" / "more.yml").write_text("# nothing yet\n")
    (tmp_path / "app.d" / "notes.txt").write_text("not YAML: [")
    (tmp_path / "app.d" / ".draft.yaml").write_text("not YAML: [")
    config = load_config(path)
    assert list(config.repositories) == ["octocat/z", "octocat/a", "octo-org/one", "octocat/b"]
    assert config.mentions == ("@hubot",)
    on = {name for name, settings in config.repositories.items() if "help" in settings.features}
    assert on == {"octocat/a"}
    one = enabled(config.repositories["octo-org/one"], SLOW_TESTS)
    assert (one.status, one.branches) == ("ci/x", ("dev",))


@pytest.mark.parametrize("main", ["", "repositories:\n", "# all in app.d\n", "mentions: ['@ci']\n"])
def test_app_yaml_may_leave_all_repositories_to_the_folder(tmp_path: Path, main: str) -> None:
    path = written(tmp_path, app=main, a="repositories: {octocat/a: }", b="repositories:")
    assert list(load_config(path).repositories) == ["octocat/a"]


def test_a_repository_that_is_named_twice_is_an_error_that_names_both_files_and_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        app="repositories:\n  octocat/a:\n",
        one="repositories:\n  octocat/b:\n  Octocat/A:\n  octo-org/*:\n",
        two="repositories:\n  octocat/a:\n  octocat/b: {help: false}\n  octo-org/*:\n",
    )
    same = "GitHub ignores upper and lower case; remove one of them"
    assert errors(path) == [
        f"app.d/one.yaml:3:3: repositories.Octocat/A: the same repository as in app.yaml:2: {same}",
        f"app.d/two.yaml:2:3: repositories.octocat/a: the same repository as in app.yaml:2: {same}",
        f"app.d/two.yaml:3:3: repositories.octocat/b: the same repository as in app.d/one.yaml:2: {same}",
        f"app.d/two.yaml:4:3: repositories.octo-org/*: the same repository as in app.d/one.yaml:4: {same}",
    ]


def test_another_key_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    path = written(tmp_path, app="repositories: {octocat/a: }\ndefaults: {help: false}", one="\ndefaults: {help: true}")
    assert errors(path) == ["app.d/one.yaml:2:1: defaults: is there twice, first in app.yaml:2; remove one of them"]


def test_every_error_has_the_file_in_which_it_is(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        app="defaults:\n  merge: {method: fast}\nrepositories: {octocat/a: }",
        one="repositories:\n  octocat/b: {slow_test: true}\nmention: x\n",
        two="repositories:\n  hubot:\n  octocat/c: {help: true, help: true}\n",
    )
    assert [line.partition(": ")[0] for line in errors(path)] == [
        "app.d/one.yaml:2:15",
        "app.d/one.yaml:3:1",
        "app.d/two.yaml:2:3",
        "app.d/two.yaml:3:27",
        "app.yaml:2:19",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- octocat/b", "1:1: must be a mapping of keys"),
        ("repositories: [octocat/b]", "1:15: repositories: must be a mapping of keys"),
        ("repositories: {octocat/b: ", "1:27: not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_joined_is_named(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, app="repositories: {octocat/a: }", one=text)
    assert [line.startswith(f"app.d/one.yaml:{expected}") for line in errors(path)] == [True]


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    names = "".join(f"  octocat/r%d-{number}:\n" for number in range(1_000))
    files = {f"f{number:02}": f"repositories:\n{names.replace('%d', str(number))}" for number in range(3)}
    assert len(load_config(written(tmp_path, app="", **files)).repositories) == 3_000
    branches = ", ".join(f"b{number}" for number in range(100))
    (tmp_path / "app.yaml").write_text(f"defaults: {{slow_tests: {{branches: [{branches}]}}, a: 1}}")
    assert [line.partition("; ")[0] for line in errors(tmp_path / "app.yaml")] == [
        "app.yaml:1:1: defaults and patterns, repeated below every repository, make more than "
        f"{MAX_MERGED_VALUES:,} values, the maximum"
    ]


def test_the_folder_is_named_after_the_file(tmp_path: Path) -> None:
    (tmp_path / "prod.yaml").write_text("repositories: {octocat/a: }")
    written(tmp_path, one="repositories: {octocat/b: }")
    assert list(load_config(tmp_path / "prod.yaml").repositories) == ["octocat/a"]
    (tmp_path / "app.d").rename(tmp_path / "prod.d")
    assert list(load_config(tmp_path / "prod.yaml").repositories) == ["octocat/a", "octocat/b"]
