"""Fixtures for the tests of the op table: kernels from text, and errors with their lines."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu
import tilelang_npu as tilelang
from frontend.conftest import source  # noqa: F401  (a fixture)
from ops.reference import assert_same
from ops.surface import kernel_text
from tilelang_npu import TileError
from tilelang_npu.frontend import trace
from tilelang_npu.ops import dtype

PACKAGE = str(Path(tilelang_npu.__file__).parent)

Refusal = Callable[..., TileError]


def _error_of(function: Any, dialect: str) -> TileError | None:
    try:
        trace(function, dialect=dialect)
    except TileError as error:
        return error
    return None


@pytest.fixture
def refusal(source: Any) -> Refusal:  # noqa: F811  (the fixture imported above)
    """``refusal(lines, "T.vexp(a, d)", "npuir")``: returns the error for an invalid statement that follows other statements.

    The error has one of the expected codes, the statement's line of the user's file, and a suggestion; its text has the
    name of the operation as the user wrote it, and no names of this package.
    """

    def make(lines: Sequence[str], statement: str, dialect: str, *, codes: Sequence[str], mentions: Sequence[str] = (),
             parameters: str = "X: T.Tensor((8,), 'float32')") -> TileError:
        main = source(kernel_text([*lines, statement], parameters)).main
        error = _error_of(main, dialect)
        if error is None:
            pytest.fail(f"{statement} is accepted below\n" + "\n".join(lines))
        shown = str(error)
        assert error.code in codes, f"{statement}\n{shown}"
        assert error.location is not None, f"{statement}\n{shown}"
        assert linecache.getline(error.location.file, error.location.line).strip() == statement, shown
        assert error.message.startswith(statement.split("(", maxsplit=1)[0]), shown
        assert error.help, shown
        assert PACKAGE not in shown
        for word in mentions:
            assert word in shown, f"no {word!r} in\n{shown}"
        return error

    return make


class Batch:
    """Several calls that are compiled and run as one kernel on one block: arrays are loaded, worked on, targets stored back.

    Every call has its own target, so a batch says as much as many kernels, and is faster.
    """

    def __init__(self, source: Callable[[str], Any], dialect: str) -> None:  # noqa: F811  (the fixture imported above)
        self.source, self.dialect = source, dialect
        self.arrays: dict[str, np.ndarray] = {}
        self.statements: list[str] = []
        self.targets: list[str] = []
        self.checks: list[Callable[[], None]] = []

    def hold(self, array: np.ndarray) -> str:
        """The name of a buffer that holds an array."""
        name = f"b{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(array).copy()
        return name

    def call(self, statement: str, target: str, wanted: np.ndarray, ulps: int = 0) -> None:
        """Add a statement; afterwards ``target`` has to hold ``wanted``."""
        self.statements.append(statement)
        self.also(target, wanted, ulps)

    def also(self, target: str, wanted: np.ndarray, ulps: int = 0) -> None:
        """A further buffer that the last statement writes."""
        statement = self.statements[-1]
        self.targets.append(target)
        given = {name: self.arrays[name].copy() for name in self.arrays if re.search(rf"\b{name}\b", statement)}

        def check() -> None:
            shown = f"{self.dialect}: {statement}\n{ {name: (a.dtype, a.shape) for name, a in given.items()} }"
            assert_same(self.arrays[target], wanted, ulps, shown)

        self.checks.append(check)

    def run(self) -> None:
        kinds = {name: str(dtype(array.dtype)) for name, array in self.arrays.items()}
        parameters = ", ".join(f"{name.upper()}: T.Tensor({self.arrays[name].shape}, {kind!r})" for name, kind in kinds.items())
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in self.arrays.items()]
        lines += [f"T.copy({name.upper()}, {name})" for name in self.arrays]
        lines += [*self.statements, *(f"T.copy({name}, {name.upper()})" for name in dict.fromkeys(self.targets))]
        text = kernel_text(lines, parameters).replace("T.Kernel(1, is_npu=True) as (cid, vid)", "T.Kernel(1) as cid")
        kernel = tilelang.compile(self.source(text).main, target=self.dialect)
        before = {name: array.copy() for name, array in self.arrays.items()}
        for execute in (kernel, kernel.interpret):  # the interpreter has a separate table
            for name, array in self.arrays.items():
                array[...] = before[name]
            execute(*self.arrays.values())
            for check in self.checks:
                check()


@pytest.fixture
def batch(source: Any) -> Callable[[str], Batch]:  # noqa: F811  (the fixture imported above)
    """``batch("npuir")``: an empty batch of that dialect."""
    return lambda dialect: Batch(source, dialect)
