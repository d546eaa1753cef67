"""YAML (and so JSON) of unknown origin, and where its parts stand.

One document, no unknown tags, no key twice, no more depth than a person writes, and aliases that stand for no more than
a bounded multiple of the text. Plain words mean what YAML 1.2 says: `no` and `on` are texts, `0755` is a number like
others, and `<<` is a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import yaml
from typing_extensions import Literal

from agentfense._project.errors import TextPlace, YamlError

_DEEPEST = 64
_CORE = "tag:yaml.org,2002:"

#: Steps from the whole to a part: `("permissions", 2)`.
Path = Sequence[Union[str, int]]


@dataclass
class _Node:
    place: TextPlace
    #: A list, a dict, or a scalar's value.
    value: Any = None
    #: Keys and values in turn, or items.
    children: List[_Node] = field(default_factory=list)
    kind: Literal["scalar", "list", "map", "alias"] = "scalar"
    #: Of a scalar, as it is written.
    text: str = ""
    #: Parts in it, those behind aliases counted each time.
    size: int = 1
    is_complete: bool = False


class YamlText:
    """The value of a YAML text."""

    def __init__(self, root: Optional[_Node]) -> None:
        self._root = root
        self.value: Any = None if root is None else root.value

    def place_of(self, path: Path, part: Literal["key", "value"] = "value") -> TextPlace:
        """Where a part of the value stands, or its key; for what is behind an alias, the alias."""
        node = self._root
        place = TextPlace(1, 1) if node is None else node.place
        for step in path:
            key, node = _part_of(node, step)
            if node is None:
                break
            place = key.place if part == "key" and key is not None else node.place
        return place


def parse_yaml(text: str) -> YamlText:
    """Raises a `YamlError` for the first mistake."""
    try:
        return YamlText(_Builder().build(yaml.parse(text, Loader=yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        if error.context == "while scanning an alias":
            raise YamlError(_no_alias("*"), _place_of(error.context_mark)) from error
        sentence = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(sentence, _place_of(error.problem_mark or error.context_mark)) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = TextPlace(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise YamlError("a character that no text has", place) from error


class _Builder:
    """Makes nodes of the parser's events, without recursion: hostile texts are deep."""

    def __init__(self) -> None:
        self._anchors: Dict[str, _Node] = {}
        self._open: List[_Node] = []
        self._root: Optional[_Node] = None
        self._parts = 0

    def build(self, events: Iterator[yaml.Event]) -> Optional[_Node]:
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlError("multiple documents; one is expected", _place_of(event.start_mark))
            elif isinstance(event, yaml.AliasEvent):
                self._add(self._alias(event))
            elif isinstance(event, yaml.ScalarEvent):
                self._add(_scalar(event), event.anchor)
            elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
        # A short text that stands for a long one is an attack on whoever reads it.
        if self._root is not None and self._root.size > 1000 + 10 * self._parts:
            raise YamlError("aliases that multiply", TextPlace(1, 1))
        return self._root

    def _begin(self, event: Union[yaml.SequenceStartEvent, yaml.MappingStartEvent]) -> None:
        kind: Literal["list", "map"] = "list" if isinstance(event, yaml.SequenceStartEvent) else "map"
        place = _place_of(event.start_mark)
        if event.tag not in (None, "!", _CORE + ("seq" if kind == "list" else "map")):
            raise _unresolved(event.tag, place)
        if len(self._open) >= _DEEPEST:
            raise YamlError("lists or maps in one another, too deep", place)
        node = _Node(place, [] if kind == "list" else {}, kind=kind)
        self._add(node, event.anchor)
        self._open.append(node)

    def _end(self) -> None:
        node = self._open.pop()
        node.is_complete = True
        node.size = 1 + sum(child.size for child in node.children)
        if node.kind == "list":
            node.value.extend(child.value for child in node.children)
            return
        for key, child in _pairs(node):
            if key.kind != "scalar":
                raise YamlError("a key that is no text", key.place)
            if key.text in node.value:
                raise YamlError(f"the key {key.text} is there twice", key.place)
            node.value[key.text] = child.value

    def _add(self, node: _Node, anchor: Optional[str] = None) -> None:
        self._parts += 1
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].children.append(node)
        else:
            self._root = node

    def _alias(self, event: yaml.AliasEvent) -> _Node:
        place = _place_of(event.start_mark)
        anchor = event.anchor or ""
        target = self._anchors.get(anchor)
        # An alias inside what it stands for would make a value without an end.
        if target is None or not target.is_complete:
            raise YamlError(_no_alias(f"*{anchor}"), place)
        return _Node(place, target.value, kind="alias", size=target.size)


def _part_of(node: Optional[_Node], step: Union[str, int]) -> Tuple[Optional[_Node], Optional[_Node]]:
    """The key and the value that a step leads to."""
    if node is not None and node.kind == "map":
        return next(((key, value) for key, value in _pairs(node) if key.text == step), (None, None))
    if node is not None and node.kind == "list" and isinstance(step, int) and step < len(node.children):
        return None, node.children[step]
    return None, None


def _pairs(node: _Node) -> Iterator[Tuple[_Node, _Node]]:
    return zip(node.children[::2], node.children[1::2])


_TRUTHS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASES = {"0o": 8, "0x": 16}


def _scalar(event: yaml.ScalarEvent) -> _Node:
    place = _place_of(event.start_mark)
    is_plain = event.implicit[0] and event.tag is None
    value: Any = _plain_value(event.value) if is_plain else event.value
    if event.tag is not None and event.tag not in ("!", _CORE + "str"):
        value = _tagged_value(event.tag, event.value, place)
    return _Node(place, value, text=event.value, is_complete=True)


def _plain_value(text: str) -> Any:
    if text in _NOTHING:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if re.fullmatch(r"0o[0-7]+|0x[0-9a-fA-F]+", text):
        return int(text[2:], _BASES[text[:2]])
    # Python refuses to read thousands of digits at once; nobody means such a number.
    if re.fullmatch(r"[-+]?[0-9]{1,400}", text):
        return int(text)
    return float(text.replace(".inf", "inf").replace(".nan", "nan")) if _FLOAT.fullmatch(text) else text


_TAGS = {"null": type(None), "bool": bool, "int": int, "float": float}


def _tagged_value(tag: str, text: str, place: TextPlace) -> Any:
    kind = _TAGS.get(tag[len(_CORE) :]) if tag.startswith(_CORE) else None
    value = _plain_value(text)
    if kind is None or not isinstance(value, kind):
        raise _unresolved(tag, place)
    return value


def _unresolved(tag: Optional[str], place: TextPlace) -> YamlError:
    return YamlError(f"Unresolved tag: {(tag or '').replace(_CORE, '!!')}", place)


def _place_of(mark: Optional[yaml.Mark]) -> TextPlace:
    return TextPlace(1, 1) if mark is None else TextPlace(mark.line + 1, mark.column + 1)


def _no_alias(alias: str) -> str:
    return f'{alias} stands for nothing; a text that begins with * needs quotes: "**/*"'
