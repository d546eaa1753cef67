"""What a sandbox reaches."""

from __future__ import annotations

from typing import List, Mapping, Union

from agentfense._messages.words import NETWORKS
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import NetworkList, NetworkMode, NetworkRule


def network_number(network: Union[NetworkMode, NetworkList, str, None]) -> sandbox_pb2.NetworkMode.ValueType:
    """A word's; a list means a filtered network."""
    given: object = network
    if isinstance(given, (Mapping, list, tuple)):
        raise InvalidConfigurationError("the hosts of a network are a NetworkList, as in NetworkList(['pypi.org'])")
    return NETWORKS.number(NetworkMode.FILTERED if isinstance(network, NetworkList) else network)


def network_rule_messages(network: Union[NetworkMode, NetworkList, str, None]) -> List[sandbox_pb2.NetworkRule]:
    """Those of a list. The server reads a host with its ports: there is one who knows what is right."""
    if not isinstance(network, NetworkList):
        return []
    rules = [NetworkRule(rule) if isinstance(rule, str) else rule for rule in network.allow]
    return [
        sandbox_pb2.NetworkRule(
            host=rule.host,
            ports=rule.ports,
            methods=rule.methods,
            paths=rule.paths,
            addresses=rule.addresses,
        )
        for rule in rules
    ]


def network_presets(network: Union[NetworkMode, NetworkList, str, None]) -> List[str]:
    """Those of a list."""
    return list(network.presets) if isinstance(network, NetworkList) else []


def network_rule_of(message: sandbox_pb2.NetworkRule) -> NetworkRule:
    """A rule of an answer."""
    return NetworkRule(
        message.host,
        tuple(message.ports),
        tuple(message.methods),
        tuple(message.paths),
        tuple(message.addresses),
    )
