import re
import unicodedata
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_NAME
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.runs.identity import MAX_REMEMBERED, Resolver, is_shortened
from nightjar_formats.runs.paths import MAX_PARTS

from tests.steps import steps_of

FILES = (
    "src/ir/module.cc",
    "tests/cpp/ir_functor_test.cc",
    "python/tvm/contrib/utils.py",
    "tests/python/ir/__init__.py",
    "tests/python/ir/test_basic.py",
    "tests/python/te/test_basic.py",
    "tests/python/te/test_te_tag.py",
    "tests/python/tirx-transform/test_tir_transform_simplify.py",
    "backends/test/suite/operators/test_add.py",
    "backends/xnnpack/test/ops/test_add.py",
    "jvm/src/test/java/org/apache/tvm/ModuleTest.java",
    "TestRoot.py",
)
TAG = "tests/python/te/test_te_tag.py"
ADD = "backends/test/suite/operators/test_add.py"
FOREIGN = "etv.lib.python3.11.site-packages.executorch.backends.test.suite.operators.test_add"


def case(name: str = "test_with", classname: str = "", **fields: object) -> Case:
    return Case(name, Status.PASSED, classname, **fields)  # type: ignore[arg-type]


def resolved(test_case: Case, files: tuple[str, ...] | None = FILES) -> tuple[str, str]:
    return Resolver(files).resolve(test_case)


@pytest.mark.parametrize(
    ("classname", "location", "path"),
    [
        ("tests.python.te.test_te_tag", TAG, TAG),
        ("tests.python.te.test_te_tag.TestTag", f"{TAG}::TestTag", TAG),
        ("tests.python.te.test_te_tag.TestTag.TestInner", f"{TAG}::TestTag::TestInner", TAG),
        ("cython.tests.python.te.test_te_tag", TAG, TAG),
        ("ctypes.tests.python.te.test_te_tag.TestTag", f"{TAG}::TestTag", TAG),
        ("tvmsrc.tests.python.te.test_te_tag", TAG, TAG),
        ("python.te.test_te_tag", TAG, TAG),
        ("test_te_tag", TAG, TAG),
        ("te.test_basic", "tests/python/te/test_basic.py", "tests/python/te/test_basic.py"),
        (FOREIGN, ADD, ADD),
        (f"{FOREIGN}.TestAdd", f"{ADD}::TestAdd", ADD),
        # a module whose name does not show that it has tests, as a whole path
        ("python.tvm.contrib.utils.Graph", "python/tvm/contrib/utils.py::Graph", "python/tvm/contrib/utils.py"),
        # two files have that name, so it is ambiguous
        ("test_basic", "test_basic", ""),
        ("elsewhere.test_add.TestAdd", "elsewhere.test_add.TestAdd", ""),
        # a module with only its name in common, and the Java package of that name
        ("org.apache.tvm.contrib.utils.Graph", "org.apache.tvm.contrib.utils.Graph", ""),
        ("org.apache.tvm.ModuleTest", "org.apache.tvm.ModuleTest", ""),
        ("IrFunctor/0", "IrFunctor/0", ""),
        ("a." * 80 + "tests.python.te.test_te_tag", "a." * 80 + "tests.python.te.test_te_tag", ""),
    ],
)
def test_a_classname_is_resolved_to_file_and_classes(classname: str, location: str, path: str) -> None:
    assert resolved(case("test_x[llvm]", classname)) == (f"{location}::test_x[llvm]", path)


def test_of_two_equally_long_suffixes_the_one_that_is_a_whole_path_wins() -> None:
    files = ("te/test_tag.py", "tests/te/test_tag.py")
    assert resolved(case("test_x", "cython.te.test_tag"), files) == ("te/test_tag.py::test_x", "te/test_tag.py")


@pytest.mark.parametrize(
    ("files", "classname", "location"),
    [
        # the longest suffix counts, whatever the files are called
        (("zz/test_m.py", "b/test_n.py"), "cython.b.test_n.test_m", "b/test_n.py::test_m"),
        (("b/test_m.py", "zz/test_n.py"), "cython.zz.test_n.test_m", "zz/test_n.py::test_m"),
        # of two equally long suffixes the one with fewer classes after it
        (("a/test_m.py", "b/test_n.py"), "cython.test_n.test_m", "a/test_m.py"),
        (("b/test_m.py", "a/test_n.py"), "cython.test_n.test_m", "b/test_m.py"),
    ],
)
def test_the_longest_suffix_of_a_classname_decides(files: tuple[str, ...], classname: str, location: str) -> None:
    assert resolved(case("test_x", classname), files)[0] == f"{location}::test_x"


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_classname_with_too_many_parts_is_not_searched_for(excess: int) -> None:
    prefixed = "a." * (MAX_PARTS - 4 + excess) + "tests.python.te.test_te_tag"
    suffixed = "tests.python.te.test_te_tag" + ".A" * (MAX_PARTS - 4 + excess)
    paths = [resolved(case("test_x", classname))[1] for classname in (prefixed, suffixed)]
    assert paths == (["", ""] if excess > 0 else [TAG, TAG])


