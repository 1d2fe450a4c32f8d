"""The fixtures of the tests of the op table: kernels from text, and what is refused at which line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu
from frontend.conftest import source  # noqa: F401  (a fixture)
from ops.surface import kernel_text
from tilelang_npu import TileError
from tilelang_npu.frontend import trace

PACKAGE = str(Path(tilelang_npu.__file__).parent)

Refusal = Callable[..., TileError]


def _error_of(function: Any, dialect: str) -> TileError | None:
    try:
        trace(function, dialect=dialect)
    except TileError as error:
        return error
    return None


@pytest.fixture
def refusal(source: Any) -> Refusal:  # noqa: F811
    """``refusal(lines, "T.vexp(a, d)", "npuir")``: the error that a statement below others is refused with.

    It is one of the expected codes, and stands at the statement's line of the user's file with a way out; its text has the
    name of the operation as it was written, and nothing of this package.
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
