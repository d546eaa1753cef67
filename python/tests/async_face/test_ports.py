"""Ports of a sandbox."""

from __future__ import annotations

import urllib.request
from datetime import datetime, timedelta, timezone
from typing import AsyncIterator

import pytest

from agentfense import AsyncSandbox, PortClosedError
from tests.server import Server


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        await sandbox.write_file("index.html", "hello from the sandbox\n")
        await sandbox.run("setsid python3 -m http.server 4711 --bind 127.0.0.1 >/tmp/log 2>&1 &")
        await sandbox.wait_for_port(4711)
        yield sandbox


def fetched(url: str, token: str) -> bytes:
    request = urllib.request.Request(url, headers={"X-Agentfense-Token": token})
    with urllib.request.urlopen(request) as answer:
        content: bytes = answer.read()
        return content


async def test_a_port_has_a_link_that_works_and_expires(sandbox: AsyncSandbox) -> None:
    port = await sandbox.port(4711, expires_in=60)
    assert (port.sandbox_id, port.port) == (sandbox.id, 4711)
    assert port.expires_at < datetime.now(timezone.utc) + timedelta(seconds=120)
    assert f"4711-{sandbox.id}.localhost" in port.host_url
    assert fetched(port.url, port.token) == b"hello from the sandbox\n"


async def test_a_connection_ends_in_one_direction_and_goes_on_in_the_other(sandbox: AsyncSandbox) -> None:
    port = await sandbox.port(4711)
    async with port.connect() as connection:
        await connection.write("GET / HTTP/1.0\r\n\r\n")
        await connection.end()
        received = b"".join([piece async for piece in connection])
    assert received.endswith(b"\r\n\r\nhello from the sandbox\n")


async def test_where_nothing_listens_is_said(sandbox: AsyncSandbox) -> None:
    with pytest.raises(PortClosedError, match="nothing listened at port 4712 of the sandbox within 10 ms"):
        await sandbox.wait_for_port(4712, timeout=0.01)
    port = await sandbox.port(4712)
    with pytest.raises(PortClosedError, match="nothing listens at port 4712 of the sandbox"):
        await port.connect()
