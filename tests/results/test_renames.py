import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.results.compare.renames import MAX_REWORDED, MAX_WORDS, RENAMED_TOGETHER, search_renames
from bot.results.compare.restructured import SMALL_CLASS
from bot.results.compare.searching import renames

NAMES = [
    f"test_{word}" for word in ("add", "bias", "conv", "dense", "erf", "floor", "gelu", "hash", "join", "kron", "log")
]
A, B = "tests/python/relay/test_a.py", "tests/python/relay/test_b.py"


def at(location: str, names: list[str] = NAMES) -> list[str]:
    return [f"{location}::{name}" for name in names]


def each(pattern: str, words: list[str] = NAMES) -> list[str]:
    return [pattern.format(word) for word in words]


MOVES = [
    # a file renamed, a class renamed, added, and removed
    (at(A), at(B)),
    (at(f"{A}::TestA"), at(f"{A}::TestB")),
    (at(A), at(f"{A}::TestA")),
    (at(f"{A}::TestA"), at(A)),
    # a folder renamed, added, removed, also at the beginning
    (at(A), at(A.replace("relay", "relax"))),
    (at(A), at(A.replace("relay", "relay/op"))),
    (at(A), at(A.replace("python/", ""))),
    (at(A), at(f"cython/{A}")),
    (at(f"etv/lib/{A}"), at(A)),
    # a list of files that was unknown, then known
    (at("ctypes.tests.python.relay.test_a.TestA"), at(f"{A}::TestA")),
    # another prefix of names that are no paths
    (at("IrFunctor/0"), at("Functor/0")),
]
REWORDINGS = [
    (each(A + "::{}[llvm]"), each(A + "::{}[cuda]")),
    (each(A + "::{}[llvm-float32]"), each(A + "::{}[llvm-float32-dynamic]")),
    (each(A + "::{}[float32]"), each(A + "::{}[llvm-float32]")),
    (each(A + "::{}[llvm-float32]"), each(A + "::{}[float32]")),
    (each(A + "::{}"), each(A + "::{}[llvm]")),
    (each(A + "::{}[llvm]"), each(A + "::{}")),
    (each(A + "::test_x[{}]"), each(A + "::test_y[{}]")),
    (each(A + "::test_tir_x[{}]"), each(A + "::test_tirx_x[{}]")),
    (each(A + "::test_x[{}]"), each(A + "::test_x_twice[{}]")),
    (each(A + "::x_test[{}]"), each(A + "::op_x_test[{}]")),
]


@pytest.mark.parametrize(("old_names", "new_names"), MOVES + REWORDINGS)
def test_one_rule_for_many_tests_is_found(old_names: list[str], new_names: list[str]) -> None:
    assert renames(old_names, new_names) == dict(zip(old_names, new_names, strict=True))


@pytest.mark.parametrize(
    ("old_names", "new_names", "count"),
    [(*move, SMALL_CLASS - 1) for move in MOVES] + [(*rewording, RENAMED_TOGETHER - 1) for rewording in REWORDINGS],
)
def test_too_few_tests_count_as_chance(old_names: list[str], new_names: list[str], count: int) -> None:
    assert renames(old_names[:count], new_names[:count]) == {}
    unrelated = [f"tests/python/other/test_{index}.py::test_nothing_like_it" for index in range(20)]
    assert renames([*old_names[:count], *unrelated], new_names[:count]) == {}
    assert renames(old_names[:count], [*new_names[:count], *unrelated]) == {}


@pytest.mark.parametrize(("old_names", "new_names"), MOVES + REWORDINGS)
def test_a_rule_that_fits_many_other_removed_tests_is_no_rename(old_names: list[str], new_names: list[str]) -> None:
    location, _, last = old_names[0].rpartition("::")
    removed = [f"{location}::{last.replace('add', f'removed{index}')}" for index in range(4)]
    assert renames([*old_names, *removed], new_names) == {}


def test_a_rule_that_fits_most_tests_is_enough() -> None:
    removed, new = at(A), at(B)
    assert renames([*removed, f"{A}::test_removed"], [*new, f"{B}::test_new"]) == dict(zip(removed, new, strict=True))


def test_a_folder_of_small_files_is_found_although_its_files_share_test_names() -> None:
    removed = [f"tests/old/test_{file}.py::{name}" for file in "abcd" for name in NAMES[:3]]
    new = [test.replace("/old/", "/new/") for test in removed]
    assert renames(removed, new) == dict(zip(removed, new, strict=True))


