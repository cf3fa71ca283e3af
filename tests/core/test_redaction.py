"""A configured secret is removed however it is encoded, and whatever has the shape of a secret is removed too."""

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.redaction import Redactor

SECRET = "p@ss w/o+rd=&\"'é\\x"
ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a path": quote,
    "in a parameter": lambda text: quote(text, safe=""),
    "in a form": quote_plus,
    "in lower case": lambda text: "".join(
        character if character.isascii() and character.isalnum() else quote(character, safe="").lower()
        for character in text
    ),
    "of all but letters": lambda text: "".join(
        character
        if character.isascii() and character.isalnum()
        else "".join(f"%{octet:02X}" for octet in character.encode())
        for character in text
    ),
    "in an address in an address": lambda text: quote(quote(text, safe=""), safe=""),
    "in JSON": json.dumps,
    "in JSON with all characters": lambda text: json.dumps(text, ensure_ascii=False),
    "in JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "in a repr": repr,
    "in HTML": html.escape,
    "in XML": escape,
    "in XML by number": lambda text: "".join(
        f"&#{ord(character)};" if character in "&<>\"'" else character for character in text
    ),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_secret_is_removed_in_each_encoding(encoding: str) -> None:
    redacted = Redactor([SECRET]).text(f"before {ENCODINGS[encoding](SECRET)} after")
    assert redacted.replace('\\"', "").translate({34: None, 39: None}) == "before [redacted] after"


@given(st.text(min_size=4).filter(lambda text: len(text.strip()) >= 4), st.sampled_from(sorted(ENCODINGS)))
def test_any_secret_is_removed_in_any_encoding(secret: str, encoding: str) -> None:
    secret = secret.encode("utf-8", "replace").decode()
    encoded = ENCODINGS[encoding](secret.strip())
    assert encoded not in Redactor([secret]).text(f"<{encoded}>").replace("[redacted]", "")


SIGNED = {
    "https://example.blob.core.windows.net/c/f.zip": {"sv": "2026-01-01", "sig": "Ab+c/12=", "se": "2026"},
    "https://example-bucket.s3.amazonaws.com/k": {"X-Amz-Date": "2026", "X-Amz-Signature": "Ab+c/12=", "x": "1"},
    "https://storage.example.org/k": {"X-Goog-Signature": "Ab+c/12=", "x": "1"},
    "https://release-assets.example.org/k": {"jwt": "Ab+c/12=", "x": "1"},
    "https://ci.example.org/login": {"access_token": "Ab+c/12=", "x": "1"},
}


@pytest.mark.parametrize("address", SIGNED)
@pytest.mark.parametrize("times", range(3))
def test_a_signature_in_an_address_is_removed_however_often_the_address_is_encoded(address: str, times: int) -> None:
    text = f"{address}?{urlencode(SIGNED[address])}"
    for _ in range(times):
        text = quote(text, safe="")
    redacted = Redactor().text(f'got "{text}" for it')
    assert "Ab" not in redacted
    assert redacted.startswith(f'got "{text[:20]}')
    assert redacted.endswith('" for it')
    if times == 0:
        assert [name for name in SIGNED[address] if f"{name}=" in redacted] == list(SIGNED[address])


def test_the_password_of_an_encoded_address_is_removed() -> None:
    text = quote("postgresql://nightjar:s3cr3t@db.example.org/nightjar", safe="")
    assert Redactor().text(text) == text.replace("s3cr3t", "[redacted]")


@pytest.mark.parametrize("text", ["design=abc", "?page=2&sort=name", "https://example.org/?a=%26b%3D1", "sig", "100%"])
def test_text_without_a_secret_stays(text: str) -> None:
    assert Redactor([SECRET]).text(text) == text
