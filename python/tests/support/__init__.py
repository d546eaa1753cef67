"""What several tests need."""

from __future__ import annotations
