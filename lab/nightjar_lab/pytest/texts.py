"""Every sentence about targets, parameters and cached fixtures that people read."""

from __future__ import annotations

# Why a test is skipped
NOT_ENABLED = 'target "{name}" is not compiled in: {probe}'
NO_DEVICE = 'target "{name}" has no device: {probe}'
SAYS_FALSE = "its declaration says so"
RETURNED_FALSE = "{function}() returned false"
PROBE_FAILED = "{function}() {fault}"
PROBE_RAISED = "raised {kind}: {error}"
PROBE_SKIPPED = "skipped: {reason}"
PROBE_HANGS = "did not return within {seconds:g} s"
PROBE_CRASHED = "crashed ({how})"
PROBE_UNANSWERED = "was called by another worker, which did not answer"
PARENT_CANNOT = 'target "{name}" needs "{parent}"; {reason}'
UNKNOWN_TARGET = (
    'target "{name}" of {variable} is not declared in {where}; available: {names}. Declare it there, or correct the '
    "variable."
)
OTHER_TARGETS = 'target "{name}" is not among the targets of {variable}'
OTHER_TARGETS_INI = "requires() also runs tests on targets that NIGHTJAR_TEST_TARGETS does not name"
EXCLUDED = 'target "{name}" is excluded by exclude_targets'
ALL_EXCLUDED = "every target is excluded by exclude_targets: {names}"
KNOWN_FAILING = 'Known failing test for target "{kind}"'

# Warnings and errors about targets
FALLBACK = "no target of {names} can run here, so tests run on {fallback}. {reasons}"
NO_FALLBACK = (
    "no target can run here, and {where} declares no other one that could. {reasons} Enable one of them, connect a "
    "device, or declare a target that runs everywhere."
)
NONE_DECLARED = (
    "{where}: the test needs all configured targets, but there are none. Declare nightjar_targets = [Target(...)] in "
    "conftest.py, or set NIGHTJAR_TEST_TARGETS."
)
DECLARATION = (
    "{where}: nightjar_targets must be a list of one or more targets, but is the {kind} {value!r}. Write: "
    'nightjar_targets = [Target("llvm"), Target("cuda")]'
)
DECLARED_TWICE = "{where}: nightjar_targets has several targets with one name: {names}. Give each its own name."
UNKNOWN_PARENT = (
    '{where}: the target "{name}" has the parent "{parent}", which is not declared before it. Declare the parent '
    "first; with parametrized=False if no test runs on it."
)
TARGET_NAME = '{where}: the name of a target must be a string, not {name!r}. Write: Target("llvm")'
TARGET_PROBE = '{where}: {key} of the target "{name}" must be true, false or a function, not {value!r}'
TARGET_DEVICE = '{where}: device of the target "{name}" must be a function that returns a device, not {value!r}'
TARGET_LIST = '{where}: {key} of the target "{name}" must be a list, not {value!r}'
NOT_NAMES = "{where}: {decorator} takes each target name as an argument of its own, not {value!r}. Write: {example}"
SEVERAL_IN_ONE = "{where}: {decorator} has several targets in one string, {value!r}. Write: {example}"
NO_NAMES = "{where}: {decorator} needs at least one name. Write: {example}"
UNDECLARED = (
    '{where}: {decorator} names the target "{name}", which {declared} does not declare; available: {names}. Correct '
    "the name, or declare it."
)

# Parameters and cached fixtures
BY_DICT = (
    "{where}: parameter takes values or by_dict, not both. Write: parameter(1, 2) or parameter(by_dict={{'one': 1}})"
)
NO_VALUES = "{where}: {function} needs at least one value. Write: {function}({example})"
OTHER_LENGTHS = "{where}: parameters got sets of {lengths} values. Each set needs one value for each name on the left."
OTHER_IDS = "{where}: {function} got {ids} ids for {values} values. Give one id for each value."
NOT_CACHED = (
    "{where}: the fixture {name} yields or awaits, so its value cannot be cached. "
    "Return the value, or leave out cache_return_value."
)
NO_COPY = (
    "the fixture {name} returned a {kind}, which cannot be cached because it cannot be copied. Give {kind} a "
    "__deepcopy__ or __reduce__ method, return plain data, or leave out cache_return_value."
)
NO_KEY = (
    "the argument {argument} of the fixture {name} is a {kind}, which can be neither hashed nor pickled, so the "
    "fixture cannot be cached. Leave out cache_return_value."
)
