"""Allowances: comments in a kernel, or options, that tell the sanitizer not to report certain hazards, with a reason.

    T.copy(y, Y[row, 0])  # tilelang: allow S203 -- two blocks write the same halo

The comment is at the end of the statement's line, or alone on a line above the statement; in MLIR text it begins with ``//``.
It allows a hazard if one of the hazard's two ops comes from that statement. For a script that cannot be edited, the option
``--allow S203:FILE:LINE=reason`` does the same; ``FILE`` is the path or its last parts. An allowance without a reason is an
error. An allowance that has matched no hazard after all launches is an error, too.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from linecache import checkcache, getlines
from pathlib import Path, PurePath

from tilelang_npu.errors import Location, TileError
from tilelang_npu.simulator.sanitizer.hazard import CODES, Hazard

_COMMENT = r"(?:#|//)\s*tilelang:\s*(?P<rest>.*)"
_ALLOW = r"allow\s+(?P<codes>\w+(?:\s*,\s*\w+)*)(?:\s*--\s*(?P<reason>.*))?$"
_OPTION = r"(?s)(?P<code>[^:=]+):(?P<file>[^=]+):(?P<line>\d+)(?:=(?P<reason>.*))?$"  # not compiled at import


@dataclass(frozen=True)
class Allowance:
    """A user's permission for hazards at a statement, which the sanitizer then does not report as errors.

    Attributes:
        codes: the codes of the allowed hazards, such as ``S203``.
        file: the path of the statement's file; for an option, the path or its last parts.
        first, last: the first and the last line of the statement.
        reason: the user's reason for the allowance.
        at: the location of the comment; None for an option.
    """

    codes: tuple[str, ...]
    file: str
    first: int
    last: int
    reason: str
    at: Location | None = None

    def allows(self, hazard: Hazard) -> bool:
        """Whether this allowance applies to a hazard: the code is listed, and one of the two ops comes from the statement."""
        if hazard.code not in self.codes:
            return False
        places = [site.location for site in (hazard.first, hazard.second) if site is not None]
        return any(place is not None and self.first <= place.line <= self.last and self._is_file(place.file)
                   for place in places)

    def _is_file(self, path: str) -> bool:
        if self.at is not None:
            return path == self.file
        parts = PurePath(self.file).parts
        return PurePath(path).parts[-len(parts):] == parts or Path(path) == Path(self.file).absolute()

    def idle(self) -> TileError:
        """Returns the error (T415) that reports that this allowance has matched no hazard."""
        where = "" if self.at is not None else f" at {self.file}:{self.first}"
        return TileError(f"an allowance of {', '.join(self.codes)}{where} has no effect: no kernel had this hazard there",
                         code="T415", location=self.at,
                         help="remove the comment" if self.at is not None else "remove the option, or correct its line")


def parse(option: str) -> Allowance:
    """Parses an option ``CODE:FILE:LINE=reason`` to an allowance.

    Raises:
        TileError: T414 the option does not have this form, there is no hazard with the code, or the reason is missing.
    """
    match = re.match(_OPTION, option.strip())
    if match is None:
        raise TileError(f"cannot read the allowance {option!r}", code="T414", help="write it as S203:kernel.py:41=the reason")
    reason = (match["reason"] or "").strip()
    codes = _codes(match["code"].strip(), None)
    if not reason:
        raise TileError(f"the allowance {option!r} has no reason", code="T414", help=f"write {option.split('=')[0]}=the reason")
    line = int(match["line"])
    return Allowance(codes, match["file"], line, line, reason)


def _codes(text: str, at: Location | None) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in text.split(","))
    for code in codes:
        if code not in CODES:
            raise TileError(f"there is no hazard {code!r}", code="T414", location=at,
                            help=f"the codes of hazards are {', '.join(CODES)}")
    return codes


def has_comments(file: str) -> bool:
    """Whether a file contains a comment ``tilelang: ...``. This is much faster than parsing the comments."""
    checkcache(file)
    return _has_comment("".join(getlines(file)))


def _has_comment(text: str) -> bool:
    return "tilelang:" in text and re.search(_COMMENT, text) is not None


def allowances_in(file: str, first: int, last: int) -> list[Allowance]:
    """Returns the allowances in the comments of a file from line ``first`` to line ``last``.

    Raises:
        TileError: T414 an allowance cannot be parsed, or has no reason.
    """
    checkcache(file)
    comments = _comments(file, "".join(getlines(file)))
    return [_parsed(file, *comment) for comment in comments if first <= comment[1] <= last]


def _parsed(file: str, text: str, line: int, column: int, start: int, end: int) -> Allowance:
    at = Location(file, line, column + 1, column + 1 + len(text))
    match = re.match(_ALLOW, _instruction(text))
    if match is None:
        raise TileError(f"cannot read {text!r}", code="T414", location=at, help="write `tilelang: allow S203 -- the reason`")
    codes = _codes(match["codes"], at)
    reason = (match["reason"] or "").strip()
    if not reason:
        raise TileError(f"{', '.join(codes)} is allowed without a reason", code="T414", location=at,
                        help=f"write `tilelang: allow {', '.join(codes)} -- the reason`")
    return Allowance(codes, file, start, end, reason, at)


def _instruction(comment: str) -> str:
    """Returns the text after ``tilelang:`` in a comment; an empty string if the comment is not for this package."""
    match = re.match(_COMMENT, comment)
    return match["rest"].strip() if match is not None else ""


@lru_cache(maxsize=64)
def _comments(file: str, text: str) -> tuple[tuple[str, int, int, int, int], ...]:
    """Returns the comments of a file that are for this package.

    Each is a tuple of the text, the line and column of the comment, and the first and last line of the statement that the
    comment belongs to.
    """
    return tuple(_comments_in_mlir(text) if file.endswith(".mlir") else _comments_in_python(text))


def _comments_in_mlir(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        place = line.find("//")
        if place >= 0 and _instruction(line[place:]):
            alone = not line[:place].strip()
            target = number + 1 if alone else number
            while alone and target <= len(lines) and lines[target - 1].strip().startswith("//"):
                target += 1
            yield line[place:], number, place, target, target


def _comments_in_python(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    if not _has_comment(text):  # tokenizing a script takes longer than judging a launch
        return
    waiting: list[tuple[str, int, int]] = []
    in_statement = False
    start = 0
    skipped = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                if _instruction(token.string):
                    waiting.append((token.string, *token.start))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                yield from ((*comment, start if in_statement else comment[1], token.start[0]) for comment in waiting)
                waiting, in_statement = [], False
            elif not in_statement and token.type not in skipped:
                in_statement, start = True, token.start[0]
    except (tokenize.TokenError, SyntaxError):  # the file has changed since its kernel was made
        return
