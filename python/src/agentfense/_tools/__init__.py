"""What the tools of both faces share: how they are declared, what they take, and what they tell a model."""

from __future__ import annotations
