"""A real PostgreSQL server of the tests' own, and fixtures that give each test a database.

The server has a folder of its own and a free port of 127.0.0.1, and ends with the tests, even if they are killed. Each
process of `--forks` has one. It does not wait for the disk: commits survive a crash of the server, which tests cause,
but not a power cut, which no test can cause.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.waiting import DEADLINE

PLACES = "/usr/lib/postgresql"
NOT_INSTALLED = (
    "these tests need a PostgreSQL server: install one (on Debian and Ubuntu: `apt-get install postgresql`); "
    f"initdb and postgres are searched in {PLACES}/*/bin and on PATH"
)
OWNER = "nightjar"
READY = b"database system is ready to accept connections"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    # Do not log errors of statements, but log that the server is ready.
    "log_min_messages": "log",
    "log_checkpoints": "off",
    # A crashed server waits this long for clients that connected and sent nothing; a minute by default.
    "authentication_timeout": "10s",
}
FIRST_WITH_STRATEGIES = 150_000
"""The version, as `PQserverVersion` gives it."""
PR_SET_PDEATHSIG = 1
LONGEST_ENTRY = 1 << 20
"""The most bytes of an entry of the log; the kernel's own limit is lower (`wmem_default` in socket(7))."""


def program(name: str) -> Path:
    """Find a program of the newest installed PostgreSQL."""
    folders = sorted(Path(PLACES).glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    found = shutil.which(name)
    if found is None:
        pytest.fail(NOT_INSTALLED, pytrace=False)
    return Path(found)


def unprivileged() -> dict[str, Any]:
    """Return the arguments that start a program as a user that PostgreSQL accepts: not as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {"user": 65534, "group": 65534, "extra_groups": []}


def end_with_parent() -> None:
    """Let the kernel stop this process when the tests' process ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class PostgresServer:
    """A server that can be stopped and started again, with its databases' URLs."""

    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.settings = SETTINGS | (settings or {})
        self._as = unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        subprocess.run(
            [program("initdb"), "-D", folder / "data", "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            **self._as,
        )
        # Hold the port while the server may be restarted; otherwise another program could get it in between.
        # Linux lets a program listen on a port that another has only bound, but does not pick such a port for a
        # program that asks for any.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port: int = self._held.getsockname()[1]

    def start(self) -> None:
        """Start the server and wait until it logs that it is ready."""
        settings = [f"--{name}={value}" for name, value in self.settings.items()]
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder)]
        # A socket delivers each write of a log entry as one message; in a pipe, long entries of several processes mix.
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [program("postgres"), "-D", self.folder / "data", *place, *settings],
                stdout=its.fileno(),
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                preexec_fn=end_with_parent,
                **self._as,
            )
        self._output = _Output(ours)
        self._output.wait_for(READY)

    def log(self) -> str:
        """Return the server's log since its start."""
        end = f"read up to here: {next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DO $$ BEGIN RAISE LOG '{end}'; END $$".encode())
        return self._output.wait_for(f"LOG:  {end}\n".encode())

    @property
    def pid(self) -> int:
        """The main process of the running server; each connection has a child process."""
        assert self._process is not None
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT is like `pg_ctl stop -m fast`, SIGQUIT like `-m immediate`, which is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(DEADLINE)
            self._process = None

    def end(self) -> None:
        """Stop the server for good."""
        self.stop(signal.SIGQUIT)
        self._held.close()

    def restart_immediately(self) -> None:
        """Crash the server and restart it: all connections break, and committed data remains."""
        self.stop(signal.SIGQUIT)
        self.start()

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{OWNER}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            # Takes half of the default's CPU time: https://www.postgresql.org/docs/current/sql-createdatabase.html
            strategy = "STRATEGY FILE_COPY" if connection.info.server_version >= FIRST_WITH_STRATEGIES else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {strategy}".encode())
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, even if clients are connected to it."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)".encode())


class _Output:
    """The output of a server, which a thread reads all the time, because the server would block otherwise."""

    def __init__(self, output: socket.socket) -> None:
        self._said = bytearray()
        self._ended = False
        self._more = threading.Condition()
        threading.Thread(target=self._read, args=[output], daemon=True).start()

    def _read(self, output: socket.socket) -> None:
        with output:
            while more := output.recv(LONGEST_ENTRY):
                with self._more:
                    self._said += more
                    self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    def wait_for(self, text: bytes) -> str:
        """Wait until the output contains a text; return the whole output."""
        with self._more:
            self._more.wait_for(lambda: self._ended or text in self._said, DEADLINE)
            if text not in self._said:
                pytest.fail(f"PostgreSQL did not say {text.decode()!r}:\n{self._said.decode()}")
            return self._said.decode()


@contextlib.contextmanager
def running_server(settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """Run another server, with additional settings."""
    folder = Path(tempfile.mkdtemp(prefix="nightjar-pg-"))
    try:
        server = PostgresServer(folder, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Return the session's server; a test that restarts it leaves it running."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the URL of an empty PostgreSQL database."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Return the URL of a SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database, of each kind in turn."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(name)
    return url
