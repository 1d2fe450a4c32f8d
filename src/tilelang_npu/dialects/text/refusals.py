"""Error messages about text that is not valid MLIR, which replace messages about the internals of xDSL or Python."""

from __future__ import annotations

import linecache
import re
import unicodedata

from tilelang_npu.errors import Location, TileError

MAX_NESTING = 64
"""The largest number of brackets that may be open at once. Parser, verifiers and passes recurse into nested text and ops."""

_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[(\[{<]|[)\]}>]')
_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z))*\Z")
_BYTE_ORDER_MARK = "\ufeff"
_NAMED = {"%": "a value", "!": "a type", "#": "an attribute", "^": "a block"}
_PRINTABLE = range(0x20, 0x7F)


def is_empty(text: str) -> bool:
    """Whether a text consists only of white space and comments."""
    return _COMMENTS.match(text) is not None


def reject_invalid_text(text: str, filename: str) -> None:
    """Checks a text for the errors that can be found without parsing.

    Raises:
        TileError: T601, the text is empty, begins with a byte order mark, or is nested too deeply.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        raise _text_error(text, filename, 0, "the text begins with a byte order mark (U+FEFF), which MLIR does not have",
                  "save the file as UTF-8 without a byte order mark")
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
                                  f"{depth} brackets are open here; at most {MAX_NESTING} may be open at once",
                                  "move the inner part into a separate function, or define an alias for it: #name = ...")
        elif found[0] in ")]}>":
            depth = max(depth - 1, 0)


def describe_invalid_token(message: str, text: str) -> str:
    """Returns the error message for characters that begin no token.

    Args:
        message: the message of xDSL's lexer.
        text: the characters.
    """
    first = text[:1]
    if message.startswith("Expected suffix identifier"):
        return (f"{first} begins the name of {_NAMED.get(first, 'something')}, but no name follows. A name is digits, or "
                "begins with a letter or one of $ . _ - and may go on with digits")
    if message.startswith("Unexpected character"):
        return f"{_character(message.rpartition(': ')[2] or first)} begins no token of MLIR outside of a string"
    return message


def improve_message(message: str, found: str) -> str:
    """Returns a clearer message for a message of xDSL's parser, or the message itself if it is clear.

    Args:
        message: the message of xDSL's parser.
        found: the text of the token at which the parser failed.
    """
    what = f"found {found[:40]!r}" if found.strip() else "the text ends here"
    if message.startswith("Could not parse entire input"):
        return f"expected an operation: {what}"
    if message.strip() == "in block definition":
        return f"expected an operation, a block such as ^bb1, or the '}}' of this body: {what}"
    return message


def describe_exception(error: Exception) -> str:
    """Returns the error message for text on which the parser raised an exception other than a parse error."""
    if isinstance(error, RecursionError):
        return "the text is nested too deeply for the remaining Python stack; call the parser from fewer nested functions"
    if isinstance(error, MemoryError):
        return "there is not enough memory to construct what the text describes here"
    line = first_line(error)
    return f"{line} is not known here" if isinstance(error, KeyError) else line


def first_line(error: Exception) -> str:
    """Returns the first line of an exception's message, joined with the second line if the first ends with a colon.

    Returns the name of the exception's class if the message is empty.
    """
    first, *rest = str(error).strip().split("\n")
    return " ".join((first, *rest[:first.endswith(":")])) or type(error).__name__


def cache_lines(text: str, filename: str) -> None:
    """Stores a text under a name such as ``<string>`` in ``linecache``, so that error messages can quote its lines."""
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
