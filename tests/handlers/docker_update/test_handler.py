"""What is proposed, given the updated file."""

from __future__ import annotations

from bot.effects.pulls import EnsurePull
from handlers.docker_update.config import DockerUpdate
from handlers.docker_update.handler import plan_docker_update
from handlers.docker_update.images import ImageReference, TagChange, Update

AT, SHA = "2026-11-20T00:00:00Z", "a" * 40
CONFIG = DockerUpdate()
CPU = ImageReference("ci_cpu", "tlcpack", "ci-cpu", "1-1-a")
CHANGE = TagChange("ci_cpu", "tlcpack/ci-cpu:1-1-a", "tlcpack/ci-cpu:2-2-b")


def proposed(*changes: TagChange, notes: tuple[str, ...] = (), text: str = "new") -> EnsurePull:
    (effect,) = plan_docker_update(Update(text, changes, notes), [CPU], CONFIG, SHA, AT).effects
    assert isinstance(effect, EnsurePull)
    return effect


def test_a_change_is_proposed_as_one_commit_on_the_base_with_a_table() -> None:
    effect = proposed(CHANGE)
    assert (effect.branch, effect.base, effect.base_sha) == ("nightly-docker-update", "main", SHA)
    assert (effect.path, effect.content, effect.at) == ("ci/jenkins/docker-images.ini", "new", AT)
    assert effect.title == "[ci][docker] Update images to their newest tags"
    assert effect.message == f"{effect.title}\n\nci_cpu=tlcpack/ci-cpu:2-2-b"
    assert "| `ci_cpu` | `tlcpack/ci-cpu:1-1-a` | `tlcpack/ci-cpu:2-2-b` |" in effect.body
    assert "Not looked after" not in effect.body


def test_the_branch_of_a_proposal_is_named_after_its_changes() -> None:
    """A proposal that a person closed stays closed, whatever else changes in the file."""
    other_image = TagChange("ci_cpu", "tlcpack/ci-cpu:0-0-0", CHANGE.new_image)
    newer = TagChange("ci_cpu", CHANGE.old_image, "tlcpack/ci-cpu:3-3-c")
    assert proposed(CHANGE).key == proposed(other_image, text="with more comments").key != proposed(newer).key


def test_missing_information_is_reported() -> None:
    effect = proposed(CHANGE, notes=("`tlcpack/ci-lint` has no tag", "and so on"))
    assert "\nNot updated: `tlcpack/ci-lint` has no tag; and so on.\n" in effect.body
    plan = plan_docker_update(Update("old", (), ("`tlcpack/ci-lint` has no tag",)), [CPU], CONFIG, SHA, AT)
    assert plan.why == "no newer tags for any of 1 images; `tlcpack/ci-lint` has no tag"


def test_without_newer_tags_no_proposal_is_needed() -> None:
    plan = plan_docker_update(Update("old"), [CPU], CONFIG, SHA, AT)
    assert plan.effects == (EnsurePull("nightly-docker-update", "main", AT),)


def test_a_file_without_our_images_is_reported_as_such() -> None:
    plan = plan_docker_update(Update("old"), [], CONFIG, SHA, AT)
    assert (plan.effects, plan.why) == (
        (),
        "ci/jenkins/docker-images.ini has no image of tlcpack or tlcpackstaging",
    )
