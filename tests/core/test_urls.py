import pytest

from bot.core.urls import (
    LONGEST_LINK,
    NO_CREDENTIALS,
    NO_QUERY,
    NOT_AN_ADDRESS,
    NOT_ENCRYPTED,
    NOT_HTTPS,
    encrypted_link,
    encrypted_url,
    http_url,
    linkable,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://api.github.com", "https://api.github.com"),
        ("https://api.github.com/", "https://api.github.com"),
        ("HTTPS://GitHub.Example.ORG:8443/Api/v3//", "https://github.example.org:8443/Api/v3"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://[::1]:5000/x", "http://[::1]:5000/x"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_addresses_are_normalized(text: str, expected: str) -> None:
    assert http_url(text) == expected
    assert encrypted_url(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, NOT_AN_ADDRESS) for text in ("", "ci.example.org", "ftp://ci.example.org", "https://", "https:///x")),
        *(
            (text, NOT_AN_ADDRESS)
            for text in ("https://a b", "https://a\\@b", "https://a:99999", "https://a:0", "https://[::1")
        ),
        *((text, NOT_AN_ADDRESS) for text in ("https://é.example.org", "https://a\n.b", "https://-a", "https://a/<x>")),
        ("https://octocat:sesame@ci.example.org", NO_CREDENTIALS),
        ("https://@ci.example.org", NO_CREDENTIALS),
        ("https://ci.example.org?token=sesame", NO_QUERY),
        ("https://ci.example.org/#", NO_QUERY),
    ],
)
def test_an_invalid_address_is_refused_without_repeating_it(text: str, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        http_url(text)
    assert str(caught.value) == expected


@pytest.mark.parametrize("text", ["http://ci.example.org", "http://10.0.0.1", "http://localhost.example.org"])
def test_a_password_is_never_sent_unencrypted_to_another_machine(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        encrypted_url(text)
    assert str(caught.value) == NOT_ENCRYPTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://ci.example.org/job/7?a=1&b=2#log", "https://ci.example.org/job/7?a=1&b=2#log"),
        (" http://ci.example.org:8080/a%20b ", "http://ci.example.org:8080/a%20b"),
        ("https://ci.example.org/é x)|<y>\\`\n", "https://ci.example.org/%C3%A9%20x%29%7C%3Cy%3E%5C%60"),
        ("https://ci.example.org/\ud800", "https://ci.example.org/?"),
        ("https://octocat:sesame@ci.example.org", ""),
        ("https://github.com@ci.example.org", ""),
        ("https://ci example.org", ""),
        ("javascript:alert(1)", ""),
        ("ci.example.org", ""),
        ("", ""),
        ("https://ci.example.org/" + "x" * LONGEST_LINK, ""),
    ],
)
def test_an_address_from_outside_is_linked_only_if_it_cannot_break_the_markup(text: str, expected: str) -> None:
    assert linkable(text) == expected


def test_people_are_only_sent_to_https() -> None:
    for text in ("https://docs.example.org/PR-1/index.html", "https://docs.example.org?a=b#c", "https://[::1]:8443/"):
        assert encrypted_link(text) == text
    for text, problem in (
        ("http://docs.example.org", NOT_HTTPS),
        ("http://localhost", NOT_HTTPS),
        ("https://octocat:sesame@docs.example.org", NO_CREDENTIALS),
        ("javascript:alert(1)", NOT_AN_ADDRESS),
        ("https://", NOT_AN_ADDRESS),
    ):
        with pytest.raises(ValueError) as caught:
            encrypted_link(text)
        assert str(caught.value) == problem
