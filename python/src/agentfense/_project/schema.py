"""Checks what a policy file says. What is not understood is an error, never skipped."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from typing_extensions import Literal

from agentfense._permission import RuleError, parse_rules
from agentfense._project.nearest import nearest_name
from agentfense._project.policy import ProjectPolicy
from agentfense._project.quantities import bytes_of, cpu_quota_of
from agentfense._project.yaml_text import Path
from agentfense.presets import PresetError, get_preset, list_presets
from agentfense.types import NetworkList, NetworkMode, PermissionRule, ResourceLimits, RuntimeType

#: The default of the sandbox. Who cloned the project did not agree to more.
_MOST_PIDS = 1024

_RUNTIMES = (RuntimeType.BWRAP, RuntimeType.DOCKER)
_NETWORK_MODES = (NetworkMode.NONE, NetworkMode.PRIVATE, NetworkMode.HOST)
_Reader = Callable[[Any, Path], Any]


class ContentError(Exception):
    """A mistake in the content: where, and what would be right."""

    def __init__(self, at: Path, message: str, part: Literal["key", "value"] = "value") -> None:
        super().__init__(message)
        self.at = at
        #: Whether it is the key that is wrong, or its value.
        self.part = part


def read_policy_content(value: object, path: str) -> ProjectPolicy:
    """Checks everything; raises a `ContentError` for the first mistake."""
    content = _read_map(value, (), _KEYS)
    if content.pop("version", None) is None:
        raise ContentError((), "version is missing; the file begins with: version: 1")
    content.pop("agents", None)  # for the command `agentfense agent` alone
    return ProjectPolicy(path, **content)


def _read_map(value: object, at: Path, readers: Mapping[str, _Reader]) -> Dict[str, Any]:
    """A map that has no other keys than these.

    A key without a value is a mistake: it looks like "nothing", and is not.
    """
    if not isinstance(value, dict):
        name = ".".join(map(str, at)) or "the file"
        raise ContentError(at, f"{name}: expected keys ({', '.join(readers)}), not {_shown(value)}")
    read: Dict[str, Any] = {}
    for key, member in value.items():
        here = (*at, key)
        if key not in readers:
            near = nearest_name(key, readers)
            help_text = f"allowed: {', '.join(readers)}" if near is None else f"did you mean {near}?"
            raise ContentError(here, f"unknown key {_shown(key)}; {help_text}", "key")
        read[key] = readers[key](member, here)
    return read


def _read_version(value: object, at: Path) -> int:
    # True is 1 to Python.
    if value != 1 or isinstance(value, bool):
        raise ContentError(at, f"version: expected 1, not {_shown(value)}")
    return 1


def _read_preset(value: object, at: Path) -> str:
    if not isinstance(value, str):
        names = ", ".join(preset.name for preset in list_presets())
        raise ContentError(at, f"preset: expected one of {names}, not {_shown(value)}")
    try:
        get_preset(value)
    except PresetError as error:
        raise ContentError(at, str(error)) from error
    return value


def _read_rules(value: object, at: Path) -> Tuple[PermissionRule, ...]:
    try:
        return tuple(parse_rules(value))
    except RuleError as error:
        place = at if error.index < 0 else (*at, error.index)
        is_unknown = error.reason.startswith("unknown field")
        help_text = "; a rule has pattern, permission, type and priority" if is_unknown else ""
        raise ContentError(place, f"{error.message}{help_text}") from error


def _read_runtime(value: object, at: Path) -> RuntimeType:
    if isinstance(value, str) and value in _RUNTIMES:
        return RuntimeType(value)
    expected = ", ".join(map(str, _RUNTIMES))
    raise ContentError(at, f"runtime: expected one of {expected}, not {_shown(value)}")


def _quantity(expected: str, parse: Callable[[str], Optional[int]]) -> _Reader:
    def read(value: object, at: Path) -> int:
        amount = parse(_number_text(value))
        # Zero would mean "no limit" further down.
        if amount:
            return amount
        raise ContentError(at, f"{_name(at)}: expected {expected}, not {_shown(value)}")

    return read


def _number_text(value: object) -> str:
    """A text or a number as somebody would write it; "" for everything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _pids_of(text: str) -> Optional[int]:
    is_count = re.fullmatch(r"0*[0-9]{1,4}", text) is not None and 1 <= int(text) <= _MOST_PIDS
    return int(text) if is_count else None


def _read_resources(value: object, at: Path) -> ResourceLimits:
    read = _read_map(value, at, {name: reader for name, (_, reader) in _RESOURCES.items()})
    return ResourceLimits(**{_RESOURCES[name][0]: amount for name, amount in read.items()})


def _read_environment(value: object, at: Path) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ContentError(at, f"env: expected NAME: value, not {_shown(value)}")
    for name, text in value.items():
        here = (*at, name)
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
            raise ContentError(here, f"env: {_shown(name)} is no name of a variable (letters, digits and _)", "key")
        if not isinstance(text, str):
            raise ContentError(here, f"env.{name}: expected a text, not {_shown(text)}; put it in quotes")
        if "\0" in text:
            raise ContentError(here, f"env.{name}: has a NUL character")
    return dict(value)


