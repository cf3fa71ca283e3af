"""Tests are parametrized over a project's targets: the behavior in TVM's own tests of its helpers, and more."""

from __future__ import annotations

import pytest

from tests.lab.plugin.project import Project

CONFTEST = """
    import pytest
    from pathlib import Path
    from nightjar_lab.pytest import Target

    def asked(name):
        with Path(__file__).with_name("asked.txt").open("a") as file:
            file.write(name + "\\n")

    def has_device():
        asked("has_device")
        return False

    def has_driver(name):
        asked(name)
        raise OSError("no driver")

    nightjar_targets = [
        Target("llvm", device=lambda name: f"device of {name}"),
        Target("llvm -mcpu=core2", device=lambda name: f"device of {name}", available=lambda: True),
        Target("gpu", parametrized=False, marks=[pytest.mark.gpu]),
        Target("cuda", available=has_device, parents=["gpu"], marks=[pytest.mark.nvidia]),
        Target("vulkan", available=has_driver),
        Target("opencl", available=has_device),
        Target("metal", enabled=False),
    ]
"""
TESTS = """
    import pytest
    from nightjar_lab.pytest import *

    def test_all(target):
        pass

    def test_device(dev, request):
        assert dev == f"device of {request.getfixturevalue('target')}"

    def test_by_a_fixture(uses):
        assert uses.startswith("device of llvm")

    @pytest.fixture
    def uses(dev):
        return dev

    @parametrize_targets
    def test_bare(target):
        pass

    @parametrize_targets("llvm")
    def test_explicit(target):
        assert target == "llvm"

    @exclude_targets("llvm", "metal")
    def test_excluded(target):
        raise AssertionError

    @exclude_targets("llvm", "cuda", "vulkan", "opencl", "metal")
    def test_all_excluded(target):
        raise AssertionError

    @known_failing_targets("llvm")
    def test_known_failing(target):
        assert "-mcpu" in target, "it runs"

    @pytest.mark.parametrize("target, impl", [("llvm", 1), ("cuda", 2), ("cuda", 3), ("a.txt", 4)])
    def test_joint(target, impl):
        assert impl in {1, 4}

    class TestClass:
        pytestmark = [parametrize_targets("llvm", "cuda"), exclude_targets("cuda")]

        def test_method(self, target):
            assert target == "llvm"
"""
NO_DEVICE = 'Skipped: target "{}" has no device: has_device() returned false'
SKIPPED = {
    "cuda": NO_DEVICE.format("cuda"),
    "vulkan": 'Skipped: target "vulkan" has no device: has_driver() raised OSError: no driver',
    "opencl": NO_DEVICE.format("opencl"),
    "metal": 'Skipped: target "metal" is not compiled in: its declaration says so',
}


@pytest.mark.parametrize("workers", [0, 2])
def test_each_test_runs_on_every_target_and_is_skipped_with_a_reason_where_it_cannot(
    project: Project, workers: int
) -> None:
    project.write(conftest=CONFTEST, test_one=TESTS, test_two="def test_too(target): pass")
    run = project.run("--strict-markers", "-o", "markers=gpu\nnvidia", workers=workers)
    everywhere = ["test_all", "test_device", "test_by_a_fixture", "test_bare", "test_too"]
    passed = {f"{test}[{target}]" for test in everywhere for target in ("llvm", "llvm -mcpu=core2")}
    passed |= {"test_explicit[llvm]", "test_joint[llvm-1]", "test_joint[a.txt-4]", "TestClass::test_method[llvm]"}
    assert run.with_outcome("passed") == passed
    assert run.with_outcome("xpassed") == {"test_known_failing[llvm -mcpu=core2]"}
    assert run.outcomes["test_known_failing[llvm]"] == ("xfailed", 'Known failing test for target "llvm"')
    skipped = {
        f"{test}[{target}]": message
        for test in [*everywhere, "test_known_failing"]
        for target, message in SKIPPED.items()
    }
    skipped |= {f"test_excluded[{target}]": message for target, message in SKIPPED.items() if target != "metal"}
    skipped |= {f"test_joint[cuda-{impl}]": SKIPPED["cuda"] for impl in (2, 3)}
    names = "llvm, llvm -mcpu=core2, cuda, vulkan, opencl, metal"
    skipped |= {"test_all_excluded[no-target]": f"Skipped: every target is excluded by exclude_targets: {names}"}
    assert {test: message for test, (outcome, message) in run.outcomes.items() if outcome == "skipped"} == skipped
    assert run.with_outcome("failed") == set()
    assert run.status == 0
    calls = (project.pytester.path / "asked.txt").read_text().split()
    assert sorted(calls) == ["has_device", "vulkan"], "all workers together call each probe once"


