"""Open HTTP sessions: the one place that knows of proxies.

`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` mean what they mean to curl, and to boto3, which reads them itself:
https://docs.python.org/3/library/urllib.request.html#urllib.request.getproxies
"""

from __future__ import annotations

from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

CREDENTIALS = "Proxy-Authorization"


def open_session(**options: Any) -> aiohttp.ClientSession:
    """Return a session whose requests go through the proxy of the environment, if it names one by now.

    `options` are those of `aiohttp.ClientSession`. Its `trust_env` is off: it would also send passwords of ~/.netrc.
    """
    # Reading the environment for each request took 0.3 ms.
    return aiohttp.ClientSession(request_class=_ProxiedRequest if getproxies() else aiohttp.ClientRequest, **options)


def proxy_of(url: URL) -> tuple[URL, dict[str, str]] | None:
    """Return the proxy for an address, and the header with its credentials; None if there is none."""
    text = getproxies().get(url.scheme)
    if not text or proxy_bypass(f"{url.host}:{url.port}"):
        return None
    proxy = URL(text if "://" in text else f"http://{text}")
    headers = {CREDENTIALS: aiohttp.encode_basic_auth(proxy.user, proxy.password or "")} if proxy.user else {}
    return proxy.with_user(None), headers


class _ProxiedRequest(aiohttp.ClientRequest):
    """A request through the proxy for its address."""

    def __init__(self, method: str, url: URL, **options: Any) -> None:
        proxied = proxy_of(url)
        if proxied is not None:
            options["proxy"], options["proxy_headers"] = proxied
        super().__init__(method, url, **options)
        if proxied is not None and url.scheme == "http":
            # aiohttp sends `proxy_headers` with CONNECT alone.
            self.headers.update(proxied[1])
