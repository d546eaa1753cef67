# Generated from src/agentfense/_async/step.py by scripts/generate_sync.py: change it there.
"""Something to be done later."""

from __future__ import annotations

from typing_extensions import Protocol


class Step(Protocol):
    """Something to be done later, without a word about how."""

    def __call__(self) -> object: ...
