"""Rules without a server: which ones are refused, and whether a set of them lets a path be written."""

from __future__ import annotations

from agentfense._permission.parse_rules import parse_rules
from agentfense._permission.ranking import allows_writing
from agentfense._permission.rule import HIGHEST_PRIORITY, RuleError

__all__ = ["HIGHEST_PRIORITY", "RuleError", "allows_writing", "parse_rules"]