@pytest.mark.parametrize(
    "nodeid",
    [
        f"{TAG}::test_x[llvm]",
        f"./{TAG}::test_x[llvm]",
        f"../../elsewhere/{TAG}::test_x[llvm]",
        f"/opt/lab/tvm/{TAG}::test_x[llvm]",
        "te/test_te_tag.py::test_x[llvm]",
        "C:\\lab\\tests\\python\\te\\test_te_tag.py::test_x[llvm]",
    ],
)
def test_a_node_id_is_resolved_whatever_the_labs_root_folder(nodeid: str) -> None:
    assert resolved(case("test_x[llvm]", nodeid=nodeid)) == (f"{TAG}::test_x[llvm]", TAG)


@pytest.mark.parametrize("params", ["[a::b]", "[[1, 2]]", "[../a/b.py]", "[c:\\d]", "[x] y", "[cuda -libs=cublas]"])
def test_parameters_may_contain_anything(params: str) -> None:
    test = f"{TAG}::TestTag::test_x{params}"
    assert resolved(case(nodeid=test)) == (test, TAG)
    assert resolved(case(f"test_x{params}", "tests.python.te.test_te_tag.TestTag")) == (test, TAG)


@pytest.mark.parametrize("files", [FILES, None])
def test_all_formats_agree_on_a_test(files: tuple[str, ...] | None) -> None:
    nodeid_of_pytest = f"{TAG}::TestTag::test_x[llvm]"
    xunit1 = case("test_x[llvm]", "tests.python.te.test_te_tag.TestTag", path=TAG)
    reportlog = case("test_x[llvm]", nodeid=nodeid_of_pytest)
    assert resolved(xunit1, files) == resolved(reportlog, files) == (nodeid_of_pytest, TAG if files else "")


def test_a_prefix_of_the_classname_does_not_hide_the_classes_after_the_path() -> None:
    test_case = case("test_x", "cython.tests.python.te.test_new.TestTag", path="tests/python/te/test_new.py")
    assert resolved(test_case, None) == ("tests/python/te/test_new.py::TestTag::test_x", "")


@pytest.mark.parametrize(
    ("classname", "classes"),
    [("te.test_new.TestTag.test_new", "TestTag::test_new"), ("test_new.te.test_new.TestTag", "TestTag")],
)
def test_if_a_classname_names_the_module_twice_the_best_match_with_the_path_counts(
    classname: str, classes: str
) -> None:
    test_case = case("test_x", classname, path="te/test_new.py")
    assert resolved(test_case, None) == (f"te/test_new.py::{classes}::test_x", "")


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_classname_with_too_many_parts_is_not_split(excess: int) -> None:
    classname = "a." * (MAX_PARTS - 1 + excess) + "test_new"
    test, _ = resolved(case("test_x", classname, path="te/test_new.py"), None)
    assert test == (f"{classname}::test_x" if excess > 0 else "te/test_new.py::test_x")


def test_an_inherited_test_belongs_to_the_file_it_was_collected_from_and_its_line_to_the_other() -> None:
    test_case = case("test_x", "tests.python.te.test_te_tag.TestTag", path="tests/python/ir/test_basic.py")
    assert resolved(test_case) == (f"{TAG}::TestTag::test_x", "tests/python/ir/test_basic.py")


def test_a_path_unrelated_to_the_classname_is_not_part_of_the_id() -> None:
    assert resolved(case("test_x", "Suite", path="/build/elsewhere.py")) == ("Suite::test_x", "")


@pytest.mark.parametrize("path", ["tests/cpp/ir_functor_test.cc", "/build/tvm/tests/cpp/ir_functor_test.cc"])
def test_a_file_not_in_python_is_part_of_the_id_if_the_repository_has_it(path: str) -> None:
    file = "tests/cpp/ir_functor_test.cc"
    assert resolved(case("CountVar", "IrFunctor", path=path)) == (f"{file}::IrFunctor::CountVar", file)
    assert resolved(case("CountVar", path=path)) == (f"{file}::CountVar", file)


def test_a_whole_path_names_a_file_of_the_repository_whatever_its_extension() -> None:
    file = "src/ir/module.cc"
    assert resolved(case("CountVar", "IrFunctor", path=file)) == (f"{file}::IrFunctor::CountVar", file)
    assert resolved(case("CountVar", "IrFunctor", path=f"/build/{file}")) == ("IrFunctor::CountVar", "")


