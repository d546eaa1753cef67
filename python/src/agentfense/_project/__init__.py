"""The policy file of a project, without anything that talks to a server."""

from __future__ import annotations

from agentfense._project.errors import ProjectPolicyError
from agentfense._project.policy import ProjectPolicy
from agentfense._project.read import POLICY_FILE, parse_project_policy, read_project_policy
from agentfense._project.taking import DEFAULT_PRESET, Taken, protect_policy_file, taken_rules, with_project_policy

__all__ = [
    "DEFAULT_PRESET",
    "POLICY_FILE",
    "ProjectPolicy",
    "ProjectPolicyError",
    "Taken",
    "parse_project_policy",
    "protect_policy_file",
    "read_project_policy",
    "taken_rules",
    "with_project_policy",
]
