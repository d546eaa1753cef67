"""The words in which blocking code differs from asynchronous code, and their exchange in a module's text.

Only names are exchanged: comments, line breaks and strings stay as they are. In a docstring the names of classes
change, and in its examples `async` and `await` go. A string that is nothing but a name (`__all__`, a forward reference,
the path of a module) counts as that name. Lines from `# async only` to `# end async only` are left out.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

NAMES: Dict[str, str] = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "aclose": "close",
    "asynccontextmanager": "contextmanager",
    "enter_async_context": "enter_context",
    "push_async_exit": "push",
    "push_async_callback": "callback",
    "async_face": "sync_face",
    "_async": "_sync",
}
DROPPED = ("async", "await")
CLASS_NAME = re.compile(r"\b(_*)Async(?=[A-Z])")
ARTICLE = re.compile(r"\b([Aa])n (?=`*Async[B-DF-HJ-NP-TV-Z])")
ONLY_A_NAME = re.compile(r"""(["'])[\w.]+\1""")
# A doctest prompt, or code that is set in by four columns, or between backquotes.
EXAMPLE_WORDS = re.compile(r"\b(?:async|await) (?=\S)")
EXAMPLE_LINE = re.compile(r"\s*(?:>>>|\.\.\.) ")
INLINE_EXAMPLE = re.compile(r"`[^`\n]+`")
BLOCK_START, BLOCK_END = "# async only", "# end async only"
# Tokens without meaning for the statement they stand in.
LAYOUT = (tokenize.COMMENT, tokenize.NL)
BEFORE_STATEMENT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


class RewriteError(Exception):
    """The module has something that no exchange of words makes blocking."""


class Edit(NamedTuple):
    """Text between two places (line from 1, column from 0) and what comes instead."""

    start: Tuple[int, int]
    end: Tuple[int, int]
    text: str


def sync_source(source: str) -> str:
    """The module with every word exchanged; not yet formatted."""
    remaining = _without_async_only(source)
    tokens = list(tokenize.generate_tokens(io.StringIO(remaining).readline))
    return _edited(remaining, sorted(_edits(tokens)))


def refuse_leftovers(module: str) -> None:
    """Raises when a rewritten module still waits for something."""
    lines = module.splitlines()
    for node in ast.walk(ast.parse(module)):
        # Before Python 3.12 an f-string is one token, with no words in it to exchange.
        if isinstance(node, ast.Await):
            raise RewriteError(f"give what is awaited in an f-string a name first: {lines[node.lineno - 1].strip()}")
        if isinstance(node, ast.Name) and node.id == "asyncio":
            remedy = f"belongs into _face or between `{BLOCK_START}` and `{BLOCK_END}`"
            raise RewriteError(f"asyncio {remedy}: {lines[node.lineno - 1].strip()}")


def sync_name(name: str) -> str:
    """One identifier, exchanged."""
    return NAMES.get(name) or CLASS_NAME.sub(r"\1", name)


def _edits(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[Edit]:
    for index, token in enumerate(tokens):
        if token.type == tokenize.NAME and token.string in DROPPED:
            following = tokens[index + 1]
            yield Edit(token.start, following.start if following.start[0] == token.end[0] else token.end, "")
            if token.string == "await":
                yield from _needless_parentheses(tokens, index)
        elif token.type == tokenize.NAME:
            if token.string == "AsyncGenerator":
                yield from _generator_parameters(tokens, index)
            yield from _exchange(token, sync_name(token.string))
        elif token.type == tokenize.STRING and _is_docstring(tokens, index):
            yield from _exchange(token, _sync_docstring(token))
        elif token.type == tokenize.STRING and ONLY_A_NAME.fullmatch(token.string):
            yield from _exchange(token, re.sub(r"\w+", lambda name: sync_name(name.group()), token.string))


def _exchange(token: tokenize.TokenInfo, text: str) -> Iterator[Edit]:
    if text != token.string:
        yield Edit(token.start, token.end, text)


def _needless_parentheses(tokens: Sequence[tokenize.TokenInfo], index: int) -> Iterator[Edit]:
    """`(await call()).name` has them for `await` alone."""
    before, opening = tokens[index - 2], tokens[index - 1]
    is_call = before.string in (")", "]") or (before.type == tokenize.NAME and not keyword.iskeyword(before.string))
    if opening.string != "(" or is_call:
        return
    closing = _closing(tokens, index - 1)
    if tokens[closing + 1].string not in (".", "[") or tokens[closing].start[0] != opening.start[0]:
        return
    depth = 0
    for token in tokens[index + 1 : closing]:
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        is_name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
        if depth == 0 and not (is_name or token.string in (".", ")", "]")):
            return
    yield Edit(opening.start, opening.end, "")
    yield Edit(tokens[closing].start, tokens[closing].end, "")


def _generator_parameters(tokens: Sequence[tokenize.TokenInfo], index: int) -> Iterator[Edit]:
    """AsyncGenerator has two parameters, Generator also the type of what it returns."""
    if tokens[index + 1].string != "[":
        return
    closing = _closing(tokens, index + 1)
    yield Edit(tokens[closing].start, tokens[closing].start, ", None" if tokens[closing - 1].string != "," else "None")


def _closing(tokens: Sequence[tokenize.TokenInfo], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].type == tokenize.OP:
            depth += (tokens[index].string in "([{") - (tokens[index].string in ")]}")
            if depth == 0:
                return index
    raise RewriteError(f"a bracket of line {tokens[opening].start[0]} is not closed")


def _is_docstring(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    """A string that is a whole statement."""
    before = (tokens[place].type for place in range(index - 1, -1, -1) if tokens[place].type not in LAYOUT)
    after = tokens[index + 1].type
    return next(before, tokenize.NEWLINE) in BEFORE_STATEMENT and after in (tokenize.NEWLINE, tokenize.COMMENT)


def _sync_docstring(token: tokenize.TokenInfo) -> str:
    example_column = token.start[1] + 4
    lines = CLASS_NAME.sub(r"\1", ARTICLE.sub(r"\1 ", token.string)).split("\n")
    return "\n".join(_sync_example(line) if _is_example(line, example_column) else _sync_prose(line) for line in lines)


def _is_example(line: str, column: int) -> bool:
    return EXAMPLE_LINE.match(line) is not None or line.startswith(" " * column)


def _sync_example(line: str) -> str:
    return EXAMPLE_WORDS.sub("", line)


def _sync_prose(line: str) -> str:
    return INLINE_EXAMPLE.sub(lambda example: _sync_example(example.group()), line)


def _without_async_only(source: str) -> str:
    kept: List[str] = []
    start = 0
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        mark = line.strip()
        if mark == BLOCK_START:
            if start:
                raise RewriteError(f"line {number}: `{BLOCK_START}` inside of that of line {start}")
            start = number
        elif mark == BLOCK_END:
            if not start:
                raise RewriteError(f"line {number}: `{BLOCK_END}` without a beginning")
            start = 0
        elif not start:
            kept.append(line)
    if start:
        raise RewriteError(f"line {start}: `{BLOCK_START}` without an end")
    return "".join(kept)


def _edited(source: str, edits: Sequence[Edit]) -> str:
    lines = source.splitlines(keepends=True)
    for edit in reversed(edits):
        (first, from_column), (last, to_column) = edit.start, edit.end
        text = lines[first - 1][:from_column] + edit.text + lines[last - 1][to_column:]
        lines[first - 1 : last] = [text]
    return "".join(lines)