@pytest.mark.parametrize("climb", ["../", "../../", "../../../"])
def test_a_path_out_of_the_labs_folder_starts_after_its_last_parent_folder(climb: str) -> None:
    assert resolved(case(nodeid=f"{climb}te/test_new.py::test_x"), None) == ("te/test_new.py::test_x", "")


@pytest.mark.parametrize(
    ("failure_path", "path"),
    [("/opt/lab/tests/python/te/test_te_tag.py", TAG), ("src/ir/module.cc", "src/ir/module.cc"), ("unknown.py", "")],
)
def test_the_line_of_a_failure_belongs_to_the_file_that_the_failure_names(failure_path: str, path: str) -> None:
    test_case = case("test_x", "tests.python.ir.test_basic", failure_path=failure_path)
    assert resolved(test_case) == ("tests/python/ir/test_basic.py::test_x", path)


def test_without_a_known_file_the_id_is_suite_and_name() -> None:
    assert resolved(case("CountVar", "IrFunctor", path="/build/generated.cc")) == ("IrFunctor::CountVar", "")
    assert resolved(case("CountVar", "IrFunctor"), None) == ("IrFunctor::CountVar", "")
    assert resolved(case("test_add_dtype[xnnpack-float32]")) == ("test_add_dtype[xnnpack-float32]", "")
    assert resolved(case("test_te_tag")) == ("test_te_tag", "")


@pytest.mark.parametrize(
    "test_case",
    [
        case("tests.python.te.test_te_tag"),
        case("cython.tests.python.te.test_te_tag"),
        case("tests.python.te.test_te_tag", path=TAG),
        case(TAG, nodeid=TAG),
        case("TestTag", nodeid=f"{TAG}::TestTag"),
        case("tests.python.te.test_te_tag.TestTag"),
        case("collecting", "tests.python.te.test_te_tag"),
    ],
)
def test_the_id_of_a_file_that_could_not_be_collected_is_its_path(test_case: Case) -> None:
    assert resolved(test_case._replace(status=Status.ERRORED, trouble=Trouble.COLLECTION)) == (TAG, TAG)


def test_the_id_of_a_completely_skipped_file_is_its_path() -> None:
    assert resolved(case("tests.python.te.test_te_tag")) == (TAG, TAG)
    assert resolved(case(nodeid=TAG)) == (TAG, TAG)


def test_a_collection_error_of_an_unknown_file_keeps_its_name() -> None:
    test_case = case("a.test_b")._replace(trouble=Trouble.COLLECTION)
    assert resolved(test_case, None) == ("a.test_b", "")


def test_a_name_without_a_path_stays_as_it_is() -> None:
    assert resolved(case(nodeid="test_x[a::b]")) == ("test_x[a::b]", "")
    assert resolved(case(nodeid="test_x[./a::b]", path=TAG)) == ("test_x[./a::b]", TAG)
    assert resolved(case(nodeid="test_x[a//b::c]")) == ("test_x[a//b::c]", "")
    assert resolved(case("internal", "pytest")) == ("pytest::internal", "")


@pytest.mark.parametrize(
    ("raw", "printed"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202e", "\\u202e"),
        ("\u00a0", "\\xa0"),
        ("é✓", "é✓"),
        ("é\\\n", "é\\\\n"),
        ("\\n", "\\n"),
    ],
)
def test_unprintable_characters_are_written_as_in_pythons_repr(raw: str, printed: str) -> None:
    expected = f"{TAG}::test_x[{printed}]"
    assert resolved(case(f"test_x[{raw}]", "tests.python.te.test_te_tag"))[0] == expected
    assert resolved(case(nodeid=f"{TAG}::test_x[{raw}]"))[0] == expected
    assert resolved(case("y", f"Suite{raw}"))[0] == f"Suite{printed}::y"


def test_both_notations_of_a_path_give_the_same_id() -> None:
    composed = unicodedata.normalize("NFC", "tests/test_café.py")
    decomposed = unicodedata.normalize("NFD", composed)
    assert resolved(case(nodeid=f"{decomposed}::test_x"), (composed,)) == (f"{composed}::test_x", composed)
    assert resolved(case(nodeid=f"{composed}::test_x"), (decomposed,)) == (f"{composed}::test_x", decomposed)


def test_an_id_that_is_too_long_keeps_its_head_and_tail_and_a_hash() -> None:
    longest = "x" * (MAX_NAME - len("Suite::"))
    assert resolved(case(longest, "Suite"))[0] == f"Suite::{longest}"
    shortened = resolved(case(f"test_add[{'x' * 2_000}-llvm]", FOREIGN))
    assert shortened == resolved(case(nodeid=f"{ADD}::test_add[{'x' * 2_000}-llvm]"))
    assert len(shortened[0]) == MAX_NAME
    assert shortened[0].startswith(f"{ADD}::test_add[xxx")
    assert re.search(r"xxx…[0-9a-f]{16}…xxx.*xxx-llvm\]$", shortened[0])
    assert shortened[1] == ADD
    assert is_shortened(shortened[0])
    assert not is_shortened(ADD + "x" * (MAX_NAME - len(ADD)))


