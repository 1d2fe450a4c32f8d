"""The outcomes of the configurations of a tuning: in a file, if one is asked for, and in the cache.

The file has a line of JSON for each configuration. Lines are appended as configurations are timed, so that an interrupted
tuning continues with the remaining ones. At the end the file is written again in order: it has the same bytes for any number of
workers. A line belongs to the kernel with the draft's key: a kernel that was edited since is timed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.kernel.draft import Timing
from tilelang_npu.runtime.settings.file_writing import write_whole
from tilelang_npu.traced.author import user_location


class TuningRow(NamedTuple):
    """A configuration, the key of its draft (empty if it could not be traced), and its outcome."""

    config: Mapping[str, Any]
    key: str
    outcome: Timing

    def line(self) -> str:
        """Returns the line of the file."""
        outcome = {name: value for name, value in asdict(self.outcome).items() if value != ""}
        if not self.outcome.works:
            del outcome["us"]
        return json.dumps({"config": dict(self.config), **outcome, "key": self.key}, default=repr) + "\n"


class Table:
    """The file of a tuning.

    Args:
        path: the file.
        title: what is tuned: the factory, its arguments, the chip.

    Attributes:
        known: the outcomes in the file, by the keys of the drafts.

    Raises:
        TileError: T736 the file is not the table of this tuning.
    """

    def __init__(self, path: Path, title: Mapping[str, object]) -> None:
        self._path = path
        self._title = json.dumps({"tuning": dict(title)}, default=repr) + "\n"
        self.known: dict[str, Timing] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        first, *lines = [*self._path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True), ""]
        if first != self._title:
            is_table = first.startswith('{"tuning": ')
            kind = "the table of another tuning" if is_table else "no table of a tuning"
            notes = [f"it begins {first.strip()[:160]}", f"this one's {self._title.strip()[:160]}"] if is_table else []
            raise TileError(f"{self._path} is {kind}", code="T736", location=user_location(), notes=notes,
                            help="give another file, or remove it")
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the line that was being written when the tuning was interrupted
                continue
            outcome = Timing(row.get("us"), row.get("code", ""), row.get("reason", ""))
            if row["key"] and (outcome.us is not None or outcome.code):  # a configuration that took too long is tried again
                self.known[row["key"]] = outcome

    def write(self, rows: Sequence[TuningRow]) -> None:
        """Replaces the file's rows."""
        write_whole(self._path, self._title + "".join(row.line() for row in rows))

    def add(self, row: TuningRow) -> None:
        """Appends a row."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row.line())


def _cache_key(keys: Sequence[str]) -> str:
    return entries.digest("\n".join(keys), {"what": "a tuning"})


def load_outcomes(keys: Sequence[str]) -> list[Timing] | None:
    """Returns the outcomes of the drafts with these keys from the cache, if they were timed in one tuning before."""
    entry = entries.load(_cache_key(keys))
    return None if entry is None else [Timing(**one) for one in json.loads(entry["outcomes"])]


def store_outcomes(keys: Sequence[str], outcomes: Sequence[Timing]) -> None:
    """Stores the outcomes of drafts in the cache."""
    entries.store(_cache_key(keys), {"outcomes": json.dumps([asdict(one) for one in outcomes])})
