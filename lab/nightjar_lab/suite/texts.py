"""Every sentence that people who run suites read."""

from __future__ import annotations

# Discovery
EXITS = "its module calls sys.exit({status})"
NEEDS_MODULE = "it needs the Python module {module}, which is not installed here"
NOT_ONE = "{value} is not a {kind} and returns none, but {found}"
UNKNOWN_NAME = "there is no {kind} named {name}; available: {names}. To load one by its module, write MODULE:NAME"
NONE = "none"
NO_BACKEND = "no flow that can be loaded has a backend {backends}; there are: {known}"

# Comparing
NO_NUMPY = "NumPy is needed to compare outputs ({error}); install it with: pip install numpy"
NO_SEQUENCE = "run returned {found} instead of a list of outputs"
OUTPUT_COUNT = "there are {found} outputs, expected {expected}"
SEQUENCE_LENGTH = "Output {number} has {found} elements, expected {expected}"
OUTPUT_MISSING = "is {found}, expected {expected}"
OUTPUT_SHAPE = "has shape {found}, expected {expected}"
OUTPUT_DTYPE = "has dtype {found}, expected {expected}"
OUTPUT_DIFFERS = "differs in {count} of {total} elements"
OUTPUT_FAR = (
    "differs in {count} of {total} elements, by {largest:.6g} at most; the first is at {place}: {found}, expected "
    "{expected} (tolerance {absolute:g} + {relative:g} * |expected|)"
)
MORE_OUTPUTS = "; other outputs that differ: {count}"

# Running
OUTPUT_CUT = "\n[{count} bytes are left out]\n"
ENDED = "the process ended with status {status}"
SIGNAL = "the process was ended by {name}"
KILLED = "the process was ended by {name}; perhaps the system ran out of memory"
TOO_SLOW = "it did not answer in time"
TOO_LARGE = "the process used more than {limit} MB of memory"
TIMED_OUT = "the case took longer than {seconds:g} s"
CLOSED = "the process closed its connection to the runner"
AT_STAGE = "at stage {stage}: {what}"
BEFORE = "none"
NO_START = """\
could not start a worker: {how}
{output}"""
CHANGED = "the flow or the suite changed during the run; start over with --fresh"
TEARDOWN = "a worker failed after its cases: {how}; their results are stored"
TEARDOWN_HANGS = "a worker did not stop after its cases and was killed; their results are stored"
ENDED_IDLE = "a worker ended between two cases: {how}"

# Files
CANNOT_WRITE = "{path} cannot be written: {reason}"
CANNOT_READ = "{path} cannot be read: {reason}"
NO_FILE = "{path} is not a regular file; name another file"
IN_USE = "another run writes {path}; wait until it ends, or name another file with --jsonl"
NOT_OURS = "{path} is not a JSONL file of `nightjar-lab suite run`; name another file with --jsonl"
OTHER_RUN = (
    "{path} has results of another {what}: {stored}, not {now}; start over with --fresh, or name another file with "
    "--jsonl"
)
UNKNOWN_COMMIT = "an unknown one"
NOT_CSV = "it is not CSV ({reason})"
NO_COLUMNS = "it has no column {columns}"
CUT_OFF = "the row that ends at line {line} is cut off"

# Summary
SUMMARY_TITLE = "# Backend suite {suite} on {flow}"
SUMMARY_MISSING = "No result for {cases}: the run was stopped before."
SUMMARY_CRASHES = "The process crashed in {cases}."
SUMMARY_TIMEOUTS = "The limit of time stopped {cases}."
SUMMARY_MEMORY = "The limit of memory stopped {cases}."
SUMMARY_DELEGATED = "- **Delegated**: {count}/{total} of the passing cases have operators that the backend runs"
SUMMARY_STAGES = "Failures by stage"
SUMMARY_FAILED = "Failed tests"
SUMMARY_MATRIX = "# Backend suites"
SUMMARY_NOT_RUN = "Not run"
SUMMARY_MORE = "{count} more are in the CSV report."

# Selection
FLOW_HELP = "A flow of `suite list`, or MODULE:NAME. May be repeated."
BACKEND_HELP = "All flows of a backend. May be repeated."
SUITE_HELP = "A suite of `suite list`, or MODULE:NAME. May be repeated."

# Commands
UNAVAILABLE = "not available: {reason}"
CASE = "case"
NOTHING_LISTED = (
    "no installed package has flows or suites; to get some, run `pip install './lab[onnx]'` in a checkout of Nightjar"
)
PROGRESS = "{done}/{total}  {failed} failed  {rate:.1f} cases/s  {left} left"
NO_CASES = "no case of {suite} has a name in which --filter finds anything"
NOTHING_AVAILABLE = "none of the selected flows and suites can run here"
NO_PAIR = "no selected suite has models that a selected flow takes"
INVALID_REGEX = "{value} is no regular expression: {reason}. For any text, write .*"
ONE_RUN = "--{option} is for one flow and one suite: name both, with --flow and --suite"
NO_SUITE_COMMAND = (
    "--matrix needs a command such as: nightjar-lab init --matrix -- nightjar-lab suite run --flow tvm-llvm "
    "--suite onnx-node"
)
NOT_IN_MATRIX = "{option} cannot be in the command of --matrix: the workflow names the files, the commit and the place"
MATRIX_ROW = "{suite} on {flow}"
NOT_RUN = "{name} is not available: {reason}"
SEVERAL_NOT_RUN = "{name} are not available: {reason}"
FAILED_RUN = "{run}: {reason}"
CONTINUES = "{done} of {total} cases have results in {path}; --fresh starts over"
RAN = "{cases} of {suite} on {flow}:"
STORED = "Results: {path}"
STOPPED = "no result yet for {cases}; repeat the command to continue"
MIXED = "the files are of different versions or commits; make a report of each"
ONE_REPORT = "--report is for one flow and one suite; files of several have only a --summary"
NO_SUCH_SHARD = "--shard {shard}: there is no such shard; 1/4 is the first of four"
NO_SUCH_CASE = "{suite} has no case {case}"
REPRO_COMMAND = "Command:   {command}"
OUTPUT_ERROR = "error max {largest:.6g}, MAE {mean:.6g}, SNR {snr:.3f} dB"
TRACEBACK = "Traceback:"
WORKER_OUTPUT = "Output of the process:"
NEW_FAILURES = "New failures"
FIXED = "Fixed"
STAGE_CHANGED = "Failing at another stage"
NEWLY_SKIPPED = "Newly skipped"
NEW_TESTS = "New tests"
REMOVED = "Removed tests"
STILL_FAILING = "Still failing: {count}"
WHAT_SHA = "name the commit that was tested, which an upload needs"
