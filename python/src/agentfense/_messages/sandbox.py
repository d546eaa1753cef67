"""Sandboxes and sessions."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Dict, Iterable, Mapping, Optional, Union

from agentfense._messages.network import network_number, network_presets, network_rule_messages, network_rule_of
from agentfense._messages.numbers import count, strings
from agentfense._messages.rules import rule_messages, rule_of
from agentfense._messages.secrets import secret_messages
from agentfense._messages.time import duration_message, idle_pause_message, moment, moment_or_none, timedelta_of
from agentfense._messages.words import (
    NETWORKS,
    PERMISSIONS,
    RUNTIMES,
    SANDBOX_STATUSES,
    SESSION_STATUSES,
    SYNC_MODES,
)
from agentfense._sandbox.options import SandboxOptions
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import (
    NetworkList,
    NetworkMode,
    PathExplanation,
    ResourceLimits,
    RuleCandidate,
    RuleLike,
    RuntimeType,
    SandboxInfo,
    Seconds,
    SecretsLike,
    SessionInfo,
    SnapshotInfo,
    SyncMode,
)

_LIMITS = tuple(limit.name for limit in fields(ResourceLimits))


def create_sandbox_message(
    codebase_id: str,
    permissions: Optional[Iterable[RuleLike]],
    labels: Optional[Mapping[str, str]],
    expires_in: Optional[Seconds],
    runtime: Union[RuntimeType, str, None],
    image: Optional[str],
    resources: Optional[ResourceLimits],
    *,
    preset: Optional[str],
    network: Union[NetworkMode, NetworkList, str, None],
    sync: Union[SyncMode, str, None],
    env: Optional[Mapping[str, str]],
    codebase_version: Optional[int],
    revocable: bool,
    idle_pause: Optional[Seconds],
    home: Union[str, os.PathLike[str], None],
    secrets: Optional[SecretsLike],
    workspace_home: Optional[str],
    pause_at_expiry: bool,
) -> sandbox_pb2.CreateSandboxRequest:
    """What a sandbox is to be. It reads the values of secrets, from files and commands too."""
    return sandbox_pb2.CreateSandboxRequest(
        codebase_id=codebase_id,
        codebase_version=count(codebase_version, "codebase_version"),
        permissions=rule_messages(preset, permissions),
        labels=strings(labels, "labels"),
        env=strings(env, "env"),
        image=image or "",
        revocable=revocable,
        home=_home(home),
        workspace_home=workspace_home or "",
        pause_at_expiry=pause_at_expiry,
        runtime=RUNTIMES.number(runtime),
        network=network_number(network),
        network_rules=network_rule_messages(network),
        network_presets=network_presets(network),
        secrets=secret_messages(secrets),
        sync=SYNC_MODES.number(sync),
        resources=None if resources is None else _resources_message(resources),
        expires_in=duration_message(expires_in, "expires_in"),
        idle_pause=idle_pause_message(idle_pause),
    )


def inheriting_message(options: SandboxOptions) -> sandbox_pb2.CreateSandboxRequest:
    """What is made of another's work has its rules unless it is given some: no default comes between."""
    message = create_sandbox_message(
        "",
        options.permissions,
        options.labels,
        options.expires_in,
        options.runtime,
        options.image,
        options.resources,
        preset=options.preset,
        network=options.network,
        sync=options.sync,
        env=options.env,
        codebase_version=None,
        revocable=options.revocable,
        idle_pause=options.idle_pause,
        home=options.home,
        secrets=options.secrets,
        workspace_home=None,
        pause_at_expiry=False,
    )
    if options.permissions is None and options.preset is None:
        message.ClearField("permissions")
    return message


def _home(home: Union[str, os.PathLike[str], None]) -> str:
    """A name as it is; a directory as this process means it, which has a slash in it as names never have."""
    given = "" if home is None else os.fspath(home)
    return os.path.abspath(given) if "/" in given else given


def _resources_message(resources: ResourceLimits) -> sandbox_pb2.ResourceLimits:
    """0 would mean the server's default on the wire, and nothing of the kind to whoever wrote it."""
    given: Dict[str, int] = {}
    for limit in _LIMITS:
        value = getattr(resources, limit)
        if value == 0:
            message = f"resources.{limit} must be above 0; leave it out for the server's default"
            raise InvalidConfigurationError(message)
        if value is not None:
            given[limit] = count(value, f"resources.{limit}")
    return sandbox_pb2.ResourceLimits(**given)


def _resources_of(message: sandbox_pb2.ResourceLimits) -> ResourceLimits:
    return ResourceLimits(**{limit: getattr(message, limit) or None for limit in _LIMITS})


def snapshot_of(message: sandbox_pb2.Snapshot) -> SnapshotInfo:
    """A snapshot of an answer."""
    return SnapshotInfo(
        id=message.id,
        sandbox_id=message.sandbox_id,
        owner_id=message.owner_id,
        codebase_id=message.codebase_id,
        codebase_version=message.codebase_version,
        label=message.label,
        created_at=moment(message.created_at),
    )


def sandbox_of(message: sandbox_pb2.Sandbox) -> SandboxInfo:
    """A sandbox of an answer."""
    return SandboxInfo(
        id=message.id,
        codebase_id=message.codebase_id,
        owner_id=message.owner_id,
        status=SANDBOX_STATUSES.word(message.status),
        status_reason=message.status_reason,
        permissions=tuple(rule_of(rule) for rule in message.permissions),
        labels=dict(message.labels),
        runtime=RUNTIMES.word(message.runtime),
        image=message.image,
        resources=_resources_of(message.resources),
        network=NETWORKS.word(message.network),
        sync=SYNC_MODES.word(message.sync),
        codebase_version=message.codebase_version,
        revocable=message.revocable,
        home=message.home,
        workspace_home=message.workspace_home,
        pause_at_expiry=message.pause_at_expiry,
        created_at=moment(message.created_at),
        started_at=moment_or_none(message.HasField("started_at"), message.started_at),
        stopped_at=moment_or_none(message.HasField("stopped_at"), message.stopped_at),
        expires_at=moment_or_none(message.HasField("expires_at"), message.expires_at),
        idle_pause=timedelta_of(message.idle_pause) if message.HasField("idle_pause") else None,
        network_rules=tuple(network_rule_of(rule) for rule in message.network_rules),
        secrets=tuple(message.secrets),
    )


def session_of(message: sandbox_pb2.Session) -> SessionInfo:
    """A session of an answer."""
    return SessionInfo(
        id=message.id,
        sandbox_id=message.sandbox_id,
        status=SESSION_STATUSES.word(message.status),
        shell=message.shell,
        close_reason=message.close_reason,
        created_at=moment(message.created_at),
        closed_at=moment_or_none(message.HasField("closed_at"), message.closed_at),
    )


def explanation_of(message: sandbox_pb2.ExplainPathResponse) -> PathExplanation:
    """Which rule decides, and which ones lost."""
    return PathExplanation(
        path=message.path,
        permission=PERMISSIONS.word(message.permission),
        deciding=_candidate_of(message.deciding) if message.HasField("deciding") else None,
        losing=tuple(_candidate_of(candidate) for candidate in message.losing),
        text=message.explanation,
    )


def _candidate_of(message: sandbox_pb2.ExplainPathResponse.Candidate) -> RuleCandidate:
    return RuleCandidate(index=message.index, rule=rule_of(message.rule), reason=message.reason)
