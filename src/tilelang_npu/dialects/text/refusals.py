"""What is said about text that is no MLIR, where xDSL or Python would speak of themselves."""

from __future__ import annotations

import linecache
import re
import unicodedata

from tilelang_npu.errors import Location, TileError

MOST_NESTED = 64
"""How many brackets may be open at a place; the reader, the rules and the passes call themselves for what is inside."""

_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[(\[{<]|[)\]}>]')
_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z))*\Z")
_BYTE_ORDER_MARK = "\ufeff"
_NAMED = {"%": "a value", "!": "a type", "#": "an attribute", "^": "a block"}
_PRINTABLE = range(0x20, 0x7F)


def is_empty(text: str) -> bool:
    """Whether a text has spaces and comments alone."""
    return _COMMENTS.match(text) is not None


def refuse_what_is_no_text(text: str, filename: str) -> None:
    """Refuse what needs no reader to be refused.

    Raises:
        TileError: T601, the text is empty, begins with a byte order mark, or is nested too deeply.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise _at(text, filename, 0, "the text begins with a byte order mark (U+FEFF), which MLIR does not have",
                  "save the file as UTF-8 without one")
    if is_empty(text):
        what = "has comments alone" if text.strip() else "is empty"
        raise _at(text, filename, 0, f"the text {what}: a module or a function was expected", "an empty module is `module {}`")
    depth = 0
    for found in _BRACKET.finditer(text):
        if found[0] in "([{<":
            depth += 1
            if depth > MOST_NESTED:
                raise _at(text, filename, found.start(), f"{depth} brackets are open here; at most {MOST_NESTED} are read",
                          "put what is inside into a function of its own, or behind an alias: #name = ...")
        elif found[0] in ")]}>":
            depth = max(depth - 1, 0)


def no_token(message: str, text: str) -> str:
    """What is said about characters that begin nothing; ``message`` is xDSL's, ``text`` what it is about."""
    first = text[:1]
    if message.startswith("Expected suffix identifier"):
        return (f"{first} begins the name of {_NAMED.get(first, 'something')}, and no name follows: digits, or a letter or one "
                "of $ . _ - and behind it also digits")
    if message.startswith("Unexpected character"):
        return f"{_character(message.rpartition(': ')[2] or first)} begins nothing in MLIR, outside of a string"
    return message


def in_our_words(message: str, found: str, text: str) -> str:
    """A message of xDSL's parser, or what it should say; ``found`` is the token that it is about."""
    what = f"found {found[:40]!r}" if found.strip() else "the text ends here"
    if message.startswith("Could not parse entire input"):
        return f"expected an operation: {what}"
    if message.strip() == "in block definition":
        return f"expected an operation, a block such as ^bb1, or the '}}' of this body: {what}"
    return message


def of_python(error: Exception) -> str:
    """What is said where the text makes no operation or attribute, and xDSL or Python stumbles over it."""
    if isinstance(error, RecursionError):
        return "the text is nested too deeply for what is left of the stack; call it from fewer functions"
    if isinstance(error, MemoryError):
        return "there is not enough memory for what the text says here"
    said = first_line(error)
    if isinstance(error, KeyError):
        return f"{said} is not known here"
    return said


def first_line(error: Exception) -> str:
    """The first line of an exception's message, with what it announces by a colon, or the exception's name."""
    first, *rest = str(error).strip().split("\n")
    return " ".join((first, *rest[:first.endswith(":")])) or type(error).__name__


def remember(text: str, filename: str) -> None:
    """Let messages show lines of text that is in no file."""
    if filename.startswith("<"):
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def _at(text: str, filename: str, position: int, message: str, advice: str) -> TileError:
    remember(text, filename)
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return TileError(message, code="T601", location=Location(filename, line, column, column + 1), help=advice)


def _character(text: str) -> str:
    """A character as a message can show it."""
    if len(text) != 1:
        return repr(text)
    name = unicodedata.name(text, "a control character")
    shown = f"{text!r} " if ord(text) in _PRINTABLE else ""
    return f"the character {shown}(U+{ord(text):04X}, {name})"
