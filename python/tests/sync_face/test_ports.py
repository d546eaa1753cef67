# Generated from tests/async_face/test_ports.py by scripts/generate_sync.py: change it there.
"""Ports of a sandbox."""

from __future__ import annotations

import urllib.request
from datetime import datetime, timedelta, timezone
from typing import Iterator

import pytest

from agentfense import PortClosedError, Sandbox
from tests.server import Server


@pytest.fixture
def sandbox(server: Server) -> Iterator[Sandbox]:
    with Sandbox.create(preset="full-access", endpoint=server.endpoint) as sandbox:
        sandbox.write_file("index.html", "hello from the sandbox\n")
        sandbox.run("setsid python3 -m http.server 4711 --bind 127.0.0.1 >/tmp/log 2>&1 &")
        sandbox.wait_for_port(4711)
        yield sandbox


def fetched(url: str, token: str) -> bytes:
    request = urllib.request.Request(url, headers={"X-Agentfense-Token": token})
    with urllib.request.urlopen(request) as answer:
        content: bytes = answer.read()
        return content


def test_a_port_has_a_link_that_works_and_expires(sandbox: Sandbox) -> None:
    port = sandbox.port(4711, expires_in=60)
    assert (port.sandbox_id, port.port) == (sandbox.id, 4711)
    assert port.expires_at < datetime.now(timezone.utc) + timedelta(seconds=120)
    assert f"4711-{sandbox.id}.localhost" in port.host_url
    assert fetched(port.url, port.token) == b"hello from the sandbox\n"


def test_a_connection_ends_in_one_direction_and_goes_on_in_the_other(sandbox: Sandbox) -> None:
    port = sandbox.port(4711)
    with port.connect() as connection:
        connection.write("GET / HTTP/1.0\r\n\r\n")
        connection.end()
        received = b"".join([piece for piece in connection])
    assert received.endswith(b"\r\n\r\nhello from the sandbox\n")


def test_where_nothing_listens_is_said(sandbox: Sandbox) -> None:
    with pytest.raises(PortClosedError, match="nothing listened at port 4712 of the sandbox within 10 ms"):
        sandbox.wait_for_port(4712, timeout=0.01)
    port = sandbox.port(4712)
    with pytest.raises(PortClosedError, match="nothing listens at port 4712 of the sandbox"):
        port.connect()
