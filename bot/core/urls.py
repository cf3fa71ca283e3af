"""Check web addresses: those in settings, and those of links."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, quote, urlsplit

from bot.core.patterns import Pattern

NOT_AN_ADDRESS = "must be a web address that starts with https:// or http:// and names a host"
NO_CREDENTIALS = "must not contain a user name or password"
NO_QUERY = "must end with its path: no ? and no #"
NOT_ENCRYPTED = "must start with https://, because a password is sent to it (http:// is accepted for this machine only)"

NOT_HTTPS = "must start with https://"

_WRITABLE = Pattern(r"[!#-;=?-\[\]_a-z~]+")
"""The characters of a URL that need no escape (RFC 3986, section 2); not the backslash, which browsers read as `/`."""

LONGEST_LINK = 800
"""The most characters of an address that is linked; nobody follows longer ones."""

_HOST = Pattern(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?")


def http_url(text: str) -> str:
    """Return an http or https address without its last slash, scheme and host in lower case.

    Raises ValueError with a text that never repeats the address, because it may contain a password.
    """
    parts = _split(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError(NO_CREDENTIALS)
    if "?" in text or "#" in text:
        raise ValueError(NO_QUERY)
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}".rstrip("/")


def encrypted_url(text: str) -> str:
    """Return an address like `http_url`, but refuse plain http to any machine other than this one."""
    url = http_url(text)
    if url.startswith("http://") and not _is_this_machine(urlsplit(url).hostname or ""):
        raise ValueError(NOT_ENCRYPTED)
    return url


def linkable(text: str) -> str:
    """Return an address from outside so that it cannot end the markup around it; empty if it must not be linked.

    Only http and https are linked, without credentials, which would hide where the link leads.
    """
    url = quote(text.strip(), safe="%/:?#@!$&'*+,;=-._~", errors="replace")
    try:
        parts = _split(url)
    except ValueError:
        return ""
    return url if parts.username is None and parts.password is None and len(url) <= LONGEST_LINK else ""


def encrypted_link(text: str) -> str:
    """Return an https address that people are sent to, which may have a query and a fragment; else raise ValueError."""
    parts = _split(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError(NO_CREDENTIALS)
    if parts.scheme != "https":
        raise ValueError(NOT_HTTPS)
    return text


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        # urlsplit parses the port only when it is read, and raises ValueError for anything but a number.
        port_is_usable = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(NOT_AN_ADDRESS) from None
    is_well_formed = _WRITABLE.fullmatch(text.lower())
    if parts.scheme not in ("http", "https") or not port_is_usable or not is_well_formed or not _is_host(host):
        raise ValueError(NOT_AN_ADDRESS)
    return parts


def _is_host(host: str) -> bool:
    return bool(_HOST.fullmatch(host)) or _address(host) is not None


def _is_this_machine(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
