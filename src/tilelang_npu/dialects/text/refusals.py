"""Messages about text that is not MLIR, in place of messages about the internals of xDSL or Python."""

from __future__ import annotations

import linecache
import re
import unicodedata

from tilelang_npu.errors import Location, TileError

MAX_NESTING = 64
"""How many brackets may be open at once; parser, rules and passes recurse into nested text and ops."""

_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[(\[{<]|[)\]}>]')
_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z))*\Z")
_BYTE_ORDER_MARK = "\ufeff"
_NAMED = {"%": "a value", "!": "a type", "#": "an attribute", "^": "a block"}
_PRINTABLE = range(0x20, 0x7F)


def is_empty(text: str) -> bool:
    """Whether a text has only spaces and comments."""
    return _COMMENTS.match(text) is not None


def reject_invalid_text(text: str, filename: str) -> None:
    """Rejects text whose errors are found without parsing.

    Raises:
        TileError: T601, the text is empty, begins with a byte order mark, or is nested too deeply.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise _text_error(text, filename, 0, "the text begins with a byte order mark (U+FEFF), which MLIR does not have",
                  "save the file as UTF-8 without one")
    if is_empty(text):
        what = "has only comments" if text.strip() else "is empty"
        raise _text_error(text, filename, 0, f"the text {what}: a module or a function was expected",
                          "an empty module is `module {}`")
    depth = 0
    for found in _BRACKET.finditer(text):
        if found[0] in "([{<":
            depth += 1
            if depth > MAX_NESTING:
                raise _text_error(text, filename, found.start(),
                                  f"{depth} brackets are open here; at most {MAX_NESTING} are allowed",
                                  "move the inner part into a function of its own, or define an alias for it: #name = ...")
        elif found[0] in ")]}>":
            depth = max(depth - 1, 0)


def describe_invalid_token(message: str, text: str) -> str:
    """The message about characters that begin no token; ``message`` is xDSL's, ``text`` the characters."""
    first = text[:1]
    if message.startswith("Expected suffix identifier"):
        return (f"{first} begins the name of {_NAMED.get(first, 'something')}, but no name follows. A name is digits, or "
                "begins with a letter or one of $ . _ - and may go on with digits")
    if message.startswith("Unexpected character"):
        return f"{_character(message.rpartition(': ')[2] or first)} begins no token of MLIR outside of a string"
    return message


def improve_message(message: str, found: str) -> str:
    """Returns a message of xDSL's parser, or a clearer message in its place; ``found`` is the token that it is about."""
    what = f"found {found[:40]!r}" if found.strip() else "the text ends here"
    if message.startswith("Could not parse entire input"):
        return f"expected an operation: {what}"
    if message.strip() == "in block definition":
        return f"expected an operation, a block such as ^bb1, or the '}}' of this body: {what}"
    return message


def describe_exception(error: Exception) -> str:
    """The message about text on which xDSL or Python raises an exception other than a parse error."""
    if isinstance(error, RecursionError):
        return "the text is nested too deeply for the rest of the stack; call the parser from fewer nested functions"
    if isinstance(error, MemoryError):
        return "there is not enough memory for what the text describes here"
    line = first_line(error)
    return f"{line} is not known here" if isinstance(error, KeyError) else line


def first_line(error: Exception) -> str:
    """The first line of an exception's message, and the next one if the first ends with a colon; else the exception's name."""
    first, *rest = str(error).strip().split("\n")
    return " ".join((first, *rest[:first.endswith(":")])) or type(error).__name__


def cache_lines(text: str, filename: str) -> None:
    """Lets messages quote lines of text that is not in a file."""
    if filename.startswith("<"):
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def _text_error(text: str, filename: str, position: int, message: str, advice: str) -> TileError:
    cache_lines(text, filename)
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return TileError(message, code="T601", location=Location(filename, line, column, column + 1), help=advice)


def _character(text: str) -> str:
    """A character as messages show it."""
    if len(text) != 1:
        return repr(text)
    name = unicodedata.name(text, "a control character")
    shown = f"{text!r} " if ord(text) in _PRINTABLE else ""
    return f"the character {shown}(U+{ord(text):04X}, {name})"