def test_the_marks_of_a_target_and_of_its_parents_select_tests(project: Project) -> None:
    project.write(conftest=CONFTEST, test_one=TESTS)
    for expression in ("gpu", "nvidia", "cuda and gpu"):
        run = project.run("-m", expression)
        assert {test for test in run.outcomes if "[cuda" not in test} == set()
        assert {"test_all[cuda]", "test_joint[cuda-2]"} <= set(run.outcomes), expression


@pytest.mark.parametrize("workers", [0, 2])
def test_the_variable_says_which_targets_are_tested(project: Project, workers: int) -> None:
    project.write(conftest=CONFTEST, test_one=TESTS)
    named = " llvm  -mcpu=skylake;; cuda ;lvm;llvm -mcpu=skylake"
    run = project.run(workers=workers, environ={"NIGHTJAR_TEST_TARGETS": named, "TVM_TEST_TARGETS": "metal"})
    targets = ["llvm -mcpu=skylake", "cuda", "lvm"]
    assert sorted(test for test in run.outcomes if test.startswith("test_all[")) == sorted(
        f"test_all[{target}]" for target in targets
    )
    assert run.outcomes["test_device[llvm -mcpu=skylake]"][0] == "passed"
    reason = run.outcomes["test_all[lvm]"][1]
    assert reason.startswith(
        f'Skipped: target "lvm" of NIGHTJAR_TEST_TARGETS is not declared in {project.pytester.path}'
    )
    assert "conftest.py:18; available: llvm, llvm -mcpu=core2, gpu, cuda," in reason
    assert run.outcomes["TestClass::test_method[llvm]"][0] == "passed", "its kind is in the variable"
    second = project.run(workers=workers, environ={"TVM_TEST_TARGETS": "opencl;llvm -mcpu=core2"})
    message = 'Skipped: target "cuda" is not among the targets of TVM_TEST_TARGETS'
    assert second.outcomes["test_joint[cuda-2]"] == ("skipped", message)


@pytest.mark.parametrize("workers", [0, 2])
def test_if_no_selected_target_can_run_the_first_usable_one_is_tested_with_a_warning(
    project: Project, workers: int
) -> None:
    project.write(conftest=CONFTEST, test_one="def test_all(target): pass")
    run = project.run(workers=workers, environ={"NIGHTJAR_TEST_TARGETS": "cuda;metal"})
    assert run.short() == {"test_all[cuda]": "skipped", "test_all[metal]": "skipped", "test_all[llvm]": "passed"}
    reasons = f"{SKIPPED['cuda']}. {SKIPPED['metal']}.".replace("Skipped: ", "")
    assert run.warnings == [f"no target of cuda, metal can run here, so tests run on llvm. {reasons}"]


def test_if_there_is_no_usable_target_the_error_names_all_reasons(project: Project) -> None:
    conftest = 'from nightjar_lab.pytest import Target\nnightjar_targets = [Target("cuda", enabled=False)]'
    project.write(conftest=conftest, test_one="def test_all(target): pass")
    run = project.run()
    assert run.status == 2
    assert "no target can run here, and" in run.text
    assert 'target "cuda" is not compiled in: its declaration says so.' in run.text


def test_a_test_may_require_targets_their_parents_or_only_support_compiled_in(project: Project) -> None:
    conftest = """
        from nightjar_lab.pytest import Target
        nightjar_targets = [
            Target("llvm"),
            Target("gpu", available=lambda: False, parametrized=False),
            Target("tensorcore", parents=["gpu"], parametrized=False),
            Target("metal", enabled=False),
        ]
    """
    tests = """
        import unittest
        from nightjar_lab.pytest import *

        @requires("llvm")
        def test_can(): pass

        @requires("llvm", "gpu")
        def test_both(): raise AssertionError

        @requires("tensorcore")
        def test_parent(): raise AssertionError

        @requires("tensorcore", compile_only=True)
        def test_compiles(): pass

        @requires("metal", compile_only=True)
        def test_cannot_compile(): raise AssertionError

        @requires("metal", optional=True)
        def test_optional(request):
            assert request.node.get_closest_marker("metal")

        @requires("tensorcore", optional=True)
        def test_marks(request):
            assert [mark.name for mark in request.node.iter_markers()][-2:] == ["gpu", "tensorcore"]

        class TestCase(unittest.TestCase):
            @requires("gpu")
            def test_case(self): raise AssertionError

        def test_enabled():
            assert enabled_targets() == [("llvm", None)]
    """
    project.write(conftest=conftest, test_one=tests)
    run = project.run()
    assert run.with_outcome("passed") == {"test_can", "test_compiles", "test_optional", "test_marks", "test_enabled"}
    gpu = 'target "gpu" has no device: <lambda>() returned false'
    assert {test: message for test, (outcome, message) in run.outcomes.items() if outcome != "passed"} == {
        "test_both": f"Skipped: {gpu}",
        "test_parent": f'Skipped: target "tensorcore" needs "gpu"; {gpu}',
        "test_cannot_compile": 'Skipped: target "metal" is not compiled in: its declaration says so',
        "TestCase::test_case": f"Skipped: {gpu}",
    }


