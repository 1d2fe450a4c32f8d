"""What the sanitizer is to let pass, each with the reason: a comment beside the line, or an option.

    T.copy(y, Y[row, 0])  # tilelang: allow S203 -- two blocks write the same halo

The comment stands behind the statement or on a line of its own before it; in a file of MLIR it begins with ``//``. It holds for
hazards one of whose two ops comes from that statement. Where a script cannot be edited, ``--allow S203:FILE:LINE=reason`` does
the same; ``FILE`` is the path or its last parts. Without a reason either is an error, and one that lets nothing pass is an
error too, once all launches are done.
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

__all__ = ["Allowance", "beside", "has_comments", "parse"]

_WORD = r"(?:#|//)\s*tilelang:\s*(?P<rest>.*)"
_ALLOW = r"allow\s+(?P<codes>\w+(?:\s*,\s*\w+)*)(?:\s*--\s*(?P<reason>.*))?$"
_OPTION = r"(?s)(?P<code>[^:=]+):(?P<file>[^=]+):(?P<line>\d+)(?:=(?P<reason>.*))?$"  # compiled where they are needed


@dataclass(frozen=True)
class Allowance:
    """What is let pass.

    Attributes:
        codes: codes of hazards.
        file: the file, or the last parts of its path.
        first, last: lines of the statement.
        reason: the reason.
        at: where the comment stands; None for an option.
    """

    codes: tuple[str, ...]
    file: str
    first: int
    last: int
    reason: str
    at: Location | None = None

    def covers(self, hazard: Hazard) -> bool:
        """Whether it lets a hazard pass."""
        if hazard.code not in self.codes:
            return False
        places = [site.location for site in (hazard.first, hazard.second) if site is not None]
        return any(place is not None and self.first <= place.line <= self.last and self._in(place.file) for place in places)

    def _in(self, file: str) -> bool:
        if self.at is not None:
            return file == self.file
        wanted = PurePath(self.file).parts
        return PurePath(file).parts[-len(wanted):] == wanted or Path(file) == Path(self.file).absolute()

    def idle(self) -> TileError:
        """The error for one that let nothing pass."""
        said = ", ".join(self.codes)
        where = "" if self.at is not None else f" at {self.file}:{self.first}"
        return TileError(f"nothing is let pass here: no kernel had {said}{where}", code="T415", location=self.at,
                         help="remove the comment" if self.at is not None else "remove the option, or mend its line")


def parse(option: str) -> Allowance:
    """An allowance from an option ``CODE:FILE:LINE=reason``.

    Raises:
        TileError: T414 it is not of that form, or has no reason.
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
            raise TileError(f"there is no hazard {code!r}", code="T414", location=at, help=f"one of {', '.join(CODES)}")
    return codes


def has_comments(file: str) -> bool:
    """Whether a file may have comments to this package; it is a lot faster to tell than where they stand."""
    checkcache(file)
    return _speaks("".join(getlines(file)))


def _speaks(text: str) -> bool:
    return "tilelang:" in text and re.search(_WORD, text) is not None


def beside(file: str, first: int, last: int) -> list[Allowance]:
    """The allowances in the comments of some lines of a file.

    Raises:
        TileError: T414 one of them cannot be read, or has no reason.
    """
    checkcache(file)
    comments = _comments(file, "".join(getlines(file)))
    return [_read(file, *comment) for comment in comments if first <= comment[1] <= last]


def _read(file: str, text: str, line: int, column: int, start: int, end: int) -> Allowance:
    at = Location(file, line, column + 1, column + 1 + len(text))
    match = re.match(_ALLOW, text_behind(text))
    if match is None:
        raise TileError(f"cannot read {text!r}", code="T414", location=at, help="write `tilelang: allow S203 -- the reason`")
    codes = _codes(match["codes"], at)
    reason = (match["reason"] or "").strip()
    if not reason:
        raise TileError(f"{', '.join(codes)} is allowed without a reason", code="T414", location=at,
                        help=f"write `tilelang: allow {', '.join(codes)} -- the reason`")
    return Allowance(codes, file, start, end, reason, at)


def text_behind(comment: str) -> str:
    """What a comment says to this package; empty where it says nothing."""
    match = re.match(_WORD, comment)
    return match["rest"].strip() if match is not None else ""


@lru_cache(maxsize=64)
def _comments(file: str, text: str) -> tuple[tuple[str, int, int, int, int], ...]:
    """Comments to this package: text, line, column, first and last line of the statement that they belong to."""
    return tuple(_of_mlir(text) if file.endswith(".mlir") else _of_python(text))


def _of_mlir(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        place = line.find("//")
        if place >= 0 and text_behind(line[place:]):
            alone = not line[:place].strip()
            target = number + 1 if alone else number
            while alone and target <= len(lines) and lines[target - 1].strip().startswith("//"):
                target += 1
            yield line[place:], number, place, target, target


def _of_python(text: str) -> Iterator[tuple[str, int, int, int, int]]:
    if not _speaks(text):  # to take a script apart takes longer than to judge a launch
        return
    waiting: list[tuple[str, int, int]] = []
    inside = False  # of a statement
    start = 0
    skipped = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                if text_behind(token.string):
                    waiting.append((token.string, *token.start))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                yield from ((*comment, start if inside else comment[1], token.start[0]) for comment in waiting)
                waiting, inside = [], False
            elif not inside and token.type not in skipped:
                inside, start = True, token.start[0]
    except (tokenize.TokenError, SyntaxError):  # a file that changed since its kernel was made: it has no comments to be heard
        return
