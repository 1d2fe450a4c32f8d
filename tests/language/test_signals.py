"""Signals between cards: the ops that the statements create, and errors under exactly the wrong call.

Values, order and hangs are in tests/test_card_signals.py.
"""

from __future__ import annotations

from typing import Any

import pytest

ROWS = [
    ("npuir", "w = T.alloc_ub((8,), 'int32')\nT.shmem_signal_op(w, 0, 1, 0, 1)", "T110", "T.shmem_signal_op(w, 0, 1, 0, 1)",
     "w .* is on the chip"),
    ("npuir", "T.shmem_signal_op(H, 0, 1, 0, 1)", "T110", "T.shmem_signal_op(H, 0, 1, 0, 1)", "has elements of float16"),
    ("npuir", "T.shmem_signal_op(L, 9, 1, 0, 1)", "T110", "T.shmem_signal_op(L, 9, 1, 0, 1)", "has elements of int64"),
    ("npuir", "T.shmem_signal_op(V, 256, 1, 0, 1)", "T111", "T.shmem_signal_op(V, 256, 1, 0, 1)", "from element 256"),
    ("npuir", "T.shmem_signal_op(V, -1, 1, 0, 1)", "T145", "T.shmem_signal_op(V, -1, 1, 0, 1)", "the offset is -1"),
    ("npuir", "T.shmem_signal_op(V, 0, 1, 2, 1)", "T145", "T.shmem_signal_op(V, 0, 1, 2, 1)", "sig_op is 2"),
    ("npuir", "T.shmem_signal_wait_until(V, 0, 6, 1)", "T145", "T.shmem_signal_wait_until(V, 0, 6, 1)", "cmp is 6"),
    ("ascendc", "with T.Scope('C'):\n    T.shmem_quiet()", "T161", "T.shmem_quiet()", "the Cube core exchanges no signals"),
    ("ascendc", "with T.Scope('C'):\n    T.shmem_barrier_all()", "T161", "T.shmem_barrier_all()", "the Cube core"),
    ("ascendc", "with T.Scope('C'):\n    T.shmem_signal_op(V, 0, 1, 0, 1)", "T161", "T.shmem_signal_op(V, 0, 1, 0, 1)", "Cube"),
]


@pytest.mark.parametrize(("dialect", "statements", "code", "at", "message"), ROWS, ids=[row[1] for row in ROWS])
def test_refused(kernel: Any, refused: Any, dialect: str, statements: str, code: str, at: str, message: str) -> None:
    with refused(code, at=at, message=message):
        kernel(statements, dialect)


@pytest.mark.parametrize(("statement", "ops"), [
    ("T.shmem_quiet()", ["hivm.hir.pipe_barrier[<PIPE_ALL>]", 'tile.signal "shmem_quiet" 0']),
    ("T.shmem_fence()", ["hivm.hir.pipe_barrier[<PIPE_ALL>]", 'tile.signal "shmem_quiet" 0']),
    ("T.shmem_signal_wait_until(V, 0, 3, 1)", ['tile.signal "shmem_signal_wait_until" 3', "hivm.hir.pipe_barrier[<PIPE_ALL>]"]),
])
def test_what_a_statement_creates(lines: Any, statement: str, ops: list[str]) -> None:
    """A wait is before the operations that follow, and ``quiet`` after those before."""
    found = [line for line in lines(statement, "npuir") if "signal" in line or "barrier" in line]
    assert len(found) == len(ops)
    assert all(line.startswith(op) for line, op in zip(found, ops, strict=True)), found
