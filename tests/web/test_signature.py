"""The signature matrix: what `verify` accepts, and everything that it must not."""

import hashlib
import hmac
import json

import pytest

from bot.web.webhook import parse, verify

SECRET = b"a secret that is long enough"
OTHER = b"another secret, of the rotation"
BODY = b'{"zen":"Keep it logically awesome."}'


def signed(secret: bytes, body: bytes = BODY, algorithm: str = "sha256") -> str:
    return f"{algorithm}={hmac.new(secret, body, algorithm).hexdigest()}"


def test_githubs_own_example_is_accepted() -> None:
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
    expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert verify(b"Hello, World!", expected, [b"It's a Secret to Everybody"])


@pytest.mark.parametrize("secrets", [[SECRET], [SECRET, OTHER], [OTHER, SECRET], [b"", SECRET]])
def test_any_of_the_configured_secrets_matches(secrets: list[bytes]) -> None:
    assert verify(BODY, signed(SECRET), secrets)


def test_a_body_that_is_not_text_is_signed_as_bytes() -> None:
    body = bytes(range(256))
    assert verify(body, signed(SECRET, body), [SECRET])


GOOD = signed(SECRET)
DIGEST = GOOD.removeprefix("sha256=")


@pytest.mark.parametrize(
    ("header", "secrets"),
    [
        pytest.param(None, [SECRET], id="missing"),
        pytest.param("", [SECRET], id="empty header"),
        pytest.param(signed(b"wrong secret of some length"), [SECRET], id="wrong secret"),
        pytest.param(signed(SECRET, BODY + b" "), [SECRET], id="other body"),
        pytest.param(signed(SECRET, algorithm="sha1"), [SECRET], id="SHA-1"),
        pytest.param("sha1=" + DIGEST, [SECRET], id="SHA-256 under SHA-1's name"),
        pytest.param("sha256=" + signed(SECRET, algorithm="sha1")[5:], [SECRET], id="SHA-1 under SHA-256's name"),
        pytest.param("sha512=" + hmac.new(SECRET, BODY, hashlib.sha512).hexdigest(), [SECRET], id="SHA-512"),
        pytest.param(DIGEST, [SECRET], id="no prefix"),
        pytest.param("SHA256=" + DIGEST, [SECRET], id="prefix in capitals"),
        pytest.param("sha256:" + DIGEST, [SECRET], id="another separator"),
        pytest.param("sha256=" + DIGEST.upper(), [SECRET], id="digest in capitals"),
        pytest.param(GOOD[:-1], [SECRET], id="too short"),
        pytest.param(GOOD + "0", [SECRET], id="too long"),
        pytest.param(GOOD + "\n", [SECRET], id="a line end after the signature"),
        pytest.param(" " + GOOD, [SECRET], id="a space before the signature"),
        pytest.param(f"{GOOD}, {GOOD}", [SECRET], id="twice"),
        pytest.param("sha256=", [SECRET], id="no digest"),
        pytest.param("sha256=" + "é" * 64, [SECRET], id="non-ASCII"),
        pytest.param("sha256=" + "\udcff" * 64, [SECRET], id="bytes that are not UTF-8"),
        pytest.param("sha256=" + DIGEST.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")), [SECRET], id="digits"),
        pytest.param(signed(b""), [b""], id="empty secret"),
        pytest.param(signed(b""), [SECRET, b""], id="empty secret next to a real one"),
        pytest.param(GOOD, [], id="no secret configured"),
    ],
)
def test_everything_else_is_refused(header: str | None, secrets: list[bytes]) -> None:
    assert verify(BODY, header, secrets) is False


@pytest.mark.parametrize(
    "body",
    [b'{"a":"\\ud800"}', b'{"a":"\\u0000"}', b'{"a":12345678901234567890123}', b"{}", '{"é":"日本"}'.encode()],
)
def test_valid_json_of_any_kind_is_read(body: bytes) -> None:
    assert parse(body) == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"null",
        b"{",
        b'{"a":1}{}',
        b"payload=%7B%7D",
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":' * 100_000,
        b'{"a":NaN}',
        b'{"a":"\\ud800","b":NaN}',
        b'{"a":"\\ud800","b":-Infinity}',
    ],
)
def test_anything_but_a_json_object_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        parse(body)
