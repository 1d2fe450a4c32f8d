"""Parses chips of users: a TOML file with the differences to a chip of this package (docs/hardware.md#chips-of-your-own)."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from tilelang_npu.errors import Location, TileError
from tilelang_npu.target.chip_data import Chip

Key = tuple[str, ...]
"""A key of the file, after the keys of its enclosing tables."""
_FIXED = frozenset({"name", "family", "aliases", "hivm_target", "estimates", "file"})
"""The fields of a chip that are not figures."""


def is_file(name: object) -> bool:
    """Whether the name of a chip is the path of a file."""
    return isinstance(name, Path) or (isinstance(name, str) and name.lower().endswith(".toml"))


def load(path: Path, find: Callable[[str], Chip]) -> Chip:
    """The chip that a file describes.

    Args:
        path: the file.
        find: returns the chip with a name, from which the file starts.

    Raises:
        TileError: T713 the file is wrong; the message names the key, the line, and what is allowed.
    """
    return _ChipFile(path).chip(find)


def figures(row: object) -> dict[str, Any]:
    """The figures of a table of a chip, and its tables that have figures, by name."""
    if isinstance(row, Mapping):
        pairs = dict(row)
    elif is_dataclass(row):
        pairs = {field.name: getattr(row, field.name) for field in fields(row)}
        if isinstance(row, Chip):
            pairs = {name: value for name, value in pairs.items() if name not in _FIXED}
    else:
        return {}
    return {name: value for name, value in pairs.items() if _is_figure(value) or figures(value)}


def _is_whole(row: object, name: str) -> bool:
    """Whether a figure of a table is an integer."""
    if isinstance(row, Mapping):
        return isinstance(row[name], int)
    return is_dataclass(row) and {field.name: field.type for field in fields(row)}[name] == "int"


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _ChipFile:
    """A file that is parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []

    def chip(self, find: Callable[[str], Chip]) -> Chip:
        """The chip that the file describes."""
        table = self._read()
        for needed, example in (("name", '"My910"'), ("like", '"910B3"')):
            if not isinstance(table.get(needed), str) or not table[needed]:
                self._refuse((needed,), f"{needed} is no text" if needed in table else f"{needed} is missing",
                             f"begin with {needed} = {example}")
        start = "start from one of the chips that `tilelang-npu chips` lists"
        if is_file(table["like"]):
            self._refuse(("like",), f"{table['like']} is a file", start)
        try:
            base = find(table["like"])
        except TileError as error:
            self._refuse(("like",), error.message, start, error.notes)
        if base.file:
            self._refuse(("like",), f"{base.name} is described by a file", start)
        estimates = table.get("estimates", [])
        rest = {key: value for key, value in table.items() if key not in ("name", "like", "estimates")}
        made: Chip = replace(self._changed(base, rest, ()), name=table["name"], aliases=(), file=str(self.path.resolve()))
        if made.aiv % made.aic:
            self._refuse(("aiv",), f"{made.aiv} Vector cores for {made.aic} Cube cores", "give a multiple of aic")
        if not isinstance(estimates, list) or not all(isinstance(key, str) for key in estimates):
            self._refuse(("estimates",), "estimates is no list of keys", 'write estimates = ["traffic.hbm_read", "scalar"]')
        for key in estimates:
            row: Any = made
            for part in key.split("."):
                known = figures(row)
                if part not in known:
                    self._refuse(("estimates",), f"{key} is no figure of a chip", _allowed(known))
                row = known[part]
        return replace(made, estimates=tuple(dict.fromkeys((*(key for key in base.estimates if not _given(rest, key)),
                                                            *estimates))))

    def _read(self) -> dict[str, Any]:
        if sys.version_info < (3, 11):
            self._refuse((), "TOML is read by Python 3.11 and later", "run it with a later Python")
        import tomllib

        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = (error.strerror or "cannot be read") if isinstance(error, OSError) else "is no text in UTF-8"
            self._refuse((), why, "give the path of a TOML file")
        self.lines = text.splitlines()
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            at = re.search(r" \(at line (\d+), column (\d+)\)", str(error))
            line, column = map(int, at.groups()) if at else (max(1, len(self.lines)), 1)
            where = Location(str(self.path), line, column)
            raise TileError(f"the chip's file is no TOML: {str(error).partition(' (at ')[0]}", code="T713",
                            location=where, help='a line is KEY = NUMBER, or [TABLE]') from None

    def _changed(self, row: Any, given: Mapping[str, Any], around: Key) -> Any:
        """A table with the figures of the file in place of its own."""
        known = figures(row)
        new: dict[str, Any] = {}
        for name, value in given.items():
            key = (*around, name)
            if name not in known:
                what = f"{'.'.join(around) or 'a chip'} has no {name}"
                self._refuse(key, what, _allowed(known, top=not around))
            old = known[name]
            if _is_figure(old):
                new[name] = self._figure(key, old, value, _is_whole(row, name))
            elif isinstance(value, dict):
                new[name] = self._changed(old, value, key)
            else:
                self._refuse(key, f"{'.'.join(key)} is a table", f"write [{'.'.join(key)}] and below it some of "
                             f"{', '.join(figures(old))}")
        return MappingProxyType({**row, **new}) if isinstance(row, Mapping) else replace(row, **new)

    def _figure(self, key: Key, old: float, value: Any, whole: bool) -> float:
        if not _is_figure(value) or not math.isfinite(value) or value < 0 or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            self._refuse(key, f"{'.'.join(key)} is {kind}, not {value!r}", f"give {kind} from 0 on; {key[-1]} was {old}")
        if whole and old and not value:
            self._refuse(key, f"{'.'.join(key)} is 0", f"give a whole number from 1 on; {key[-1]} was {old}")
        return int(value) if whole else float(value)

    def _refuse(self, key: Key, what: str, help_: str, notes: tuple[str, ...] = ()) -> NoReturn:
        line = self._line(key)
        raise TileError(what if line else f"{self.path}: {what}", code="T713", notes=notes, help=help_,
                        location=Location(str(self.path), line, 1) if line else None)

    def _line(self, key: Key) -> int:
        """The line of a key, counted from 1; 0 where the file does not have the key."""
        table: Key = ()
        for number, line in enumerate(self.lines, 1):
            if header := re.match(r"\s*\[([^\[\]]+)\]", line):
                table = _parts(header[1])
                here = table
            elif pair := re.match(r"\s*([\w.\"'-]+)\s*=", line):
                here = (*table, *_parts(pair[1]))
            else:
                continue
            if here[:len(key)] == key or (key[:len(here)] == here and "{" in line):
                return number if key else 0
        return 0


def _parts(key: str) -> Key:
    return tuple(part.strip().strip("\"'") for part in key.split("."))


def _given(table: Mapping[str, Any], key: str) -> bool:
    """Whether the file states a figure."""
    row: Any = table
    for part in key.split("."):
        if not isinstance(row, dict) or part not in row:
            return False
        row = row[part]
    return True


def _allowed(known: Mapping[str, Any], *, top: bool = False) -> str:
    return f"allowed are {', '.join((*(('name', 'like', 'estimates') if top else ()), *known))}"
