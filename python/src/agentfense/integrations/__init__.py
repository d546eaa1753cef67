"""Tools for models, and their adapters to frameworks, each of which is loaded with its module and not before."""

from __future__ import annotations
