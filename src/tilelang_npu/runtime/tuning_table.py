"""What became of the configurations of a tuning: the table in a file, where one is asked for, and the cache.

The file has a line of JSON for each. It is written to as they are timed, so that a tuning that was interrupted goes on where it
stopped, and once more at the end, in order: it has the same bytes however many workers there were. A line counts for the kernel
that it was written for alone, by the key of its draft: one that was edited since is timed anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tilelang_npu.errors import TileError
from tilelang_npu.runtime import cache
from tilelang_npu.runtime.draft import Timing
from tilelang_npu.runtime.writing import write_whole
from tilelang_npu.traced.author import user_location

__all__ = ["Table", "TuningRow", "keep", "kept"]


class TuningRow(NamedTuple):
    """A configuration and what became of it; the key is empty where it could not be traced."""

    config: Mapping[str, Any]
    key: str
    outcome: Timing

    def line(self) -> str:
        """As it stands in the file."""
        outcome = {name: value for name, value in asdict(self.outcome).items() if value != ""}
        if not self.outcome.works:
            del outcome["us"]
        return json.dumps({"config": dict(self.config), **outcome, "key": self.key}, default=repr) + "\n"


class Table:
    """The file of a tuning.

    Args:
        path: the file.
        title: what was tuned: the factory, its arguments, the chip.
        restart: whether to forget what is there.

    Raises:
        TileError: T736 there is something else in the file.
    """

    def __init__(self, path: Path, title: Mapping[str, Any], *, restart: bool = False) -> None:
        self._path = path
        self._title = json.dumps({"tuning": dict(title)}, default=repr) + "\n"
        self.known: dict[str, Timing] = {}
        if path.exists() and not restart:
            self._read()
        self._lines = [self._title]

    def _read(self) -> None:
        first, *lines = [*self._path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True), ""]
        if first != self._title:
            what = "the table of another tuning" if first.startswith('{"tuning": ') else "no table of a tuning"
            notes = [f"it begins {first.strip()[:160]}", f"this one's {self._title.strip()[:160]}"] if "another" in what else []
            raise TileError(f"{self._path} is {what}", code="T736", location=user_location(), notes=notes,
                            help="give another file, or remove it")
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # what was being written when the tuning was interrupted
                continue
            outcome = Timing(row.get("us"), row.get("code", ""), row.get("reason", ""))
            if row["key"] and (outcome.us is not None or outcome.code):  # what took too long is tried again
                self.known[row["key"]] = outcome

    def begin(self, rows: Sequence[TuningRow]) -> None:
        """Write what is known, before more is."""
        write_whole(self._path, self._title + "".join(row.line() for row in rows))

    def add(self, row: TuningRow) -> None:
        """Note what became of one more."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row.line())

    def end(self, rows: Sequence[TuningRow]) -> None:
        """Write them all, in order."""
        self.begin(rows)


def _place(keys: Sequence[str]) -> str:
    return cache.digest("\n".join(keys), {"what": "a tuning"})


def kept(keys: Sequence[str]) -> list[Timing] | None:
    """What became of the drafts of these keys, where all were timed together before."""
    entry = cache.load(_place(keys))
    return None if entry is None else [Timing(**one) for one in json.loads(entry["outcomes"])]


def keep(keys: Sequence[str], outcomes: Sequence[Timing]) -> None:
    """Remember what became of drafts."""
    cache.store(_place(keys), {"outcomes": json.dumps([asdict(one) for one in outcomes])})
