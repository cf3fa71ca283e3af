"""Parameters and cached fixtures behave as TVM's own tests of its helpers expect."""

from __future__ import annotations

import datetime
import fractions
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from nightjar_lab.pytest import fixture, parameter, parameters
from nightjar_lab.pytest.cached_fixtures import uncopied
from nightjar_lab.pytest.targets import TargetUseError

from tests.lab.plugin.project import Project

TESTS = """
    import gc, weakref
    import pytest
    from nightjar_lab.pytest import *

    first = parameter(1, 2, 3)
    second = parameter(4, 5, 6, ids=["four", "five", "six"])
    fruit = parameter(by_dict={"apple": 7, "pear": 8, "banana": 9})
    size, layout = parameters((1, "NCHW"), (8, "NHWC"), (9, "NCHW8c"), ids=["small", "large", "odd"])
    CALLS = []

    class TestIndependent:
        def test_all_combinations(self, first, second):
            CALLS.append((first, second))

        def test_count(self):
            assert sorted(CALLS) == [(one, two) for one in (1, 2, 3) for two in (4, 5, 6)]

    def test_ids(fruit):
        assert fruit in {7, 8, 9}

    def test_together(size, layout):
        assert (size, layout) in {(1, "NCHW"), (8, "NHWC"), (9, "NCHW8c")}

    def test_one_of_them(layout):
        pass

    class TestOfClass:
        number, word = parameters((1, "one"), (2, "two"))

        def test_method(self, number, word, first):
            assert {1: "one", 2: "two"}[number] == word

    @fixture
    def uncached(first):
        UNCACHED.append(first)
        return [first]

    @fixture(cache_return_value=True)
    def cached(first):
        CACHED.append(first)
        return [first]

    UNCACHED, CACHED, BROKEN, SINGLE = [], [], [], []

    def test_uncached(uncached, second): pass
    def test_uncached_count(): assert sorted(UNCACHED) == [1, 1, 1, 2, 2, 2, 3, 3, 3]

    def test_cached(cached, first, second):
        assert cached == [first], "a change of a copy is not seen by others"
        cached.append("changed")

    def test_cached_count(): assert sorted(CACHED) == [1, 2, 3]

    class TestCachedMethod:
        calls = []

        @fixture(cache_return_value=True)
        def of_class(self, unhashable):
            self.calls.append(unhashable)
            return {"value": unhashable}

        @pytest.fixture(params=[[1], [1.0], [True]], ids=["int", "float", "bool"])
        def unhashable(self, request):
            return request.param

        def test_arguments(self, of_class, unhashable, second):
            assert repr(of_class["value"]) == repr(unhashable)

        def test_count(self):
            assert len(self.calls) == 3

    @fixture(cache_return_value=True)
    def broken():
        BROKEN.append(1)
        raise OSError("the original error")

    def test_broken_one(broken): raise AssertionError("it never runs")
    def test_broken_two(broken): raise AssertionError("it never runs")
    def test_broken_count(): assert len(BROKEN) == 1

    @fixture(cache_return_value=True)
    def skipping():
        pytest.skip("no network")

    def test_skipping_one(skipping): raise AssertionError("it never runs")
    def test_skipping_two(skipping): raise AssertionError("it never runs")

    class Handle: pass

    @fixture(cache_return_value=True)
    def handle(): return {"inside": [Handle()]}

    def test_handle_one(handle): raise AssertionError("it never runs")
    def test_handle_two(handle): raise AssertionError("it never runs")

    class Large(dict):
        def __deepcopy__(self, memo):
            return dict(self)

    @fixture(cache_return_value=True)
    def large():
        made = Large()
        SINGLE.append(weakref.ref(made))
        return made

    def test_large_one(large): pass

    def test_large_two(large):
        assert SINGLE[0]() is not None

    def test_after_the_last_use():
        gc.collect()
        assert len(SINGLE) == 1
        assert SINGLE[0]() is None
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_parameters_and_cached_fixtures_behave_as_in_tvm(project: Project, workers: int) -> None:
    project.write(test_one=TESTS)
    run = project.run(workers=workers)
    ids = [test for test in run.outcomes if test.startswith("test_ids")]
    assert ids == ["test_ids[apple]", "test_ids[pear]", "test_ids[banana]"]
    together = {test for test in run.outcomes if test.startswith(("test_together", "test_one_of_them"))}
    assert together == {
        f"{test}[{word}]" for test in ("test_together", "test_one_of_them") for word in ("small", "large", "odd")
    }
    assert len([test for test in run.outcomes if test.startswith("TestIndependent::test_all")]) == 9
    assert "TestIndependent::test_all_combinations[1-four]" in run.outcomes
    assert len([test for test in run.outcomes if test.startswith("TestOfClass")]) == 6
    broken = {"test_broken_one", "test_broken_two", "test_handle_one", "test_handle_two"}
    assert run.with_outcome("failed") == broken
    assert all("OSError: the original error" in run.outcomes[f"test_broken_{word}"][1] for word in ("one", "two"))
    for word in ("one", "two"):
        assert (
            "TypeError: the fixture handle returned a Handle, which cannot be cached"
            in run.outcomes[f"test_handle_{word}"][1]
        )
        assert run.outcomes[f"test_skipping_{word}"] == ("skipped", "Skipped: no network")
    assert run.with_outcome("skipped") == {"test_skipping_one", "test_skipping_two"}


@pytest.mark.parametrize("variable", ["NIGHTJAR_TEST_DISABLE_CACHE", "TVM_TEST_DISABLE_CACHE"])
def test_a_variable_turns_the_cache_off(project: Project, variable: str) -> None:
    tests = """
        from nightjar_lab.pytest import fixture
        CALLS = []

        @fixture(cache_return_value=True)
        def made():
            CALLS.append(1)
            return object()

        def test_one(made): pass
        def test_two(made): assert len(CALLS) == 2
    """
    project.write(test_it=tests)
    assert project.run(environ={variable: "1"}).short() == {"test_one": "passed", "test_two": "passed"}


class WithoutCopy:
    """A class that does not define how it is copied."""


class WithDeepcopy:
    def __deepcopy__(self, memo: dict[int, object]) -> WithDeepcopy:
        return self


class WithReduce:
    def __reduce__(self) -> str | tuple[object, ...]:
        return super().__reduce__()


class WithArguments:
    def __getnewargs__(self) -> tuple[object, ...]:
        return ()


@dataclass
class Record:
    value: object


@pytest.mark.parametrize(
    "value",
    [
        1, "a", b"a", None, 1.5, [1, {"a": (1, {2})}], OrderedDict(a=1), defaultdict(list, a=[1]), Path("a"), len, int,
        datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC), fractions.Fraction(1, 3), Record([1]),
        WithDeepcopy(), WithReduce(), WithArguments(), lambda: None,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_value_that_defines_how_it_is_copied_can_be_cached(value: object) -> None:
    assert uncopied(value) is None


@pytest.mark.parametrize(
    "value", [WithoutCopy(), [WithoutCopy()], {"a": (WithoutCopy(),)}, {WithoutCopy(): 1}, Record(WithoutCopy())]
)
def test_a_value_that_does_not_is_refused_wherever_it_is_nested(value: object) -> None:
    assert uncopied(value) is WithoutCopy


def test_a_value_that_contains_itself_is_read_once() -> None:
    value: list[object] = []
    value.append(value)
    assert uncopied(value) is None
    assert uncopied([value, threading.Event()]) is threading.Event


def _yields() -> object:
    yield 1


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: parameter(), r"parameter needs at least one value\. Write: parameter\(1, 2\)"),
        (lambda: parameter(1, by_dict={"a": 1}), "takes values or by_dict, not both"),
        (lambda: parameter(1, 2, ids=["a"]), "parameter got 1 ids for 2 values"),
        (lambda: parameters(), "parameters needs at least one value"),
        (lambda: parameters((1, 2), (3,)), "sets of 1 and 2 values"),
        (lambda: parameters((1, 2), ids=["a", "b"]), "parameters got 2 ids for 1 values"),
        (lambda: fixture(cache_return_value=True)(_yields), "the fixture _yields yields or awaits"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_the_remedy(mistake: object, message: str) -> None:
    assert callable(mistake)
    with pytest.raises(TargetUseError, match=rf"test_parameters\.py:\d+: .*{message}"):
        mistake()
