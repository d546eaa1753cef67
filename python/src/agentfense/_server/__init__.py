"""The private server of this process: started when none is named, gone with the last sandbox on it."""

from __future__ import annotations

from agentfense._server.lease import Lease, lease

__all__ = ["Lease", "lease"]