def _read_ignore(value: object, at: Path) -> Tuple[str, ...]:
    if not isinstance(value, list):
        raise ContentError(at, f"ignore: expected a list of patterns, not {_shown(value)}")
    for index, pattern in enumerate(value):
        if not isinstance(pattern, str) or pattern == "":
            here = (*at, index)
            raise ContentError(here, f"ignore: expected a pattern as in .gitignore, not {_shown(pattern)}")
    return tuple(value)


def _read_network(value: object, at: Path) -> Union[NetworkMode, NetworkList]:
    """Alone, the word filtered would be a list that allows nothing."""
    if isinstance(value, dict):
        return NetworkList(**_read_map(value, at, _NETWORK_LIST))
    if isinstance(value, str) and value in _NETWORK_MODES:
        return NetworkMode(value)
    expected = ", ".join(map(str, _NETWORK_MODES))
    message = f"network: expected one of {expected}, or a list (allow, presets), not {_shown(value)}"
    raise ContentError(at, message)


def _texts_of(expected: str) -> _Reader:
    def read(value: object, at: Path) -> Tuple[str, ...]:
        if not isinstance(value, list):
            raise ContentError(at, f"{_name(at)}: expected a list, not {_shown(value)}")
        for index, item in enumerate(value):
            if not isinstance(item, str) or item == "":
                raise ContentError((*at, index), f"{_name(at)}: expected {expected}, not {_shown(item)}")
        return tuple(value)

    return read


def _read_hosts(value: object, at: Path) -> Tuple[str, ...]:
    """Addresses of private networks are for those to list who are in them: the file came with the project."""
    hosts: Tuple[str, ...] = _texts_of("a host such as example.com, *.example.com or example.com:22,443")(value, at)
    for index, host in enumerate(hosts):
        if "@" in host:
            message = f"{_name(at)}: {_shown(host)} has addresses, which only --allow and programs can give"
            raise ContentError((*at, index), message)
    return hosts


def _read_agents(value: object, at: Path) -> Mapping[str, Any]:
    return _read_named(value, at, "name", r"[a-z0-9][a-z0-9._-]{0,40}", _read_agent)


def _read_agent(value: object, at: Path) -> Dict[str, Any]:
    return _require(_read_map(value, at, _AGENT), at, "program")


def _read_agent_secrets(value: object, at: Path) -> Mapping[str, Any]:
    return _read_named(value, at, "NAME", r"[A-Za-z_][A-Za-z0-9_]*", _read_agent_secret)


def _read_agent_secret(value: object, at: Path) -> Dict[str, Any]:
    return _require(_read_map(value, at, _AGENT_SECRET), at, "hosts", "in")


def _read_named(value: object, at: Path, what: str, form: str, read: _Reader) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ContentError(at, f"{_name(at)}: expected {what}: …, not {_shown(value)}")
    for name in value:
        if re.fullmatch(form, name) is None:
            raise ContentError((*at, name), f"{_name(at)}: {_shown(name)} cannot be a name here", "key")
    return {name: read(member, (*at, name)) for name, member in value.items()}


def _require(content: Dict[str, Any], at: Path, *keys: str) -> Dict[str, Any]:
    for key in keys:
        if key not in content:
            raise ContentError(at, f"{_name((*at, key))} is missing")
    return content


def _read_text(value: object, at: Path) -> str:
    if isinstance(value, str) and value != "" and "\0" not in value:
        return value
    raise ContentError(at, f"{_name(at)}: expected a text, not {_shown(value)}")


def _name(at: Path) -> str:
    return ".".join(map(str, at))


def _shown(value: object) -> str:
    """A value in a message: as JSON, and not without end."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{text[:80]}…" if len(text) > 80 else text


#: Every limit of the file, what it is called elsewhere, and how its value is read.
_RESOURCES: Dict[str, Tuple[str, _Reader]] = {
    "memory": ("memory_bytes", _quantity("a size such as 512m or 1g", bytes_of)),
    "cpus": ("cpu_quota", _quantity("a number of CPUs such as 0.5 or 2", cpu_quota_of)),
    "pids": ("pids_limit", _quantity(f"a number from 1 to {_MOST_PIDS}", _pids_of)),
    "disk": ("disk_bytes", _quantity("a size such as 512m or 1g", bytes_of)),
}

#: The list of a filtered network.
_NETWORK_LIST: Dict[str, _Reader] = {
    "allow": _read_hosts,
    "presets": _texts_of("the name of a list such as npm"),
}

#: What a profile of an agent can say.
_AGENT_SECRET: Dict[str, _Reader] = {"hosts": _read_hosts, "in": _read_text, "from": _read_text}

_AGENT: Dict[str, _Reader] = {
    "program": _read_text,
    "arguments": _texts_of("a text"),
    "allow": _read_hosts,
    "secrets": _read_agent_secrets,
    "env": _read_environment,
    "install": _read_text,
}

#: Every key of the file and how its value is read.
_KEYS: Dict[str, _Reader] = {
    "version": _read_version,
    "preset": _read_preset,
    "permissions": _read_rules,
    "runtime": _read_runtime,
    "network": _read_network,
    "resources": _read_resources,
    "env": _read_environment,
    "ignore": _read_ignore,
    "agents": _read_agents,
}
