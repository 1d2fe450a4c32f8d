"""Symbolic dimensions: the host's computations with them, their spellings, and when two are the same."""

from __future__ import annotations

import os
import pickle
import subprocess

import numpy as np
import pytest

from tilelang_npu import TileError
from tilelang_npu.traced.symbols import Dimension, Sym, larger, polynomial, smaller

M, N = Sym("M"), Sym("N")


@pytest.mark.parametrize(("size", "text", "value"), [
    ((M + 1) * N, "(M + 1) * N", 40), (M - (N - 1), "M - (N - 1)", 3), ((M + 4) // 3, "(M + 4) // 3", 3),
    (M + 5 - 2, "M + 3", 10), (M % 4 + 0, "M % 4", 3), (smaller(M, N), "min(M, N)", 5), (larger(M, 9), "max(M, 9)", 9),
    (np.int64(3) * M, "3 * M", 21), (-M, "0 - M", -7),
])
def test_what_a_call_computes_and_how_it_is_spelled(size: Dimension, text: str, value: int) -> None:
    assert isinstance(size, Sym)
    assert (str(size), size.evaluate({"M": 7, "N": 5})) == (text, value)


@pytest.mark.parametrize(("size", "number"), [(M * 0, 0), (smaller(3, 4), 3), ((M - M.evaluate({"M": 2})) * 0, 0)])
def test_what_depends_on_no_dimension_is_a_number(size: Dimension, number: int) -> None:
    assert type(size) is int
    assert size == number


def test_the_names_that_an_expression_depends_on_come_once_from_left_to_right() -> None:
    size = (N + M) * N
    assert isinstance(size, Sym)
    assert size.symbols() == ("N", "M")
    with pytest.raises(KeyError, match="no value for the symbolic dimension 'N'"):
        size.evaluate({"M": 1})


@pytest.mark.parametrize("ask", [bool, int, float, lambda size: size < 3, lambda size: size / 2])
def test_python_gets_no_value_of_a_dimension(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(TileError) as caught:
        ask(M)
    assert caught.value.code == "T144"


def test_a_dimension_that_another_process_has_pickled_is_found_under_its_name(python: str) -> None:
    program = "import pickle; from tilelang_npu.traced.symbols import Sym; print(pickle.dumps(Sym('M') * 2).hex())"
    for seed in ("1", "2"):  # one of them is not this process's
        text = subprocess.run([python, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
                              capture_output=True, text=True).stdout
        assert {M * 2: "found"}.get(pickle.loads(bytes.fromhex(text))) == "found"


def test_polynomials_of_sizes() -> None:
    m, n = Sym("m"), Sym("n")
    assert polynomial((m + 1) * (n - 1)) == polynomial(n * m - m + n - 1)
    assert polynomial(m * 4 * n) == polynomial(n * (m * 2) * 2)
    assert polynomial(m // 2 * 2) != polynomial(m)
    assert polynomial(m - m) == polynomial(0) == {}
