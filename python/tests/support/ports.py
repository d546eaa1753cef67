"""Addresses at which nobody listens."""

from __future__ import annotations

import socket


def unused_address() -> str:
    """One of this machine."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"
