"""The file of CI's images: read as CI reads it, and edited only in its tags."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.core.errors import UserError
from handlers.docker_update.images import (
    MOST_IMAGES,
    ImageReference,
    TagChange,
    Update,
    find_references,
    has_host,
    read_images,
    staging_name,
    update_tags,
)

OLD, NEW, NEWER = "20260101-060115-61c9742ea", "20260201-060115-7a2b3c4d", "20260202-060115-8b3c4d5e"
EACH = f"""\
# Read when CI begins.

[jenkins]
ci_arm: tlcpack/ci-arm:{OLD}
ci_lint = tlcpack/ci-lint:{OLD}
; released images alone
ci_cortexm: tlcpackstaging/ci_cortexm:{OLD}
"""
SHARED = f"""\
[jenkins]
ci_tag: {OLD}
ci_arm: tlcpack/ci-arm:%(ci_tag)s
ci_cpu: tlcpack/ci_cpu:%(ci_tag)s
ci_ecr: 012345678901.dkr.ecr.us-west-2.amazonaws.com/ci_ecr:%(ci_tag)s
"""
NAMESPACES = ("tlcpack", "tlcpackstaging")
Tags = Mapping[str, Mapping[str, float]]


def test_a_line_that_does_not_belong_in_the_file_is_refused() -> None:
    longest = f"[jenkins]\na{' ' * 997}=b\n"
    assert read_images(longest) == {"a": "b"}
    with pytest.raises(UserError, match="a line of more than 1000 characters"):
        read_images(longest.replace("=", " ="))


def test_references_that_multiply_are_not_expanded() -> None:
    """Ten levels with ten references each would make ten billion values."""
    levels = [f"a{level} = {f'%(a{level + 1})s' * 10}" for level in range(9)]
    with pytest.raises(UserError, match="cannot be read"):
        read_images("\n".join(["[jenkins]", *levels, "a9 = x"]))


def test_a_value_may_refer_to_twenty_others() -> None:
    text = f"[jenkins]\nx = 1%%\na = {'%(x)s' * 20}\n"
    assert read_images(text)["a"] == "1%" * 20
    with pytest.raises(UserError, match="cannot be read"):
        read_images(text.replace("a = ", "a = %(x)s"))


@pytest.mark.parametrize("value", ["%(none)s", "%x", "%", "%(a)s"])
def test_a_reference_to_a_missing_key_is_an_error_of_the_file(value: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_images(f"[jenkins]\na = {value}\n")


def update(text: str, tags: Tags) -> Update:
    return update_tags(text, find_references(text, NAMESPACES), tags, "tlcpack")


def tagged(*keys: str, **tags: float) -> Tags:
    """Return the same tags with their times for each of the keys OLD, NEW and NEWER."""
    names = {"old": OLD, "new": NEW, "newer": NEWER}
    return {key: {names[name]: pushed_at for name, pushed_at in tags.items()} for key in keys}


def test_values_are_those_that_configparser_returns() -> None:
    assert read_images(SHARED) == {
        "ci_tag": OLD,
        "ci_arm": f"tlcpack/ci-arm:{OLD}",
        "ci_cpu": f"tlcpack/ci_cpu:{OLD}",
        "ci_ecr": f"012345678901.dkr.ecr.us-west-2.amazonaws.com/ci_ecr:{OLD}",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no section [jenkins]"),
        ("[other]\na: b\n", "has no section [jenkins]"),
        ("a: b\n", "cannot be read: File contains no section headers"),
        ("[jenkins]\na: %(nothing)s\n", "cannot be read: Bad value substitution"),
        ("[jenkins]\na: b\na: c\n", "cannot be read: While reading from '<string>'"),
        ("[jenkins]\nci_cpu\n", "cannot be read: Source contains parsing errors"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(UserError) as raised:
        read_images(text)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_images_of_other_namespaces_and_registries_are_not_ours() -> None:
    text = EACH + "ci_x: octocat/x:1\nci_y: ubuntu:22.04\nci_z: localhost:5000/tlcpack/z:1\n"
    assert find_references(text, NAMESPACES) == [
        ImageReference("ci_arm", "tlcpack", "ci-arm", OLD),
        ImageReference("ci_lint", "tlcpack", "ci-lint", OLD),
        ImageReference("ci_cortexm", "tlcpackstaging", "ci_cortexm", OLD),
    ]
    assert [place.variable for place in find_references(SHARED, NAMESPACES)] == ["ci_tag", "ci_tag"]


def test_a_file_with_more_images_than_the_limit_is_refused() -> None:
    text = "[jenkins]\n" + "".join(f"ci_{n}: tlcpack/ci-{n}:1\n" for n in range(MOST_IMAGES + 1))
    with pytest.raises(UserError, match="has 101 images"):
        find_references(text, NAMESPACES)


def test_the_newest_tag_replaces_the_old_one_and_nothing_else_changes() -> None:
    """TVM #18717: every line ending was doubled. TVM #13572, #19445: the edited file was not the one that CI read."""
    result = update(EACH, tagged("ci_arm", "ci_lint", "ci_cortexm", old=1, newer=2, new=3))
    assert result.text == EACH.replace(f"tlcpackstaging/ci_cortexm:{OLD}", f"tlcpack/ci-cortexm:{OLD}").replace(
        OLD, NEW
    )
    assert result.changes == (
        TagChange("ci_arm", f"tlcpack/ci-arm:{OLD}", f"tlcpack/ci-arm:{NEW}"),
        TagChange("ci_lint", f"tlcpack/ci-lint:{OLD}", f"tlcpack/ci-lint:{NEW}"),
        TagChange("ci_cortexm", f"tlcpackstaging/ci_cortexm:{OLD}", f"tlcpack/ci-cortexm:{NEW}"),
    )
    assert result.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        EACH.replace("\n", "\r\n"),
        EACH.rstrip("\n"),
        f"{EACH}\n\n\n",
        EACH.replace(": ", " :\t "),
        EACH.replace("ci_lint = ", "CI_Lint="),
        f"[other]\nci_arm: tlcpack/ci-arm:{OLD}x\n{EACH}[last]\nci_lint: y\n",
        EACH.replace(OLD, f"{OLD}  "),
        EACH.replace("# Read", "# ci_arm: tlcpack/ci-arm:x\n# Lies: é, \u2028"),
    ],
    ids=["CRLF", "no final line break", "empty lines", "blanks", "letters", "other sections", "trailing", "comments"],
)
def test_only_tags_change_whatever_the_format_of_the_file(text: str) -> None:
    result = update(text, tagged("ci_arm", "ci_lint", old=1, new=2))
    assert len(result.changes) == 2
    assert result.text == text.replace(f"ci-arm:{OLD}", f"ci-arm:{NEW}", 9).replace(
        f"ci-lint:{OLD}", f"ci-lint:{NEW}"
    ).replace(f"ci-arm:{NEW}x", f"ci-arm:{OLD}x")


