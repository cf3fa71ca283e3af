"""A proxy as companies have it: CONNECT for HTTPS, and requests with whole addresses for HTTP."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LONGEST_HEAD = 64 * 1024


@dataclass
class Proxy:
    """What a proxy was asked for. `hosts` has the local address behind each name; others get 502."""

    hosts: dict[str, str]
    tls: ssl.SSLContext | None = None
    """The context of every host that is reached by CONNECT."""
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The method and the target of each request."""
    heads: list[str] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        method, target, _ = head.split("\r\n", 1)[0].split(" ")
        self.requests.append((method, target))
        address = urlsplit(f"//{target}" if method == "CONNECT" else target)
        place = self.hosts.get(address.hostname or "")
        if place is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        elif method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            assert self.tls is not None
            await writer.start_tls(self.tls)
            await _joined(reader, writer, place, b"")
        else:
            path = target.partition("://")[2].partition("/")[2]
            line = f"{method} /{path} HTTP/1.1\r\nConnection: close\r\n"
            await _joined(reader, writer, place, (line + head.split("\r\n", 1)[1]).encode())
        if not writer.is_closing():
            writer.close()
            await writer.wait_closed()


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str, first: bytes) -> None:
    """Pass bytes between a client and the server at a local address, until one of them ends."""
    host, _, port = place.rpartition(":")
    from_server, to_server = await asyncio.open_connection(host, int(port))
    to_server.write(first)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await source.read(LONGEST_HEAD):
                target.write(chunk)
                await target.drain()

    copies = [asyncio.create_task(copy(reader, to_server)), asyncio.create_task(copy(from_server, writer))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copying in copies:
            copying.cancel()
        to_server.transport.abort()
        await asyncio.gather(*copies, return_exceptions=True)


@asynccontextmanager
async def proxy(hosts: dict[str, str], tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Run a proxy on a free port."""
    running = Proxy(hosts, tls)
    server = await asyncio.start_server(running.accept, "127.0.0.1", 0, limit=LONGEST_HEAD)
    running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield running
    finally:
        server.close()
        for task in running.tasks:
            task.cancel()
        await asyncio.gather(*running.tasks, return_exceptions=True)
        # An aborted transport closes its socket in the next round of the loop, and TLS the one beneath it then.
        for _ in range(3):
            await asyncio.sleep(0)


def certificate_of(host: str, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's context for a host, and the file with the certificate that its clients must trust."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC)  # noqa: E731
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - datetime.timedelta(days=1))
        .not_valid_after(now() + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, both = folder / "trusted.pem", folder / "server.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(private + trusted.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, trusted