def test_the_declaration_of_the_nearest_folder_counts(project: Project) -> None:
    declared = 'from nightjar_lab.pytest import Target\nnightjar_targets = [Target("{}")]'
    test = "def test_it(target, dev): assert dev is None"
    project.write(conftest=declared.format("llvm"), deep__er__conftest=declared.format("hexagon"))
    project.write(test_one=test, deep__er__test_two=test)
    assert project.run().short() == {"test_it[llvm]": "passed", "test_it[hexagon]": "passed"}


def test_parametrized_tests_are_skipped_or_expected_to_fail_by_id(project: Project) -> None:
    tests = """
        import pytest
        from nightjar_lab.pytest import *

        @skip_parameterizations("llvm-1", reason="slow")
        @xfail_parameterizations("[llvm-2]", reason="broken")
        @pytest.mark.parametrize("size", [1, 2, 12])
        @parametrize_targets("llvm")
        def test_it(target, size):
            assert size == 12
    """
    project.write(test_one=tests)
    assert project.run().outcomes == {
        "test_it[llvm-1]": ("skipped", "Skipped: slow"),
        "test_it[llvm-2]": ("xfailed", "broken"),
        "test_it[llvm-12]": ("passed", ""),
    }


def test_the_declared_kind_of_a_target_counts_in_every_comparison_of_kinds(project: Project) -> None:
    conftest = """
        from nightjar_lab.pytest import Target
        nightjar_targets = [Target("mali", kind="opencl"), Target("llvm")]
    """
    tests = """
        from nightjar_lab.pytest import *

        @known_failing_targets("opencl")
        @parametrize_targets("mali", "llvm")
        def test_explicit(target): raise AssertionError

        @exclude_targets("opencl")
        def test_excluded(target): pass
    """
    project.write(conftest=conftest, test_one=tests)
    run = project.run(environ={"NIGHTJAR_TEST_TARGETS": "opencl -device=mali;llvm"})
    assert run.short() == {
        "test_explicit[mali]": "xfailed",
        "test_explicit[llvm]": "failed",
        "test_excluded[llvm]": "passed",
    }
    assert project.run("-m", "opencl").short() == {"test_explicit[mali]": "xfailed"}


@pytest.mark.exhaustive
def test_what_the_variable_does_not_name_is_not_required_either(project: Project) -> None:
    conftest = """
        from nightjar_lab.pytest import Target
        nightjar_targets = [
            Target("llvm"),
            Target("gpu", parametrized=False),
            Target("cuda", parents=["gpu"]),
            Target("tensorcore", parents=["cuda"], parametrized=False),
            Target("vulkan", parents=["gpu"]),
            Target("numpy", parametrized=False),
        ]
    """
    names = ("llvm", "gpu", "cuda", "tensorcore", "vulkan", "numpy")
    tests = "from nightjar_lab.pytest import *\n" + "".join(
        f"@requires('{name}')\ndef test_{name}(): pass\n" for name in names
    )
    tests += "@requires('cuda', compile_only=True)\ndef test_compiled(): pass\n"
    tests += "@requires('cuda', optional=True)\ndef test_optional(): pass\n"
    project.write(conftest=conftest, test_one=tests)
    everything = {f"test_{name}" for name in (*names, "compiled", "optional")}
    assert project.run().with_outcome("passed") == everything

    run = project.run(environ={"TVM_TEST_TARGETS": "llvm"})
    assert run.with_outcome("passed") == {"test_llvm", "test_numpy", "test_optional"}
    reason = 'target "{}" is not among the targets of TVM_TEST_TARGETS'
    for test, target in (("gpu", "gpu"), ("cuda", "cuda"), ("compiled", "cuda")):
        assert run.outcomes[f"test_{test}"] == ("skipped", f"Skipped: {reason.format(target)}")
    parent_reason = f'Skipped: target "tensorcore" needs "cuda"; {reason.format("cuda")}'
    assert run.outcomes["test_tensorcore"] == ("skipped", parent_reason)
    gpu = project.run("-m", "gpu and not tensorcore", environ={"TVM_TEST_TARGETS": "llvm"})
    assert gpu.with_outcome("passed") == {"test_optional"}, "which is never skipped"

    run = project.run(environ={"NIGHTJAR_TEST_TARGETS": "cuda -arch=sm_80"})
    assert run.with_outcome("skipped") == {"test_llvm", "test_vulkan"}
    for environment in ({"NIGHTJAR_TEST_TARGETS": "vulkan"}, {"NIGHTJAR_TEST_TARGETS": "vulkan; gpu"}):
        run = project.run(environ=environment)
        assert run.with_outcome("passed") == {"test_gpu", "test_vulkan", "test_numpy", "test_optional"}

    other_reading = ("-o", "nightjar_requires_other_targets=true")
    assert project.run(*other_reading, environ={"TVM_TEST_TARGETS": "llvm"}).with_outcome("passed") == everything
