"""Run the lab's command for one suite: under a supervisor, with a time limit, and a log file of limited size."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nightjar_lab.supervisor import NEW_GROUP

MOST_LOG = 32 << 20
"""The most bytes of a log; the rest of the output is read and dropped."""
MOST_TAIL = 4096
"""The most bytes of the output's end that stay in memory."""
CHUNK = 1 << 16
ALLOWED = frozenset(
    """
    PATH HOME USER LOGNAME SHELL HOSTNAME LANG LANGUAGE TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR TMPDIR
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME SOURCE_DATE_EPOCH
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    CC CXX CPP AR LD AS NM FC NVCC CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS CPATH LIBRARY_PATH LD_LIBRARY_PATH
    DYLD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH CMAKE_GENERATOR CMAKE_BUILD_PARALLEL_LEVEL
    CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CTEST_PARALLEL_LEVEL CCACHE_DIR
    PYTHONPATH PYTHONHOME PYTHONHASHSEED PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONNOUSERSITE PYTHONSAFEPATH
    PYTHONWARNINGS PYTHONFAULTHANDLER PYTHONUTF8 PYTHONIOENCODING VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV
    JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME RUSTFLAGS
    ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK ANDROID_NDK_HOME ANDROID_NDK_ROOT ANDROID_SERIAL ANDROID_ADB_SERVER_PORT
    NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES
    ROCM_PATH ROCM_HOME HIP_PATH ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL VULKAN_SDK
    HEXAGON_SDK_ROOT HEXAGON_SDK_PATH HEXAGON_TOOLCHAIN HEXAGON_TOOLS_ROOT QNN_SDK_ROOT SNPE_ROOT ADSP_LIBRARY_PATH
    TVM_HOME TVM_LIBRARY_PATH TVM_NUM_THREADS TVM_TEST_TARGETS TVM_TRACKER_HOST TVM_TRACKER_PORT ZEPHYR_BASE
    ZEPHYR_SDK_INSTALL_DIR ZEPHYR_TOOLCHAIN_VARIANT SKIP_SLOW_TESTS NIGHTJAR_LEVEL
    NIGHTJAR_URL NIGHTJAR_LAB NIGHTJAR_REPOSITORY NIGHTJAR_TARGET NIGHTJAR_TEST_TARGETS NIGHTJAR_TEST_DISABLE_CACHE
    TVM_TEST_DISABLE_CACHE
    CI GITHUB_ACTIONS GITHUB_SERVER_URL GITHUB_REPOSITORY GITHUB_SHA GITHUB_REF GITHUB_REF_NAME GITHUB_EVENT_NAME
    GITHUB_WORKFLOW GITHUB_JOB GITHUB_RUN_ID GITHUB_RUN_NUMBER GITHUB_RUN_ATTEMPT GITHUB_WORKSPACE RUNNER_NAME RUNNER_OS
    RUNNER_ARCH BUILDKITE BUILDKITE_BUILD_NUMBER BUILDKITE_BUILD_URL BUILDKITE_COMMIT BUILDKITE_JOB_ID
    BUILDKITE_RETRY_COUNT GITLAB_CI CI_JOB_ID CI_JOB_NAME CI_JOB_URL CI_PIPELINE_ID CI_COMMIT_SHA JENKINS_URL JOB_NAME
    BUILD_NUMBER BUILD_URL NODE_NAME CIRCLECI CIRCLE_BUILD_NUM CIRCLE_BUILD_URL CIRCLE_SHA1 TF_BUILD BUILD_BUILDID
    """.split()  # noqa: SIM905
)
"""The variables that the command gets, and no others unless the lab names them: it may run a stranger's code.

Only names that hold no secret in any program: no credentials, no sockets of the user's services (`SSH_AUTH_SOCK`,
`DOCKER_HOST`), and no files with which a step of a CI service changes later steps (`GITHUB_ENV`).
"""
ALLOWED_PREFIXES = ("LC_", "PYTEST_", "CUDA_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "HSA_")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
"""Variables that the command gets if they have no credentials."""
PASSED = "NIGHTJAR_PASS_VARIABLES"
"""The variable that names further variables for the command, between blanks."""
WAKE_SECONDS = 0.5 if sys.platform == "win32" else None
"""Seconds after which a wait is interrupted, since Windows runs no handler of a signal before it ends."""
KILL_SECONDS = 10.0
DRAIN_SECONDS = 2.0
"""Seconds to wait for the last output: a process that has left the group may hold the pipe open forever."""
PR_SET_DUMPABLE = 4
SUPERVISOR = Path(__file__).with_name("supervisor.py")


def clean_environment(variables: Mapping[str, str], passed: Collection[str] | None = None) -> dict[str, str]:
    """Return the environment of a command: `variables`, and those of our own environment that it may have.

    It may have the `ALLOWED` ones, and those that the lab names in `passed`, or, if that is None, in the variable
    `PASSED`.
    """
    names = os.environ.get(PASSED, "").split() if passed is None else passed
    allowed = {name: value for name, value in os.environ.items() if name in names or _is_allowed(name, value)}
    # If the command runs `nightjar-lab` itself, this passes the same variables on.
    chain = {PASSED: " ".join(names)} if names else {}
    return {**allowed, **chain, **variables}


def _is_allowed(name: str, value: str) -> bool:
    if name in PROXIES:
        return "@" not in value
    return name in ALLOWED or name.startswith(ALLOWED_PREFIXES)


def hide_secrets() -> None:
    """Keep other processes of this user, such as the command, from reading our environment and memory in /proc.

    https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class StreamedCommand:
    """A running command that writes to our own output. Signal handlers may call `interrupt` and `kill`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        hide_secrets()
        self._process = subprocess.Popen(  # noqa: S603  # the lab's own command
            [sys.executable, "-I", str(SUPERVISOR), *command],
            env=dict(environment),
            stdin=subprocess.PIPE,
            creationflags=NEW_GROUP,
        )

    def wait(self) -> int:
        """Wait for the command and return its exit status: 128 plus the number of a signal."""
        status = None
        while status is None:
            with suppress(subprocess.TimeoutExpired):
                status = self._process.wait(WAKE_SECONDS)
        return 128 - status if status < 0 else status

    def interrupt(self) -> None:
        """Ask the command to end, as Ctrl-C does."""
        if self._process.poll() is None:
            if sys.platform == "win32":
                self._process.send_signal(signal.CTRL_BREAK_EVENT)
            else:
                self._process.terminate()

    def kill(self) -> None:
        """Kill the command and the processes that it has started."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class SupervisedCommand:
    """A running command whose output we read. Any thread may call `kill` and `stop`, any number of times."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        hide_secrets()
        self._process = subprocess.Popen(  # noqa: S603  # the lab's own command
            [sys.executable, "-I", str(SUPERVISOR), *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.tail = b""
        """The end of the output. It is not read from a log, which the command may replace by any other file."""
        self._lock = threading.Lock()
        self._reading = threading.Thread(target=self._consume, daemon=True)
        self._reading.start()

    def wait(self, seconds: float, stopped: threading.Event) -> int | None:
        """Wait for the exit status; after `seconds`, or when `stopped` is set, kill the command and return None."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            if stopped.is_set() or time.monotonic() >= deadline:
                self.stop()
                return None
            stopped.wait(min(0.2, max(0.0, deadline - time.monotonic())))
        self.kill()
        self._reading.join(DRAIN_SECONDS)
        return self._process.returncode

    def kill(self) -> None:
        """Kill the whole group, and do not wait."""
        with self._lock:
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()

    def stop(self) -> None:
        """Kill the whole group and wait until it has ended."""
        self.kill()
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reading.join(DRAIN_SECONDS)

    def _consume(self) -> None:
        """Read the output to its end, in a thread of its own."""
        for _ in self._chunks():
            pass

    def _chunks(self) -> Iterator[bytes]:
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            while chunk := os.read(pipe.fileno(), CHUNK):
                self.tail = (self.tail + chunk)[-MOST_TAIL:]
                yield chunk


class RunningCommand(SupervisedCommand):
    """A command of the lab, which writes to a new log file."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        super().__init__(command, folder, environment)

    def _consume(self) -> None:
        """Copy the output to a new file. A full disk ends the file, not the command."""
        chunks, written = self._chunks(), 0
        # An earlier command may have made a link or a pipe of this name: neither is opened.
        with suppress(OSError), self._log.open("xb", buffering=0) as file:
            for chunk in chunks:
                written += file.write(chunk[: max(0, MOST_LOG - written)]) or 0
        for _ in chunks:
            pass
