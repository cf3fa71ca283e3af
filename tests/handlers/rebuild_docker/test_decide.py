"""Whether Docker images are rebuilt, as tables: the cases of TVM's script, and where we differ on purpose."""

from __future__ import annotations

import pytest
from nightjar_lab.ci.decision import CiVerdict
from nightjar_lab.ci.texts import FALLBACK, IMAGES_ARE_BUILT

from handlers.changed_files.changes import ChangedFiles, UnknownChanges
from handlers.rebuild_docker import texts
from handlers.rebuild_docker.config import RebuildDocker
from handlers.rebuild_docker.decide import rebuild_docker
from tests.handlers.changed_files.changed import files


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["docker/Dockerfile.ci_gpu"], True),
        (["docker/install/ubuntu_install_python.sh"], True),
        (["src/x.cc", "docker/Dockerfile.ci_cpu"], True),
        (["src/x.cc"], False),
        ([], False),
        (["docker/bash.sh", "docker/with_the_same_user"], False),
        # These rebuilt images before: the first two by mistake, the others because `docker/` matched anywhere in the
        # name.
        (["docker/README.md"], False),
        (["docker/clear-stale-images.sh", "docker/lint.sh"], False),
        (["tests/docker/x.py"], False),
        (["src/docker/x.cc", "mydocker/x"], False),
    ],
)
def test_images_are_built_if_their_sources_changed(names: list[str], expected: bool) -> None:
    scripts = tuple(f"docker/{name}" for name in ("bash.sh", "with_the_same_user", "lint.sh", "clear-stale-images.sh"))
    config = RebuildDocker(ignore=("*.md", *scripts))
    assert rebuild_docker(config, files(*names)).value is expected


def test_text_files_in_the_folder_of_images_build_none_by_default() -> None:
    assert not rebuild_docker(RebuildDocker(), files("docker/README.md", "tests/docker/x.py")).value
    assert rebuild_docker(RebuildDocker(), files("docker/README.md", "docker/bash.sh")).value


def test_a_double_star_means_the_same_as_a_single_one() -> None:
    assert rebuild_docker(RebuildDocker(paths=("docker/**",)), files("docker/install/x.sh")).value


def test_a_renamed_file_counts_under_both_names() -> None:
    assert rebuild_docker(RebuildDocker(), ChangedFiles(("tools/x.sh", "docker/x.sh"), 1)).value


@pytest.mark.parametrize(
    ("verdict", "value", "reason"),
    [
        (rebuild_docker(None, files("a")), True, texts.IMAGES_NOT_ON),
        (
            rebuild_docker(RebuildDocker(), UnknownChanges("GitHub is silent")),
            True,
            FALLBACK.format(why="GitHub is silent", what=IMAGES_ARE_BUILT),
        ),
        (rebuild_docker(RebuildDocker(paths=("docker/*",)), files("src/a.py")), False, texts.IN_NO_IMAGE),
    ],
)
def test_each_verdict_says_why(verdict: CiVerdict, value: bool, reason: str) -> None:
    assert verdict == CiVerdict(value, reason)
