"""What a sandbox on a project is made with.

Who wrote the policy is not always who runs it. So the file decides about the project itself (which of its paths a
sandbox sees), about limits and about what the sandbox has anyway, and never opens the sandbox to the outside.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import List, Mapping, Optional, Sequence, Union

from agentfense._permission import HIGHEST_PRIORITY, allows_writing, parse_rules
from agentfense._project.errors import ProjectPolicyError
from agentfense._project.policy import ProjectPolicy
from agentfense._project.read import POLICY_FILE
from agentfense.presets import get_preset
from agentfense.types import (
    NetworkList,
    NetworkMode,
    PatternType,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuleLike,
    RuntimeType,
)

DEFAULT_PRESET = "agent-safe"


@dataclass(frozen=True)
class Taken:
    """What counts in the end; the rules are expanded, without a preset."""

    permissions: List[PermissionRule]
    runtime: Union[RuntimeType, str, None]
    network: Union[NetworkMode, NetworkList, str, None]
    resources: Optional[ResourceLimits]
    env: Optional[Mapping[str, str]]


def with_project_policy(
    policy: Optional[ProjectPolicy],
    *,
    preset: Optional[str] = None,
    permissions: Optional[Sequence[RuleLike]] = None,
    runtime: Union[RuntimeType, str, None] = None,
    network: Union[NetworkMode, NetworkList, str, None] = None,
    resources: Optional[ResourceLimits] = None,
    env: Optional[Mapping[str, str]] = None,
) -> Taken:
    """What the caller says wins, the policy fills in the rest. No rule ever lets the sandbox write the policy itself.

    | option       | caller and policy                                                                         |
    | ------------ | ----------------------------------------------------------------------------------------- |
    | rules        | the caller's preset and permissions; if there are neither, the policy's; then agent-safe  |
    | network      | the caller's; a policy that asks for more than none is refused until the caller says so;  |
    |              | who says filtered takes the policy's list                                                 |
    | env, limits  | both, name by name; the caller's win                                                      |
    | runtime      | the caller's, else the policy's                                                           |
    """
    known = ProjectPolicy(POLICY_FILE) if policy is None else policy
    has_env = env is not None or known.env is not None
    return Taken(
        permissions=protect_policy_file(taken_rules(known, preset=preset, permissions=permissions)),
        runtime=known.runtime if runtime is None else runtime,
        network=_taken_network(known, network),
        resources=_taken_resources(known.resources, resources),
        env={**(known.env or {}), **(env or {})} if has_env else None,
    )


def taken_rules(
    policy: Optional[ProjectPolicy],
    *,
    preset: Optional[str] = None,
    permissions: Optional[Sequence[RuleLike]] = None,
) -> List[PermissionRule]:
    """The rules of the caller, else of the policy, else of the default preset; presets expanded."""
    if preset is None and permissions is None and policy is not None:
        preset, permissions = policy.preset, policy.permissions
    own = parse_rules([] if permissions is None else permissions)
    if preset is None and permissions is not None:
        return own
    return get_preset(DEFAULT_PRESET if preset is None else preset) + own


def protect_policy_file(rules: Sequence[PermissionRule]) -> List[PermissionRule]:
    """The same rules, and if they would let a sandbox write `/.agentfense.yaml`, there or not, one more.

    That one allows reading at most: nobody loosens the rules of the next run.
    """
    path = f"/{POLICY_FILE}"
    if not allows_writing(rules, path):
        return list(rules)
    top = max(0, *(rule.priority for rule in rules))
    # At the very top there is no priority above: of two rules of one rank the stricter wins, and a file rule outranks
    # globs.
    priority = min(top + 1, HIGHEST_PRIORITY)
    return [*rules, PermissionRule(path, Permission.READ, PatternType.FILE, priority)]


def _taken_network(
    policy: ProjectPolicy, given: Union[NetworkMode, NetworkList, str, None]
) -> Union[NetworkMode, NetworkList, str, None]:
    """The network to use; a policy alone never opens it."""
    asked = policy.network
    if given == NetworkMode.FILTERED and isinstance(asked, NetworkList):
        return asked
    if given is not None or asked in (None, NetworkMode.NONE):
        return asked if given is None else given
    mode = NetworkMode.FILTERED if isinstance(asked, NetworkList) else asked
    raise ProjectPolicyError(
        policy.path,
        f"asks for the network {mode}, which a file cannot allow itself",
        hint=f'say it yourself too: network="{mode}", or network="none" to run without',
    )


def _taken_resources(policy: Optional[ResourceLimits], given: Optional[ResourceLimits]) -> Optional[ResourceLimits]:
    if policy is None or given is None:
        return policy if given is None else given
    names = [each.name for each in fields(ResourceLimits)]
    own = {name: getattr(given, name) for name in names}
    return ResourceLimits(**{name: getattr(policy, name) if amount is None else amount for name, amount in own.items()})