def test_a_file_with_the_newest_tags_does_not_change() -> None:
    result = update(EACH, tagged("ci_arm", "ci_lint", "ci_cortexm", old=3, new=2))
    assert (result.text, result.changes, result.notes) == (EACH, (), ())


def test_an_image_without_tags_is_reported_and_does_not_stop_other_updates() -> None:
    """TVM's script ended in an IndexError."""
    result = update(EACH, {**tagged("ci_arm", old=1, new=2), "ci_lint": {}})
    assert [change.key for change in result.changes] == ["ci_arm"]
    assert result.notes == (
        "`tlcpack/ci-lint` has no tag such as 20221013-060115-61c9742ea on Docker Hub",
        "`tlcpack/ci-cortexm` has no tag such as 20221013-060115-61c9742ea on Docker Hub",
    )


def test_images_that_share_a_tag_get_the_newest_that_all_of_them_have() -> None:
    text = SHARED.replace("ci_ecr", "#")
    tags = {"ci_arm": {OLD: 1.0, NEW: 2.0, NEWER: 3.0}, "ci_cpu": {OLD: 1.0, NEW: 2.5}}
    result = update(text, tags)
    assert result.text == text.replace(f"ci_tag: {OLD}", f"ci_tag: {NEW}")
    assert [(change.key, change.new_image) for change in result.changes] == [
        ("ci_arm", f"tlcpack/ci-arm:{NEW}"),
        ("ci_cpu", f"tlcpack/ci_cpu:{NEW}"),
    ]


def test_images_that_share_a_tag_stay_if_no_newer_tag_exists_for_all_of_them() -> None:
    text = SHARED.replace("ci_ecr", "#")
    result = update(text, {"ci_arm": {NEWER: 3.0}, "ci_cpu": {NEW: 2.5}})
    assert (result.text, result.changes) == (text, ())
    assert result.notes == (
        "`ci_arm`, `ci_cpu` share the tag `ci_tag`, and Docker Hub has no tag that all of them have",
    )
    result = update(text, {"ci_arm": {NEWER: 3.0}, "ci_cpu": {}})
    assert result.notes == ("`tlcpack/ci_cpu` has no tag such as 20221013-060115-61c9742ea on Docker Hub",)


def test_a_tag_in_the_default_section_is_changed_there() -> None:
    text = f"[DEFAULT]\nci_tag: {OLD}\n[jenkins]\nci_arm: tlcpack/ci-arm:%(ci_tag)s\n"
    assert update(text, tagged("ci_arm", old=1, new=2)).text == text.replace(OLD, NEW)


@pytest.mark.parametrize(
    "text",
    [
        SHARED,
        f"[jenkins]\nns: tlcpack\nci_arm: %(ns)s/ci-arm:{OLD}\nci_lint: %(ci_arm)s\n",
    ],
    ids=["a tag shared with others", "a value that others refer to"],
)
def test_an_edit_that_would_change_more_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="cannot be replaced"):
        update(text, tagged("ci_arm", "ci_cpu", old=1, new=2))


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("012345678901.dkr.ecr.us-west-2.amazonaws.com/ci:1", True),
        ("localhost/ci:1", True),
        ("registry:5000/ci:1", True),
        ("tlcpack/ci-cpu:1", False),
        ("ubuntu:22.04", False),
    ],
)
def test_a_registry_is_distinguished_from_a_namespace(image: str, host: bool) -> None:
    assert has_host(image) is host


def test_names_in_the_staging_namespace_have_underscores_for_hyphens() -> None:
    assert staging_name("ci-minimal-cross", "tlcpackstaging") == "tlcpackstaging/ci_minimal_cross"