CLASSNAME = "cython." * 30 + "tests.python.te.test_te_tag.TestTag"


@pytest.mark.parametrize(
    "make_case",
    [
        lambda name: case(name, CLASSNAME),
        lambda name: case(name, CLASSNAME, path=f"/opt/lab/{TAG}"),
        lambda name: case(nodeid=f"{'cython/' * 30}{TAG}::{name}"),
    ],
)
def test_the_place_of_a_class_is_searched_for_once(make_case: Callable[[str], Case]) -> None:
    resolver = Resolver(FILES)
    # Newer Pythons report each instruction of a function only from its second traced call on.
    resolvers = (Resolver(FILES), resolver, resolver)
    _, search_steps, cached_steps = [
        steps_of(partial(each_resolver.resolve, make_case("test_x"))) for each_resolver in resolvers
    ]
    assert search_steps > 3 * cached_steps
    assert resolver.resolve(make_case("test_z")) == Resolver(FILES).resolve(make_case("test_z"))


def test_at_most_ten_thousand_places_of_classes_are_cached() -> None:
    resolver = Resolver(())
    for number in range(MAX_REMEMBERED - 1):
        resolver.resolve(case("test_x", f"Suite{number}"))
    assert is_remembered(resolver, "a.b")
    assert not is_remembered(resolver, "a.c")
    assert is_remembered(resolver, "a.b")


@pytest.mark.parametrize(("excess", "remembered"), [(-1, True), (0, True), (1, False)])
def test_the_place_of_a_class_with_an_endless_name_is_not_cached(excess: int, remembered: bool) -> None:
    classname = "x" * (MAX_NAME - len("::") + excess)
    assert is_remembered(Resolver(()), classname) is remembered


def is_remembered(resolver: Resolver, classname: str) -> bool:
    """Resolve a test of a class twice; return whether the second time took far fewer steps than the first."""
    test_case = case("test_x", classname)
    # Newer Pythons report each instruction of a function only from its second traced call on.
    resolvers = (resolver, Resolver(()), Resolver(()), resolver)
    *_, search_steps, cached_steps = [
        steps_of(partial(each_resolver.resolve, test_case)) for each_resolver in resolvers
    ]
    return 2 * cached_steps < search_steps


@pytest.mark.no_cover
@settings(deadline=None, max_examples=100)
@given(middle=st.text(max_size=30), other_middle=st.text(max_size=30))
def test_two_long_names_stay_as_different_as_they_were(middle: str, other_middle: str) -> None:
    ids = [resolved(case(f"test[{'x' * 1_000}{text}{'y' * 1_000}]", "Suite"))[0] for text in (middle, other_middle)]
    assert [len(test) for test in ids] == [MAX_NAME, MAX_NAME]
    assert (ids[0] == ids[1]) == (_printed(middle) == _printed(other_middle))


def _printed(text: str) -> str:
    return resolved(case(f"t{text}", "Suite"))[0]


modules = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/".join([*parts, "test_m"]))


@pytest.mark.no_cover
@settings(deadline=None, max_examples=200)
@given(
    files=st.sets(modules, min_size=1, max_size=6), prefix=st.lists(st.sampled_from("xyz"), max_size=3), data=st.data()
)
def test_a_foreign_prefix_changes_nothing(files: set[str], prefix: list[str], data: st.DataObject) -> None:
    module = data.draw(st.sampled_from(sorted(files)))
    resolver = Resolver({f"{file}.py" for file in files})
    test_case = case("test_x", ".".join([*prefix, *module.split("/"), "TestA"]))
    assert resolver.resolve(test_case) == (f"{module}.py::TestA::test_x", f"{module}.py")
    assert resolver.resolve(case(nodeid="/".join([*prefix, f"{module}.py::TestA::test_x"]))) == resolver.resolve(
        test_case
    )


@pytest.mark.no_cover
@settings(deadline=None, max_examples=200)
@given(
    name=st.text(max_size=20), classname=st.text(max_size=20), path=st.text(max_size=20), nodeid=st.text(max_size=20)
)
def test_any_text_gives_a_printable_id_and_no_path_that_does_not_exist(
    name: str, classname: str, path: str, nodeid: str
) -> None:
    test, file = resolved(case(name, classname, path=path, nodeid=nodeid))
    assert test.isprintable()
    assert file in ("", *FILES)
