"""Loads chips from users' files (docs/hardware.md#chips-of-your-own).

A TOML file names a chip of this package and lists the figures that differ from that chip's. A Python file defines ``CHIPS``, a
tuple of ``Chip`` objects.
"""

from __future__ import annotations

import math
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeGuard

from tilelang_npu.errors import Location, TileError
from tilelang_npu.target.chip_data import Chip, Features, table
from tilelang_npu.target.chip_data import Path as ChipPath
from tilelang_npu.target.dtypes import DType

Key = tuple[str, ...]
"""A key of a TOML file as a path: the names of the enclosing tables, outermost first, and last the key's own name."""
_FIXED = frozenset({"name", "family", "aliases", "hivm_target", "estimates", "file", "fixpipe_to_ub", "fixpipe_splits"})
"""The fields of ``Chip`` and ``Features`` that a file cannot set as figures: they are no figures, or ``Chip`` computes them."""
_TEXTS = ("name", "like", "family", "hivm_target")
"""The top-level keys of a TOML file whose values must be strings."""


def is_file(name: object) -> bool:
    """Whether ``name`` is the path of a chip file: a ``Path``, or a string that ends in ``.toml`` or ``.py``."""
    return isinstance(name, Path) or (isinstance(name, str) and name.lower().endswith((".toml", ".py")))


def load(path: Path, find: Callable[[str], Chip], missing: Callable[[Chip], list[str]]) -> tuple[Chip, ...]:
    """Returns the chips that a TOML or Python file describes; the first one is the file's default chip.

    Args:
        path: the file.
        find: returns the registered chip with a given name, whose figures a TOML file inherits.
        missing: returns the names of the features that a chip has and the target in its ``hivm_target`` lacks.

    Raises:
        TileError: T713, the file cannot be read or describes no valid chip. For a TOML file the error names the key, the line,
            and what is allowed.
    """
    return _run(path) if path.suffix.lower() == ".py" else (_ChipFile(path).chip(find, missing),)


def _run(path: Path) -> tuple[Chip, ...]:
    """Runs a Python file and returns the chips of its tuple ``CHIPS``; if the file defines ``USUAL``, this chip comes first."""
    if not path.is_file():
        raise TileError(f"{path}: there is no such file", code="T713", help="give the path of a Python file")
    made = runpy.run_path(str(path))
    chips = made.get("CHIPS")
    if not isinstance(chips, tuple) or not chips or not all(isinstance(one, Chip) for one in chips):
        raise TileError(f"{path}: CHIPS is {'missing' if chips is None else 'no tuple of chips'}", code="T713",
                        help="define a tuple of chips, such as CHIPS = "
                             "(dataclasses.replace(tilelang_npu.target.chip('910B2'), name='My910', aiv=24),)")
    usual = made.get("USUAL", chips[0])
    if usual not in chips:
        raise TileError(f"{path}: USUAL is not among CHIPS", code="T713", help="write USUAL = CHIPS[0]")
    return tuple(replace(one, file=str(path.resolve())) for one in sorted(chips, key=lambda one: one is not usual))


def figures(row: object) -> dict[str, object]:
    """Returns the values that a chip file can set in a part of a chip's description, by name.

    These are the fields or entries of ``row`` that are numbers, and those that contain numbers in turn, such as
    ``Chip.traffic``. Other fields, such as names, cannot be set by a file and are left out.

    Args:
        row: a ``Chip``, one of the dataclasses that a ``Chip`` contains, or a mapping that it contains. The result for any
            other object is empty.
    """
    if isinstance(row, Mapping):
        pairs = dict(row)
    elif is_dataclass(row):
        pairs = {field.name: getattr(row, field.name) for field in fields(row)}
        if isinstance(row, Chip):
            pairs = {name: value for name, value in pairs.items() if name not in _FIXED}
    else:
        return {}
    if isinstance(row, Features):
        return {name: value for name, value in pairs.items() if name not in _FIXED}
    return {name: value for name, value in pairs.items() if _is_figure(value) or figures(value)}


