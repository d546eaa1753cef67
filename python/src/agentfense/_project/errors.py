"""What can be wrong with the policy file of a project."""

from __future__ import annotations

from typing import NamedTuple, Optional

from agentfense.exceptions import InvalidConfigurationError


class TextPlace(NamedTuple):
    """Where something is in a text; both count from 1."""

    line: int
    column: int


class YamlError(Exception):
    """A mistake in a text, and where it is."""

    def __init__(self, message: str, place: TextPlace) -> None:
        super().__init__(message)
        self.place = place


class ProjectPolicyError(InvalidConfigurationError):
    """The policy file of a project cannot be used. The message begins with the file and, where known, the place."""

    def __init__(
        self, path: str, problem: str, *, place: Optional[TextPlace] = None, hint: Optional[str] = None
    ) -> None:
        where = path if place is None else f"{path}:{place.line}:{place.column}"
        super().__init__(f"{where}: {problem}", hint=hint)
        self.path = path
        self.line = None if place is None else place.line
        self.column = None if place is None else place.column
