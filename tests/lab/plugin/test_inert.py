"""A project that does not use the plugin runs as without it: the same tests, IDs, order and exit statuses."""

from __future__ import annotations

import pytest

from tests.lab.plugin.project import Project

OWN = """
    import pytest

    @pytest.fixture(params=["debug", "release"])
    def target(request):
        return request.param

    @pytest.fixture
    def dev(target):
        return f"own {target}"
"""
TESTS = """
    import pytest

    def test_own(target, dev):
        assert dev == f"own {target}"

    def test_device(dev):
        assert dev != "own release"

    @pytest.mark.parametrize("target, other", (("cuda", 1), ("b.txt", 2)))
    def test_joint(target, other, dev):
        assert dev == f"own {target}"

    @pytest.mark.parametrize("size", [])
    def test_empty(size): pass
"""


@pytest.mark.exhaustive("0-plain")
@pytest.mark.parametrize("environ", [{}, {"NIGHTJAR_TEST_TARGETS": "cuda;llvm"}], ids=["plain", "with the variable"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_project_with_its_own_fixtures_runs_as_without_the_plugin(
    project: Project, workers: int, environ: dict[str, str]
) -> None:
    project.write(conftest=OWN, test_one=TESTS, test_two="def test_last(): pass")
    without = project.run(workers=workers, plugin=False, environ=environ)
    with_it = project.run(workers=workers, environ=environ)
    assert with_it.short() == without.short()
    assert with_it.status == without.status == 1
    if not workers:
        assert list(with_it.outcomes) == list(without.outcomes)


def test_exit_statuses_stay_the_same(project: Project) -> None:
    project.write(test_one="def test_unknown(target): pass")
    assert project.run().status == project.run(plugin=False).status == 1
    project.write(test_one="def test_unknown(dev): pass")
    assert project.run().status == project.run(plugin=False).status == 1
    project.write(test_one="")
    assert project.run().status == project.run("-m", "slow").status == 5


def test_with_only_the_variable_tests_run_on_its_targets(project: Project) -> None:
    """Without a declaration there is nothing to check the variable against."""
    project.write(test_one="def test_it(target, dev): assert dev is None")
    assert project.run(environ={"NIGHTJAR_TEST_TARGETS": "a;b"}).short() == {
        "test_it[a]": "passed",
        "test_it[b]": "passed",
    }


def test_a_project_that_declares_targets_may_have_its_own_fixture(project: Project) -> None:
    declared = """
    from nightjar_lab.pytest import Target

    nightjar_targets = [Target("llvm"), Target("debug", enabled=False)]
    """
    project.write(conftest=OWN + declared, test_one="def test_own(target): pass\ndef test_two(): pass")
    assert project.run("--strict-markers").short() == {
        "test_own[debug]": "skipped",
        "test_own[release]": "passed",
        "test_two": "passed",
    }
