# Generated from src/agentfense/_async/tools/__init__.py by scripts/generate_sync.py: change it there.
"""Tools with which a model works in a sandbox."""

from __future__ import annotations
