"""How a server is reached, what may be asked of it, and what its failures mean. Nothing here waits for anything."""

from __future__ import annotations
