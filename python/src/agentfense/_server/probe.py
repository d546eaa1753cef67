"""Whether somebody serves on this machine."""

from __future__ import annotations

import socket

#: A connection within a machine is made or refused at once; only a full queue or a firewall makes one wait.
_PATIENCE_SECONDS = 1.0


def nothing_listens(host: str, port: int) -> bool:
    """Tries every address of the host, which for localhost are those of IPv4 and IPv6 whatever the resolver says."""
    addresses = ("127.0.0.1", "::1") if host == "localhost" else (host,)
    return not any(_listens(address, port) for address in addresses)


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), _PATIENCE_SECONDS):
            return True
    except OSError:
        return False
