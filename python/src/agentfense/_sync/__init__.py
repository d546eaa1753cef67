# Generated from src/agentfense/_async/__init__.py by scripts/generate_sync.py: change it there.
"""The asynchronous face. The synchronous one is generated from it."""

from __future__ import annotations
