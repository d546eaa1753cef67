"""Rules from data that nobody has checked."""

from __future__ import annotations

import json
from typing import Any, List, Mapping, Sequence

from agentfense._permission.ranking import resolve_rules
from agentfense._permission.rule import HIGHEST_PRIORITY, MOST_RULES, RuleError
from agentfense.types import PatternType, Permission, PermissionRule

_FIELDS = frozenset({"pattern", "permission", "type", "priority"})
_LEVELS = {level.value: level for level in Permission}
_TYPES = {kind.value: kind for kind in PatternType}


def parse_rules(rules: object) -> List[PermissionRule]:
    """The rules of a list of `PermissionRule` or dicts, such as parsed JSON or YAML.

    An unknown field is refused and not skipped: `priorty: 100` must not quietly mean 0. Raises a `RuleError` for the
    first rule that is wrong.
    """
    if not isinstance(rules, Sequence) or isinstance(rules, (str, bytes)):
        raise RuleError(-1, "", "rules must be a list")
    if len(rules) > MOST_RULES:
        raise RuleError(-1, "", f"there are {len(rules)} rules, and at most {MOST_RULES} are allowed")
    parsed = [_parse_rule(rule, index) for index, rule in enumerate(rules)]
    resolve_rules(parsed)
    return parsed


def _parse_rule(rule: object, index: int) -> PermissionRule:
    if isinstance(rule, PermissionRule):
        fields: Mapping[Any, Any] = {
            "pattern": rule.pattern,
            "permission": rule.permission,
            **({} if rule.type is None else {"type": rule.type}),
            "priority": rule.priority,
        }
    elif isinstance(rule, Mapping):
        fields = rule
    else:
        raise RuleError(index, "", "a rule must be a PermissionRule, or a dict with pattern and permission")
    pattern = fields.get("pattern")
    if not isinstance(pattern, str):
        raise RuleError(index, "", "pattern must be a string")
    for field in fields:
        if field not in _FIELDS:
            raise RuleError(index, pattern, f"unknown field {json.dumps(str(field)[:100], ensure_ascii=False)}")
    permission = _word(_LEVELS, fields.get("permission"))
    if permission is None:
        raise RuleError(index, pattern, "permission must be one of none, view, read, write")
    # None is no type: in a file it is a key whose value was forgotten.
    kind = _word(_TYPES, fields["type"]) if "type" in fields else None
    if kind is None and "type" in fields:
        raise RuleError(index, pattern, "type must be one of file, directory, glob")
    priority = fields.get("priority", 0)
    # True is a number to Python, and a slip to everybody else.
    is_whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not is_whole or abs(priority) > HIGHEST_PRIORITY:
        raise RuleError(index, pattern, "priority must be a whole number")
    return PermissionRule(pattern, permission, kind, priority)


def _word(words: Mapping[str, Any], value: object) -> Any:
    return words.get(value) if isinstance(value, str) else None
