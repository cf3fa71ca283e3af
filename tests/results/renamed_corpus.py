"""A generated corpus of test IDs as a device lab's runner reports them, renamed by rules with known pairs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from nightjar_formats.model import Status

AREAS = ("kernel", "drivers", "net", "bluetooth", "fs", "crypto", "arch", "libc", "logging", "settings")
# fmt: off
TOPICS = (
    "poll", "sched", "mutex", "timer", "queue", "pipe", "heap", "event", "stack", "thread", "gpio", "spi", "uart",
    "flash", "sensor", "socket", "http", "dns", "tcp", "mesh", "gatt", "audio", "vfs", "nvs", "cipher", "hash", "fpu",
    "irq", "mem", "string", "printk", "shell",
)
ACTIONS = (
    "init", "wait", "send", "receive", "cancel", "timeout", "abort", "lock", "unlock", "read", "write", "open", "close",
    "reset", "config",
)
OBJECTS = (
    "multiple", "single", "empty", "full", "isr", "user", "null", "invalid", "max", "min", "nested", "order", "stress",
    "basic", "recursive", "late",
)
# fmt: on
SUITES = ("api", "1cpu", "internal", "extended")


@dataclass(frozen=True)
class Boundary:
    """The same tests before and after a change of the naming rule; `truth` has those that were renamed."""

    old: dict[str, Status]
    new: dict[str, Status]
    truth: dict[str, str]


Parts = tuple[str, str, str, str]
"""The area, topic, suite and function of a test."""
RULES: dict[str, tuple[Callable[[Parts], str], Callable[[Parts], str]]] = {
    # `kernel.poll.kernel.poll.poll_api.test_poll_wait` loses its repeated words.
    "left out": (
        lambda p: f"{p[0]}.{p[1]}.{p[0]}.{p[1]}.{p[2]}.test_{p[3]}",
        lambda p: f"{p[0]}.{p[1]}.{p[2]}.test_{p[3]}",
    ),
    "added": (lambda p: f"{p[0]}.{p[1]}.{p[3]}", lambda p: f"{p[0]}.{p[1]}.{p[2]}.{p[3]}"),
    "reordered": (lambda p: f"{p[0]}.{p[1]}.{p[2]}.{p[3]}", lambda p: f"{p[2]}.{p[3]}.{p[0]}.{p[1]}"),
    "prefix dropped": (lambda p: f"{p[0]}.{p[1]}.{p[2]}.{p[3]}", lambda p: f"{p[2]}.{p[3]}"),
    "prefix restored": (lambda p: f"{p[2]}.{p[3]}", lambda p: f"{p[0]}.{p[1]}.{p[2]}.{p[3]}"),
    "prefix restored, words added": (
        lambda p: f"{p[2]}.{p[3]}",
        lambda p: f"{p[0]}.{p[1]}.{p[2]}.test_{p[3]}_case",
    ),
    "prefix dropped, words left out": (
        lambda p: f"{p[0]}.{p[1]}.{p[2]}.test_{p[3]}_case",
        lambda p: f"{p[2]}.{p[3]}",
    ),
    "a word left out": (lambda p: f"{p[0]}.{p[1]}.{p[2]}.test_{p[3]}", lambda p: f"{p[0]}.{p[1]}.{p[2]}.{p[3]}"),
}


SCENARIOS = ("", "minimallibc", "newlib.nano", "linker_generator", "userspace", "tickless.no_mmu.pinonly")


def suite_in_every_name(seed: int, *, topics: int = 40) -> Boundary:
    """Create the tests of scenarios that run the same suites, before and after a runner writes the suite's name too.

    An ID is the first two parts of the name, and the name, as Zephyr's runner writes class and name:
    `kernel.poll::kernel.poll.userspace.wait` becomes `kernel.poll::kernel.poll.userspace.poll_api.wait`.
    """
    chance = random.Random(seed)
    old_tests, new_tests, truth = dict[str, Status](), dict[str, Status](), dict[str, str]()
    for area, topic in chance.sample([(area, topic) for area in AREAS for topic in TOPICS], topics):
        scenarios = chance.sample(SCENARIOS, chance.choice((1, 2, 4, 6)))
        tests = {f"{chance.choice(ACTIONS)}_{chance.choice(OBJECTS)}" for _ in range(chance.choice((1, 2, 4, 9, 30)))}
        for scenario in scenarios:
            for function in sorted(tests):
                begin = ".".join(filter(None, (area, topic, scenario)))
                old = f"{area}.{topic}::{begin}.{function}"
                new = f"{area}.{topic}::{begin}.{topic}_{SUITES[len(function) % 2]}.{function}"
                old_tests[old] = Status.FAILED if chance.random() < 0.05 else Status.PASSED
                new_tests[new] = Status.FAILED if chance.random() < 0.01 else old_tests[old]
                truth[old] = new
    return Boundary(old_tests, new_tests, truth)


def boundary(seed: int, rule: str, *, topics: int = 40, share: float = 1.0, vanishing: float = 0.02) -> Boundary:
    """Create tests of some topics and rename a `share` of the topics; a share `vanishing` disappears or appears."""
    chance = random.Random(f"{seed} {rule}")
    old_name, new_name = RULES[rule]
    old_tests, new_tests, truth = dict[str, Status](), dict[str, Status](), dict[str, str]()
    pairs = chance.sample([(area, topic) for area in AREAS for topic in TOPICS], topics)
    for area, topic in pairs:
        renamed = chance.random() < share
        for suite in chance.sample(SUITES, chance.randint(1, 3)):
            for _ in range(chance.choice((1, 2, 3, 4, 6, 9, 15, 30))):
                function = f"{topic}_{chance.choice(ACTIONS)}_{chance.choice(OBJECTS)}"
                if chance.random() < 0.3:
                    function = f"{chance.choice(ACTIONS)}_{chance.choice(OBJECTS)}"
                parts = area, topic, f"{topic}_{suite}", function
                old, new = old_name(parts), new_name(parts) if renamed else old_name(parts)
                if old in old_tests or new in new_tests:
                    continue
                status = Status.FAILED if chance.random() < 0.05 else Status.PASSED
                in_old, in_new = chance.random() >= vanishing, chance.random() >= vanishing
                if in_old:
                    old_tests[old] = status
                if in_new:
                    other_status = Status.PASSED if status is Status.FAILED else Status.FAILED
                    new_tests[new] = other_status if chance.random() < 0.01 else status
                if in_old and in_new and old != new:
                    truth[old] = new
    return Boundary(old_tests, new_tests, truth)
