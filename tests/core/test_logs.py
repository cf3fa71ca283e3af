"""The form of a log line, and what it must never contain."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from bot.core import logs

PASSWORD = "hunter2-hunter2"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx1\nabcdefghijklmnop==\n-----END RSA PRIVATE KEY-----\n"
SECRETS = (PASSWORD, PEM, 'has "quotes" and \\ in it')


class Stream(io.StringIO):
    """A stream whose lines are read back as JSON."""

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def restored() -> Iterator[None]:
    """Restore what `configure` changes in the process."""
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    yield
    root.handlers[:], logging.raiseExceptions = handlers, raising
    root.setLevel(level)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def stream(restored: None) -> Stream:
    output = Stream()
    logs.configure(SECRETS, stream=output, pretty=False)
    return output


def test_a_line_is_json_with_time_level_and_event(stream: Stream) -> None:
    structlog.get_logger("bot.engine").info("job done", attempts=2)
    [line] = stream.lines()
    assert line["event"] == "job done"
    assert line["level"] == "info"
    assert line["logger"] == "bot.engine"
    assert line["attempts"] == 2
    assert line["time"].endswith("Z")


def test_every_line_of_a_job_has_the_delivery_even_those_of_libraries(stream: Stream) -> None:
    with structlog.contextvars.bound_contextvars(delivery="guid-1", handler="rerun"):
        structlog.get_logger().info("ours")
        logging.getLogger("some.library").warning("theirs: %s", "detail")
    structlog.get_logger().info("outside")
    own_line, library_line, outside = stream.lines()
    assert (own_line["delivery"], own_line["handler"]) == ("guid-1", "rerun")
    assert (library_line["delivery"], library_line["event"], library_line["level"]) == (
        "guid-1",
        "theirs: detail",
        "warning",
    )
    assert "delivery" not in outside


def test_a_traceback_is_one_field_of_one_line(stream: Stream) -> None:
    try:
        int("no number")
    except ValueError:
        structlog.get_logger().exception("it failed")
    [line] = stream.lines()
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert "invalid literal for int()" in line["exception"]


SHAPES = [
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghs_12345_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl",
    "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOjEyMzQ1fQ.c2lnbmF0dXJl",
    "__Host-nightjar-session=583231.c0ffee0123456789",
    "Bearer abcdefgh.ijklmnop",
    "Basic b2N0b2NhdDpodW50ZXIyLWh1bnRlcjI=",
    "postgresql://nightjar:s3cr3t-pass@db.example.org/nightjar",
    "https://hooks.slack.com/services/T000/B000/XXXXXXXXXXXX",
    "https://discord.com/api/webhooks/123/abc-DEF_ghi",
    "AKIAIOSFODNN7EXAMPLE",
    PEM,
    PEM.replace("\n", "\\n"),
    PEM[:60],
    *SECRETS,
    repr(PEM),
]
WITH_SECRETS = [
    "16C7e42F",
    "eyJpc3M",
    "abcdefgh",
    "b2N0b2Nh",
    "s3cr3t",
    "XXXXX",
    "abc-DEF",
    "AKIA",
    "MIIEow",
    PASSWORD,
    "quotes",
    "11ABCDEFG",
    "c0ffee",
]


@pytest.mark.parametrize("secret", SHAPES)
def test_a_secret_is_nowhere_in_a_line(stream: Stream, secret: str) -> None:
    log = structlog.get_logger()
    log.info("in the event " + secret)  # noqa: G003 (what a careless caller does)
    log.info("as a field", value=secret, nested={"list": [secret, {secret: 1}]}, raw=secret.encode())
    log.info("as an object", error=ValueError(secret), other=Holder(secret))
    logging.getLogger("library").warning("as an argument: %s %r", secret, {"key": secret})
    try:
        raise RuntimeError(f"in an exception: {secret}") from ValueError(secret)
    except RuntimeError:
        log.exception("failed")
    with structlog.contextvars.bound_contextvars(delivery=secret):
        log.warning("in the context")
    assert len(stream.lines()) == 6
    for with_secret in WITH_SECRETS:
        assert with_secret not in stream.getvalue()
    assert stream.getvalue().count("[redacted]") >= 10


class Holder:
    """An object whose repr contains a secret."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Holder({self.secret!r})"


def test_text_that_is_not_secret_stays(stream: Stream) -> None:
    text = (
        "octocat/compiler#42 at 6dcb09b5b57875f334f61aebed695e2e4193db5e: http://127.0.0.1:8080/healthz, token count 3"
    )
    structlog.get_logger().info(text)
    assert stream.lines()[0]["event"] == text


def test_text_from_outside_cannot_forge_a_line(stream: Stream) -> None:
    structlog.get_logger().info("comment", text='x\n{"level":"error","event":"forged"}\r\u2028\x1b[31m')
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_for_people_control_characters_are_shown_and_have_no_effect(restored: None) -> None:
    output = io.StringIO()
    logs.configure(stream=output, pretty=True)
    structlog.get_logger().info("comment", text="x\nforged line\x1b[7m")
    assert len(output.getvalue().splitlines()) == 1
    assert "\x1b[7m" not in output.getvalue()
    assert "forged line" in output.getvalue()


def test_for_people_a_line_begins_with_its_time_and_has_color_only_if_wanted(
    restored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output = io.StringIO()
    logs.configure(stream=output, pretty=True)
    structlog.get_logger().info("serving", port=8080)
    assert output.getvalue().startswith("20")
    assert output.getvalue().endswith("port=8080\n")
    assert "\x1b" not in output.getvalue()


def test_an_object_whose_repr_fails_does_not_lose_the_line(stream: Stream) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    structlog.get_logger().info("logged", value=Broken())
    assert stream.lines()[0]["event"] == "logged"


def test_a_stream_that_fails_stops_nobody(stream: Stream) -> None:
    stream.close()
    structlog.get_logger("bot.engine").error("ours")
    logging.getLogger("some.library").error("theirs")


def test_a_huge_text_is_truncated(stream: Stream) -> None:
    structlog.get_logger().info("x" * 1_000_000)
    assert len(stream.getvalue()) < 5_000


def test_warnings_and_errors_of_threads_are_logged(stream: Stream) -> None:
    def fail() -> None:
        raise RuntimeError(PASSWORD)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(f"careful: {PASSWORD}", UserWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "uncaught exception" in stream.getvalue()
    assert "careful: [redacted]" in stream.getvalue()
    assert PASSWORD not in stream.getvalue()
