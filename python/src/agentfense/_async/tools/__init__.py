"""Tools with which a model works in a sandbox."""

from __future__ import annotations