def test_a_moved_folder_is_found_next_to_a_folder_with_removed_tests() -> None:
    moved = [f"tests/contrib/moved/test_{file}.py::{name}" for file in "abcd" for name in NAMES[:3]]
    removed = [f"tests/contrib/old/test_x.py::test_{number}" for number in range(30)]
    new_names = [test.replace("/contrib/", "/extras/") for test in moved]
    assert renames([*moved, *removed], new_names) == dict(zip(moved, new_names, strict=True))


def test_a_file_split_into_two_with_the_same_tests_is_no_rename() -> None:
    assert renames(at(A), [*at(B), *at("tests/python/relay/test_c.py")]) == {}


def test_a_test_that_now_runs_for_two_targets_is_no_rename() -> None:
    assert renames(each(A + "::{}[x]"), [*each(A + "::{}[x-llvm]"), *each(A + "::{}[x-cuda]")]) == {}


def test_two_files_merged_into_one_are_no_rename() -> None:
    assert renames([*at(A), *at(B)], at("tests/python/relay/test_c.py")) == {}


def test_another_number_is_another_value() -> None:
    assert renames(each(A + "::{}[16]"), each(A + "::{}[32]")) == {}


def test_a_test_on_both_sides_is_not_renamed() -> None:
    assert renames([*at(A), *at(B)], [*at(A), *at(B)]) == {}


def test_two_simultaneous_rules_are_both_found() -> None:
    removed = [*at(A), *each(B + "::{}[llvm]")]
    new = [*at("tests/python/relax/test_z.py"), *each(B + "::{}[llvm-O3]")]
    assert renames(removed, new) == dict(zip(removed, new, strict=True))


def test_too_many_names_are_not_compared_word_by_word() -> None:
    many = [f"{A}::test_{index}_x[llvm]" for index in range(MAX_REWORDED + 1)]
    assert renames(many, [test.replace("llvm", "cuda") for test in many]) == {}


def test_an_abandoned_search_is_distinguished_from_one_that_finds_nothing() -> None:
    removed, new = ({f"{folder}/test_a.py::test_{number}" for number in range(20)} for folder in ("old", "new"))
    assert search_renames(removed, new, most_steps=10) is None
    assert renames(removed, new, most_steps=10) == {}
    assert search_renames(removed, {f"test_other_{number}" for number in range(20)}) == {}


def test_endless_names_and_files_are_not_compared() -> None:
    endless = "-".join("w" for _ in range(MAX_WORDS))
    assert renames(each(A + "::{}[llvm-" + endless + "]"), each(A + "::{}[cuda-" + endless + "]")) == {}
    assert renames(each("tests/{}.py"), each("test/{}.py")) == {f"tests/{name}.py": f"test/{name}.py" for name in NAMES}


words = st.text("abcdef", min_size=1, max_size=4)
tests = st.builds(
    lambda folders, file, classes, name, params: (
        "::".join(["/".join([*folders, f"test_{file}.py"]), *classes, f"test_{name}"]) + params
    ),
    st.lists(words, max_size=2),
    words,
    st.lists(words.map(str.title), max_size=1),
    words,
    st.sampled_from(["", "[llvm]", "[a::b]", "[../x-1]"]),
)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=50)
@given(removed=st.sets(tests, min_size=RENAMED_TOGETHER, max_size=60), prefix=st.lists(words, min_size=1, max_size=3))
def test_another_prefix_is_found_completely_whatever_the_tests_are_called(removed: set[str], prefix: list[str]) -> None:
    new = {test: "/".join(["zz", *prefix, test]) for test in removed}
    assert renames(removed, new.values()) == new
    assert renames(new.values(), removed) == {new_name: old_name for old_name, new_name in new.items()}


@pytest.mark.no_cover
@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_unrelated_tests_are_never_paired(data: st.DataObject) -> None:
    old_words, new_words = st.text("abc", min_size=1, max_size=5), st.text("xyz", min_size=1, max_size=5)
    removed = data.draw(
        st.sets(st.builds("tests/test_a.py::test_{}_{}[llvm]".format, old_words, old_words), max_size=50)
    )
    new = data.draw(st.sets(st.builds("tests/test_a.py::test_{}_{}[llvm]".format, new_words, new_words), max_size=50))
    assert renames(removed, new) == {}


@pytest.mark.no_cover
@settings(deadline=None, max_examples=150)
@given(removed=st.sets(tests, max_size=60), new=st.sets(tests, max_size=60))
def test_pairs_are_one_to_one_and_only_of_tests_on_one_side(removed: set[str], new: set[str]) -> None:
    pairs = renames(removed, new)
    assert pairs.keys() <= removed - new
    assert set(pairs.values()) <= new - removed
    assert len(set(pairs.values())) == len(pairs)
    assert len(pairs) == 0 or len(pairs) >= SMALL_CLASS
