"""Requests through a proxy: GitHub's, those to buckets and to labs, and which the proxy must not get."""

from __future__ import annotations

import ast
import asyncio
import socket
from pathlib import Path

import pytest
from yarl import URL

from bot.aws.bucket import Bucket
from bot.aws.client import Aws
from bot.core.errors import UserError
from bot.core.http import open_session, proxy_of
from handlers.labs import texts
from handlers.labs.webhooks import send_webhook
from sandbox import GitHubSandbox
from sandbox.bot_process import BotProcess
from tests.bucket import World
from tests.conversations.test_lab_webhook import PUBLIC, Names
from tests.proxy import certificate_of, proxy
from tests.tables import with_tables
from tests.waiting import until

ROOT = Path(__file__).parents[2]
SECRET = "only-the-tests-know-this-secret"


@pytest.mark.parametrize(
    ("url", "proxies", "expected"),
    [
        ("https://api.github.com/x", {"https": "http://proxy.example.org:3128"}, "http://proxy.example.org:3128"),
        ("https://api.github.com/x", {"https": "proxy.example.org:3128"}, "http://proxy.example.org:3128"),
        ("http://ci.example.org/x", {"https": "http://proxy.example.org:3128"}, None),
        ("https://ci.example.org/x", {"https": "http://proxy:3128", "no": "example.org"}, None),
        ("https://ci.example.org/x", {"https": "http://proxy:3128", "no": "*"}, None),
        ("https://ci.example.org:8443/x", {"https": "http://proxy:3128", "no": "ci.example.org:8443"}, None),
        ("https://ci.example.org/x", {"https": ""}, None),
    ],
)
def test_which_proxy_an_address_has(
    url: str, proxies: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in proxies.items():
        monkeypatch.setenv(f"{name}_proxy", value)
    proxied = proxy_of(URL(url))
    assert (str(proxied[0]) if proxied else None) == expected


def test_the_credentials_of_a_proxy_are_no_part_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://octocat:a%40b@proxy:3128")
    proxied = proxy_of(URL("https://api.github.com"))
    assert proxied == (URL("http://proxy:3128"), {"Proxy-Authorization": "Basic b2N0b2NhdDphQGI="})


def test_one_module_opens_sessions() -> None:
    """So that no request forgets the proxy."""
    opens = [
        path.relative_to(ROOT).as_posix()
        for folder in ("bot", "handlers")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ClientSession")
    ]
    assert opens == ["bot/core/http.py"]


async def test_the_whole_bot_reaches_github_through_a_proxy(tmp_path: Path, sqlite_url: str) -> None:
    github = GitHubSandbox()
    context, trusted = certificate_of("github.example.org", tmp_path)
    async with github.serve() as url, proxy({"github.example.org": url.removeprefix("http://")}, context) as between:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        config = tmp_path / "app.yaml"
        config.write_text("repositories:\n  octocat/compiler:\n")
        env = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": "https://github.example.org/api/v3",
            "DATABASE_URL": with_tables(sqlite_url),
            "HTTPS_PROXY": between.url.replace("http://", "http://octocat:sesame@"),
            "SSL_CERT_FILE": str(trusted),
        }
        # A process of its own: aiohttp reads the trusted certificates when it is imported.
        bot = await BotProcess(env, config=config).start()
        try:
            app.webhook_url = f"{bot.url}/webhook"
            pull = repository.open_pull_request("octocat")
            await until(lambda: repository.status(pull.head_sha, "ci/slow-tests"))
        finally:
            await bot.stop()
        assert set(between.requests) == {("CONNECT", "github.example.org:443")}
        assert all("Proxy-Authorization: Basic b2N0b2NhdDpzZXNhbWU=" in head for head in between.heads)
        assert "sesame" not in "\n".join(bot.output)


async def test_a_bucket_is_reached_through_a_proxy(aws_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    server = URL(aws_world.server.url)
    async with proxy({"127.0.0.2": f"{server.host}:{server.port}"}) as between:
        monkeypatch.setenv("HTTP_PROXY", between.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.2")
        aws = Aws(attempts=1)
        bucket = Bucket(aws, aws_world.name)
        await bucket.check("results/")
        aws.close()
        assert between.requests
        assert all(target.startswith("http://127.0.0.2/") for _, target in between.requests)


async def test_a_proxy_gets_the_checked_address_of_a_labs_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look the name up again, and could get a private address."""
    names = Names([PUBLIC, "127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    received: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, proxy({PUBLIC: f"127.0.0.1:{port}"}) as between:
        monkeypatch.setenv("HTTP_PROXY", between.url.replace("http://", "http://octocat:sesame@"))
        await send_webhook("http://lab.example.org/job", b"{}", {}, allow_private=False)
        assert between.requests == [("POST", f"http://{PUBLIC}/job")]
        assert b"Host: lab.example.org\r\n" in received[0]
        assert "Proxy-Authorization: Basic b2N0b2NhdDpzZXNhbWU=" in between.heads[0]
        with pytest.raises(UserError, match=r"lab\.example\.org"):
            await send_webhook("http://lab.example.org/job", b"{}", {}, allow_private=False)
        with pytest.raises(UserError) as caught:
            await send_webhook("http://127.0.0.1/job", b"{}", {}, allow_private=False)
        assert str(caught.value) == texts.WEBHOOK_PRIVATE.format(host="127.0.0.1")
        assert (names.looked_up, len(between.requests)) == (2, 1)


async def test_without_a_proxy_requests_go_directly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Passwords of ~/.netrc stay at home."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login octocat password sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with proxy({}) as direct, open_session() as session, session.get(f"{direct.url}/x") as reply:
        assert reply.status == 502
        assert "Authorization" not in direct.heads[0]