def _is_whole(row: object, name: str) -> bool:
    """Whether the figure with this name in a table must be an integer."""
    if isinstance(row, Mapping):
        return isinstance(row[name], int)
    return is_dataclass(row) and {field.name: field.type for field in fields(row)}[name] == "int"


def _is_figure(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _ChipFile:
    """A parser of one TOML file that describes a chip."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []

    def chip(self, find: Callable[[str], Chip], missing: Callable[[Chip], list[str]]) -> Chip:
        """Returns the chip that the file describes; the arguments and errors are those of :func:`load`."""
        given = self._read()
        for needed, example in (("name", '"My910"'), ("like", '"910B3"')):
            if needed not in given:
                self._refuse((needed,), f"{needed} is missing", f"begin with {needed} = {example}")
        for key in _TEXTS:
            if key in given and (not isinstance(given[key], str) or not given[key]):
                self._refuse((key,), f"{key} is no text, or is empty", f'write {key} = "..."')
        base = self._named(find, "like", given["like"])
        paths = self._paths(base, given, find)
        rest = {key: value for key, value in given.items() if key not in (*_TEXTS, "estimates", "without")}
        made: Chip = replace(
            self._changed(replace(base, paths=paths), rest, ()), name=given["name"], aliases=(), file=str(self.path.resolve()),
            family=given.get("family", base.family), hivm_target=given.get("hivm_target", base.hivm_target))
        if made.aiv % made.aic:
            self._refuse(("aiv",), f"{made.aiv} Vector cores for {made.aic} Cube cores: aiv must be a multiple of aic",
                         f"give aiv a multiple of aic, such as {made.aic} or {2 * made.aic}")
        if lacks := missing(made):
            if "hivm_target" in given:
                self._refuse(("hivm_target",),
                             f"{made.name} has {', '.join(lacks)}, which its HIVM target {made.hivm_target} lacks",
                             "name a target that has these features, or leave hivm_target out: HIVM modules then name the chip"
                             " itself as their target")
            made = replace(made, hivm_target=made.name)
        estimates = given.get("estimates", [])
        if not isinstance(estimates, list) or not all(isinstance(key, str) for key in estimates):
            self._refuse(("estimates",), "estimates is no list of keys", 'write estimates = ["traffic.hbm_read", "scalar"]')
        for key in estimates:
            row: object = made
            for part in key.split("."):
                known = figures(row)
                if part not in known:
                    self._refuse(("estimates",), f"{key} is no figure of a chip", _allowed(known))
                row = known[part]
        return replace(made, estimates=tuple(dict.fromkeys((*(key for key in base.estimates if not _given(rest, key)),
                                                            *estimates))))

    def _named(self, find: Callable[[str], Chip], key: str, name: str) -> Chip:
        """Returns the chip of this package that a key of the file names.

        Args:
            find: returns the registered chip with a given name.
            key: the key, for messages.
            name: the value of the key.

        Raises:
            TileError: T713, the name is that of a file, of a chip from a file, or of no chip.
        """
        start = "start from one of the chips that `tilelang-npu chips` lists"
        if is_file(name):
            self._refuse((key,), f"{name} is a file, not the name of a chip of this package", start)
        try:
            found = find(name)
        except TileError as error:
            self._refuse((key,), error.message, start, error.notes)
        if found.file:
            self._refuse((key,), f"{found.name} is described by a file and is no chip of this package", start)
        return found

    def _paths(self, base: Chip, given: dict[str, Any], find: Callable[[str], Chip]) -> Mapping[str, ChipPath]:
        """Returns the data paths of the chip: those of ``base`` without the ones that the key ``without`` lists, and the ones
        that a table ``[paths.NAME]`` takes from the chip in its key ``like``. Removes these ``like`` keys from ``given``."""
        rows = dict(base.paths)
        without = given.get("without", [])
        if not isinstance(without, list) or not all(name in rows for name in without):
            self._refuse(("without",), "without is no list of paths of the chip that like names", f"it has {', '.join(rows)}")
        for name in without:
            del rows[name]
        tables = given.get("paths")
        for name, row in tables.items() if isinstance(tables, dict) else ():
            if isinstance(row, dict) and isinstance(other := row.pop("like", None), str):
                found = self._named(find, "paths", other).paths
                if name not in found:
                    self._refuse(("paths", name), f"{other} has no path {name}", f"it has {', '.join(found)}")
                rows[name] = found[name]
        return table(base.memory, *rows.values())

    def _read(self) -> dict[str, Any]:
        if sys.version_info >= (3, 11):
            import tomllib
        else:  # Python 3.10 has no reader of TOML: the package requires this one there
            import tomli as tomllib

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
                            location=where, help="write each line as KEY = NUMBER or as [TABLE]") from None

    def _changed(self, row: Any, given: Mapping[str, Any], around: Key) -> Any:
        """Returns a copy of a table in which the figures that the file gives replace the old ones.

        Args:
            row: the table: a dataclass or a mapping of the base chip.
            given: the entries of the file for this table.
            around: the names of the table and of its enclosing tables, for messages; empty for the chip.
        """
        known = figures(row)
        new: dict[str, object] = {}
        for name, value in given.items():
            key = (*around, name)
            if name not in known:
                what = f"{'.'.join(around) or 'a chip file'} has no key {name}"
                self._refuse(key, what, _allowed(known, top=not around))
            old = known[name]
            if isinstance(old, bool):
                if not isinstance(value, bool):
                    self._refuse(key, f"{'.'.join(key)} must be true or false, not {value!r}",
                                 f"the base chip has {name} = {str(old).lower()}")
                new[name] = value
            elif isinstance(old, tuple):
                new[name] = self._element_types(key, old, value)
            elif _is_figure(old):
                new[name] = self._figure(key, old, value, _is_whole(row, name))
            elif isinstance(value, dict):
                new[name] = self._changed(old, value, key)
            else:
                self._refuse(key, f"{'.'.join(key)} is a table and takes no value", f"write [{'.'.join(key)}] and below it"
                             f" some of {', '.join(figures(old))}")
        return MappingProxyType({**row, **new}) if isinstance(row, Mapping) else replace(row, **new)

    def _element_types(self, key: Key, old: tuple[str, ...], value: Iterable[str]) -> tuple[str, ...]:
        try:
            return tuple(DType(name).mlir for name in value)
        except (TypeError, ValueError):
            self._refuse(key, f"{'.'.join(key)} must be a list of element types, not {value!r}",
                         f"the base chip has {list(old)}")

    def _figure(self, key: Key, old: float, value: object, whole: bool) -> float:
        if not _is_figure(value) or not math.isfinite(value) or value < 0 or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            self._refuse(key, f"{'.'.join(key)} must be {kind}, not {value!r}",
                         f"give {kind} of at least 0; the base chip has {key[-1]} = {old}")
        if whole and old and not value:
            self._refuse(key, f"{'.'.join(key)} must not be 0",
                         f"give a whole number of at least 1; the base chip has {key[-1]} = {old}")
        return int(value) if whole else float(value)

    def _refuse(self, key: Key, what: str, help_: str, notes: tuple[str, ...] = ()) -> NoReturn:
        line = self._line(key)
        raise TileError(what if line else f"{self.path}: {what}", code="T713", notes=notes, help=help_,
                        location=Location(str(self.path), line, 1) if line else None)

    def _line(self, key: Key) -> int:
        """Returns the line number of a key, counted from 1; 0 if the file does not have the key."""
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


def _given(table: Mapping[str, object], key: str) -> bool:
    """Whether the file gives a value for a key, such as ``traffic.hbm_read``."""
    row: object = table
    for part in key.split("."):
        if not isinstance(row, dict) or part not in row:
            return False
        row = row[part]
    return True


def _allowed(known: Mapping[str, object], *, top: bool = False) -> str:
    more = ("family", "hivm_target", "without") if top else ()
    return f"allowed keys are {', '.join((*(('name', 'like', 'estimates') if top else ()), *known, *more))}"
