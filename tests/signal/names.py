"""Names of tests as labs have them, and ways in which whole groups of them change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

OPERATORS = ("add", "sub", "mul", "div", "matmul", "conv2d", "softmax", "gather", "reduce", "pad", "tile", "cast")
QUALITIES = ("basic", "fused", "strided", "dynamic", "large", "empty", "broadcast", "quantized")
TYPES = ("float32", "float16", "int8", "uint8", "bfloat16")
AREAS = ("net", "poll", "futex", "timers", "mount", "memfd", "cgroup", "seccomp")
OTHER_AREAS = ("bpf", "cpufreq", "efivarfs", "exec", "firmware", "ftrace", "ipc", "kcmp")
CIPHERS = ("aes", "gcm", "chacha", "ccm", "sm4")
ACTIONS = ("send", "recv", "splice", "sendfile", "rekey", "bidir", "control", "shutdown", "poll", "peek")
FOLDERS = ("te", "relax", "arith", "ir", "runtime", "codegen")


def pytest_names(rng: Random, count: int, folder: str = "") -> list[str]:
    """Return names as pytest writes them: a path, a function, its parameters."""
    all_names = [
        f"tests/python/{folder or part}/test_{operator}.py::test_{operator}_{quality}[{kind}]"
        for part, operator, quality, kind in product(FOLDERS[:1] if folder else FOLDERS, OPERATORS, QUALITIES, TYPES)
    ]
    return sorted(rng.sample(all_names, count))


def kernel_names(rng: Random, count: int, area: str = "") -> list[str]:
    """Return names as in JUnit files of kernel labs: a dotted class, and a name of many words."""
    all_names = [
        f"kselftest.{place}.{place}_test::{place}_{cipher}_{number}_{action}"
        for place, cipher, number, action in product((area,) if area else AREAS, CIPHERS, (12, 13), ACTIONS)
    ]
    return sorted(rng.sample(all_names, count))


Renaming = Callable[[Random, int], list[tuple[str, str]]]
"""Makes so many names of a group, each before and after."""


def _each(names: Sequence[str], change: Callable[[str], str]) -> list[tuple[str, str]]:
    return [(name, change(name)) for name in names]


def _without_area(rng: Random, count: int, area: str) -> list[tuple[str, str]]:
    return _each(kernel_names(rng, count, area), lambda name: name.replace(f"::{area}_", "::"))


def _without_prefix(rng: Random, count: int, area: str) -> list[tuple[str, str]]:
    return _each(kernel_names(rng, count, area), lambda name: name.removeprefix("kselftest."))


def folder_moved(rng: Random, count: int) -> list[tuple[str, str]]:
    """Move a folder."""
    names = pytest_names(rng, count, "contrib/moved")
    return _each(names, lambda name: name.replace("contrib/moved", "extras/moved"))


def word_replaced(rng: Random, count: int) -> list[tuple[str, str]]:
    """Replace one word of all names."""
    names = [name.replace("::test_", "::test_relay_") for name in pytest_names(rng, count, "contrib/word")]
    return _each(names, lambda name: name.replace("::test_relay_", "::test_relax_"))


def word_left_out(rng: Random, count: int) -> list[tuple[str, str]]:
    """Remove the word that the class already contains."""
    return _without_area(rng, count, "tls")


def word_added(rng: Random, count: int) -> list[tuple[str, str]]:
    """Add that word again."""
    return [(new, old) for old, new in _without_area(rng, count, "mptcp")]


def words_left_out(rng: Random, count: int) -> list[tuple[str, str]]:
    """Remove the word that the class already contains, where each class has another: a few tests each."""
    names = [name for area in OTHER_AREAS for name in kernel_names(rng, max(1, count // len(OTHER_AREAS)), area)]
    return _each(names, lambda name: name.replace("::" + name.split(".")[1] + "_", "::"))


def words_reordered(rng: Random, count: int) -> list[tuple[str, str]]:
    """Move the last word of each name to its beginning."""

    def reordered(name: str) -> str:
        place, _, words = name.partition("::")
        *first_words, last = words.split("_")
        return f"{place}::{'_'.join([last, *first_words])}"

    return _each(kernel_names(rng, count, "order"), reordered)


def prefix_dropped(rng: Random, count: int) -> list[tuple[str, str]]:
    """Drop the prefix of the dotted class."""
    return _without_prefix(rng, count, "epoll")


def prefix_restored(rng: Random, count: int) -> list[tuple[str, str]]:
    """Add that prefix again."""
    return [(new, old) for old, new in _without_prefix(rng, count, "eventfd")]


def prefix_of_names_dropped(rng: Random, count: int) -> list[tuple[str, str]]:
    """Drop a dotted prefix of the names themselves; the class stays the same."""
    names = [name.replace("::", "::kernel.pidfd.") for name in kernel_names(rng, count, "pidfd")]
    return _each(names, lambda name: name.replace("::kernel.pidfd.", "::"))


def prefix_restored_and_word_added(rng: Random, count: int) -> list[tuple[str, str]]:
    """Add the prefix of the dotted class again, which contains a word of the rest, and one more word to each name."""
    names = [name.removeprefix("kselftest.fanotify.") for name in kernel_names(rng, count, "fanotify")]
    return _each(names, lambda name: "kselftest.fanotify." + name.replace("::", "::case_"))


def word_left_out_of_four(rng: Random, count: int) -> list[tuple[str, str]]:
    """Remove the word that the class already contains, in a class of four tests."""
    del count
    return _without_area(rng, 4, "vdso")


def small_class(rng: Random, count: int) -> list[tuple[str, str]]:
    """Give a class of four tests another name."""
    del count
    names = [name.replace("::", "::TestTile::") for name in pytest_names(rng, 4, "contrib/small")]
    return _each(names, lambda name: name.replace("::TestTile::", "::TestTiling::"))


def replaced_by_others(rng: Random, count: int) -> list[tuple[str, str]]:
    """Remove tests, and add others to their files: nothing was renamed."""
    return [(old, _another(rng, number, old)) for number, old in enumerate(pytest_names(rng, count, "contrib/other"))]


def other_values(rng: Random, count: int) -> list[tuple[str, str]]:
    """Give a parameter other values, which makes other tests."""
    numbers = rng.sample(range(100, 999), 2 * count)
    place = "tests/python/contrib/values/test_size.py::test_size"
    return [(f"{place}[{old}]", f"{place}[{new}]") for old, new in zip(numbers[::2], numbers[1::2], strict=True)]


def _another(rng: Random, number: int, old: str) -> str:
    words = rng.sample(("arena", "barrier", "cursor", "daemon", "epoch", "fence", "guard", "handle", "inlet"), 3)
    return f"{old.partition('::')[0]}::test_{'_'.join(words)}_{number}"


RENAMINGS: dict[str, Renaming] = {
    "a folder moved": folder_moved,
    "a word replaced": word_replaced,
    "a word left out": word_left_out,
    "a word added": word_added,
    "another word left out in each class": words_left_out,
    "words reordered": words_reordered,
    "a dotted prefix dropped": prefix_dropped,
    "a dotted prefix restored": prefix_restored,
    "a dotted prefix of names dropped": prefix_of_names_dropped,
    "a dotted prefix restored, and a word added": prefix_restored_and_word_added,
    "a word left out of the four tests of a class": word_left_out_of_four,
    "a class of four tests with another name": small_class,
}
DECOYS: dict[str, Renaming] = {
    "no rename: other tests in the same files": replaced_by_others,
    "no rename: other values of a parameter": other_values,
}
