"""The wildcards of git (`wildmatch.c` there), which work on bytes.

    ?        one byte, no slash        [a-c] [!a] [[:digit:]]   one byte of a class, no slash
    *        any bytes, no slash       \\x                       the byte x
    **/ at the start of a segment: any number of whole segments; ** that is a last segment: everything

What is not closed, escapes nothing or names an unknown class matches nothing.
"""

from __future__ import annotations

import re
import string
from enum import Enum, auto
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

_SPECIAL = b"*?[\\"
_SLASH = ord("/")
_ALL = frozenset(range(256))
_NAME = _ALL - {_SLASH}


class _Repeat(Enum):
    #: One byte of the members.
    ONCE = auto()
    #: Any number of them.
    MANY = auto()
    #: Any bytes up to a slash and with it, or nothing.
    SEGMENTS = auto()


class _Token(NamedTuple):
    repeat: _Repeat
    members: FrozenSet[int]


#: With more, the expression can take a time that nobody waits for, on a name that is made for it.
_MOST_REPEATS = 2


def literal_length(pattern: bytes) -> int:
    """How much of a pattern stands for itself."""
    return next((at for at, byte in enumerate(pattern) if byte in _SPECIAL), len(pattern))


def wild_matcher(pattern: bytes) -> Callable[[bytes], bool]:
    """Tells whether a text is what the pattern says, all of it."""
    tokens = _read_tokens(pattern)
    if tokens is None:
        return lambda _text: False
    if sum(token.repeat is not _Repeat.ONCE for token in tokens) > _MOST_REPEATS:
        return lambda text: _walk_through(tokens, text)
    expression = re.compile(b"".join(map(_expression, tokens)), re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def _read_tokens(pattern: bytes) -> Optional[List[_Token]]:
    tokens: List[_Token] = []
    at = 0
    while at < len(pattern):
        token, at = _read_token(pattern, at)
        if token is None:
            return None
        tokens.append(token)
    return tokens


def _read_token(pattern: bytes, at: int) -> Tuple[Optional[_Token], int]:
    """What is at a place, and the place behind it."""
    byte = pattern[at : at + 1]
    if byte == b"*":
        return _read_stars(pattern, at)
    if byte == b"?":
        return _Token(_Repeat.ONCE, _NAME), at + 1
    if byte == b"[":
        members, end = _read_class(pattern, at + 1)
        return (None if members is None else _Token(_Repeat.ONCE, members - {_SLASH})), end
    if byte == b"\\":
        at += 1
        byte = pattern[at : at + 1]
    return (_Token(_Repeat.ONCE, frozenset(byte)) if byte else None), at + 1


def _read_stars(pattern: bytes, at: int) -> Tuple[_Token, int]:
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    starts_segment = at == 0 or pattern[at - 1] == _SLASH
    behind = pattern[end : end + 2]
    if end - at == 1 or not starts_segment or not (behind == b"" or behind[0] == _SLASH or behind == b"\\/"):
        return _Token(_Repeat.MANY, _NAME), end
    if behind[:1] == b"/":
        return _Token(_Repeat.SEGMENTS, _ALL), end + 1
    return _Token(_Repeat.MANY, _ALL), end


def _ascii(characters: str) -> FrozenSet[int]:
    return frozenset(characters.encode())


_CLASSES: Dict[bytes, FrozenSet[int]] = {
    b"alnum": _ascii(string.ascii_letters + string.digits),
    b"alpha": _ascii(string.ascii_letters),
    b"blank": _ascii(" \t"),
    b"cntrl": frozenset([*range(0x20), 0x7F]),
    b"digit": _ascii(string.digits),
    b"graph": frozenset(range(0x21, 0x7F)),
    b"lower": _ascii(string.ascii_lowercase),
    b"print": frozenset(range(0x20, 0x7F)),
    b"punct": _ascii(string.punctuation),
    b"space": _ascii(" \t\n\r"),
    b"upper": _ascii(string.ascii_uppercase),
    b"xdigit": _ascii(string.hexdigits),
}


def _read_class(pattern: bytes, at: int) -> Tuple[Optional[FrozenSet[int]], int]:
    """The bytes of a class, and the place behind it. A bracket that comes first is a member and no end."""
    is_negated = pattern[at : at + 1] in (b"!", b"^")
    at += is_negated
    members: Set[int] = set()
    #: Where a range can begin.
    low: Optional[int] = None
    start = at
    close = -1
    while pattern[at : at + 1] != b"]" or at == start:
        # Looked for once, however many brackets stand in front of it.
        close = pattern.find(b"]", at) if close < at else close
        if close < 0:
            return None, len(pattern)
        named = _class_name(pattern, at, close)
        is_range = low is not None and re.compile(rb"-[^\]]", re.DOTALL).match(pattern, at) is not None
        at += is_range
        if named is not None and not is_range:
            if named not in _CLASSES:
                return None, at
            members |= _CLASSES[named]
            at, low = close + 1, None
            continue
        at += pattern[at : at + 1] == b"\\"
        if at >= len(pattern):
            return None, at
        members.update(range(low if is_range and low is not None else pattern[at], pattern[at] + 1))
        low = None if is_range else pattern[at]
        at += 1
    return (_ALL - members if is_negated else frozenset(members)), at + 1


def _class_name(pattern: bytes, at: int, close: int) -> Optional[bytes]:
    """What stands in [: and :] at a place, if the bracket that closes next belongs to that."""
    is_named = pattern[at : at + 2] == b"[:" and close - 1 >= at + 2 and pattern[close - 1 : close] == b":"
    return pattern[at + 2 : close - 1] if is_named else None


def _expression(token: _Token) -> bytes:
    if token.repeat is _Repeat.SEGMENTS:
        return b"(?:.*/)?"
    if token.repeat is _Repeat.MANY:
        return b".*" if token.members == _ALL else b"[^/]*"
    if len(token.members) == 1:
        return re.escape(bytes(token.members))
    # A class of nothing is no expression.
    return b"[%s]" % b"".join(b"\\x%02x" % byte for byte in sorted(token.members)) if token.members else b"(?!)"


def _walk_through(tokens: List[_Token], text: bytes) -> bool:
    """The same without an expression: all ways at once, so that no text takes longer than its length times theirs.

    A state is the index of the token that comes next; of one that has begun to take segments, its complement.
    """
    reached = _with_skips(tokens, {0})
    for byte in text:
        after: Set[int] = set()
        for state in reached:
            at = state if state >= 0 else ~state
            if at == len(tokens):
                continue
            repeat, members = tokens[at]
            if repeat is _Repeat.SEGMENTS:
                after |= {~at, at + 1} if byte == _SLASH else {~at}
            elif byte in members:
                after.add(at if repeat is _Repeat.MANY else at + 1)
        reached = _with_skips(tokens, after)
    return len(tokens) in reached


def _with_skips(tokens: List[_Token], reached: Set[int]) -> Set[int]:
    """With the states behind what may stand for nothing.

    Whoever finds a state goes on from there, so that nobody else has to.
    """
    found = set(reached)
    for state in reached:
        while 0 <= state < len(tokens) and tokens[state].repeat is not _Repeat.ONCE and state + 1 not in found:
            state += 1
            found.add(state)
    return found
