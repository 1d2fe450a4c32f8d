"""Stores the outcomes of a tuning's configurations in the cache and, if the user names a file (the table), in that file.

The file has one line of JSON for each configuration. Lines are appended as configurations are timed, so that an interrupted
tuning continues with the remaining configurations. At the end the file is written again in order, so that it has the same bytes
for any number of workers. A line contains the key of the configuration's draft (its traced kernel): a kernel that was edited
since has another key and is timed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.kernel.draft import Timing
from tilelang_npu.runtime.settings.file_writing import write_whole
from tilelang_npu.traced.author import user_location


class TuningRow(NamedTuple):
    """A row of a tuning's table.

    Attributes:
        config: the values of the tunable parameters, by name.
        key: the key of the configuration's draft (its traced kernel); empty if the configuration could not be traced.
        outcome: the modelled time, or the reason of the failure.
    """

    config: Mapping[str, object]
    key: str
    outcome: Timing

    def line(self) -> str:
        """Returns the row as a line of JSON for the file."""
        outcome = {name: value for name, value in asdict(self.outcome).items() if value != ""}
        if not self.outcome.works:
            del outcome["us"]
        return json.dumps({"config": dict(self.config), **outcome, "key": self.key}, default=repr) + "\n"


class Table:
    """The file with the outcomes of a tuning's configurations.

    Args:
        path: the path of the file. If it exists, its outcomes are read.
        title: the values that identify the tuning (the factory, its arguments, the chip), which are the first line of the file.

    Attributes:
        known: the outcomes in the file, by the keys of the drafts (traced kernels).

    Raises:
        TileError: T736 the file exists and is not the table of this tuning.
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
            kind = "the table of another tuning" if is_table else "not the table of a tuning"
            notes = [f"the file begins with {first.strip()[:160]}",
                     f"the table of this tuning begins with {self._title.strip()[:160]}"] if is_table else []
            raise TileError(f"{self._path} is {kind}", code="T736", location=user_location(), notes=notes,
                            help="name another file, or delete this one")
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the line that was being written when the tuning was interrupted
                continue
            outcome = Timing(row.get("us"), row.get("code", ""), row.get("reason", ""))
            if row["key"] and (outcome.us is not None or outcome.code):  # a configuration that took too long is tried again
                self.known[row["key"]] = outcome

    def write(self, rows: Sequence[TuningRow]) -> None:
        """Writes the file anew, with the title and these rows."""
        write_whole(self._path, self._title + "".join(row.line() for row in rows))

    def add(self, row: TuningRow) -> None:
        """Appends a row to the file."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row.line())


def _cache_key(keys: Sequence[str]) -> str:
    return entries.digest("\n".join(keys), {"what": "a tuning"})


def load_outcomes(keys: Sequence[str]) -> list[Timing] | None:
    """Returns the outcomes that an earlier tuning of the same drafts has stored in the cache; None if there was none.

    Args:
        keys: the keys of all drafts (traced kernels) of the tuning, in order.
    """
    entry = entries.load(_cache_key(keys))
    return None if entry is None else [Timing(**one) for one in json.loads(entry["outcomes"])]


def store_outcomes(keys: Sequence[str], outcomes: Sequence[Timing]) -> None:
    """Stores the results of a tuning run in the cache: for each traced kernel its modelled time, or why it has none.

    Args:
        keys: the keys of the traced kernels.
        outcomes: the results, in the order of the keys.
    """
    entries.store(_cache_key(keys), {"outcomes": json.dumps([asdict(one) for one in outcomes])})
