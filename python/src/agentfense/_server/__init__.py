"""The private server of this process: started when there is no other, gone with the last sandbox on it."""

from __future__ import annotations

from agentfense._server.lease import Lease, lease
from agentfense._server.probe import nothing_listens

__all__ = ["Lease", "lease", "nothing_listens"]
