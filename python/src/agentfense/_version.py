"""The version of this package, which is that of the whole product."""

from __future__ import annotations

__version__ = "0.3.0"
