"""The interpreter's operations on vector registers: a test of their values notices when any one of them does nothing.

The values are tested in simulator/test_vector_functions.py, which compares those of the interpreter with NumPy as well.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from simulator import test_vector_functions
from simulator.register_kernels import compiled, executed, text_of
from tilelang_npu import TileError
from tilelang_npu.interpreter.operation_table import operations
from tilelang_npu.language import vmi
from tilelang_npu.ops.register_operations import REGISTER_OPERATIONS

OPERATIONS = operations()
PARAMETERS: dict[str, dict[str, object]] = {
    "test_the_modes_of_loads": {"kind": "float16"}, "test_the_modes_of_stores": {"kind": "int32"},
    "test_gather_and_scatter_address_by_element": {"kind": "float32", "index": "int32"},
    "test_fills_and_counts": {"kind": "int32"}, "test_registers_are_interleaved_and_separated": {"kind": "float32"},
    "test_comparisons_choose_lanes": {"kind": "float32", "order": "lt"}, "test_products_of_64_bits": {"kind": "int32"},
    "test_floats_become_integers": {"kind": "float32", "target": "int8", "rounding": "R"},
}
"""A case of each test of operations whose values depend on parameters."""
UNTESTED = {*vmi._REFUSED, "mask", "inside_vmi"}
"""Operations that no kernel can use for a value: refused ones, and a type and a question about the source."""


def users(name: str, source: Any) -> Iterator[Callable[[], None]]:
    """Tests whose kernels execute an operation."""
    if name in REGISTER_OPERATIONS:
        yield partial(test_vector_functions.test_each_operation_computes_every_element_type_below_a_mask, source, name,
                      str(REGISTER_OPERATIONS[name].elements[0]))
        return
    if name in ("vcadd", "vcmax", "vcmin"):
        yield partial(test_vector_functions.test_reductions_of_the_selected_lanes, source, name, "float32", 4)
        return
    if name == "alloc_var":
        yield partial(test_a_register_that_no_statement_assigned_is_no_zero, source)
    for title, test in vars(test_vector_functions).items():
        if not title.startswith("test_") or "outside" in title or not re.search(rf"T\.vmi\.{name}\b", inspect.getsource(test)):
            continue
        given = PARAMETERS.get(title, {})
        if {"source", *given} == set(inspect.signature(test).parameters):
            yield partial(test, source, **given)


@pytest.mark.parametrize("name", sorted({*vmi.NAMES} - UNTESTED))
def test_removing_an_effect_is_noticed(source: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    tests = list(users(name, source))
    assert tests, f"no test executes T.vmi.{name}"
    monkeypatch.setitem(OPERATIONS, f"vmi.{name}", lambda *arguments, **_: arguments[0] if arguments else None)
    for test in tests:
        try:
            test()
        except Exception:  # noqa: BLE001  (a wrong value, or an error for want of one)
            return
    raise AssertionError(f"{len(tests)} tests execute T.vmi.{name}, and none notices that it does nothing")


def test_it_has_every_operation_that_is_not_refused() -> None:
    assert {name.removeprefix("vmi.") for name in OPERATIONS if name.startswith("vmi.")} == {*vmi.NAMES} - {*vmi._REFUSED}


def test_a_register_that_no_statement_assigned_is_no_zero(source: Any) -> None:
    made = {"R": np.zeros(64, np.float32), "I": np.zeros(64, np.int32)}
    for arrays in executed(source, """
        x, y = T.vmi.alloc_var("float32", size=64), T.vmi.alloc_var("int32", size=64)
        T.vmi.vstore(x, r[0])
        T.vmi.vstore(y, i[0])
    """, {}, made):
        assert np.isnan(arrays["R"]).all()
        assert (arrays["I"] == -1).all()


def test_the_place_of_a_register_must_exist(source: Any) -> None:
    text = text_of("""
        x = T.vmi.alloc_local((2,), T.vmi.vreg(64, "float32"))
        x[0] = T.vmi.vload(r[0], size=64)
        x[1] = x[0]
        for i in T.serial(n):
            T.vmi.vstore(x[i], r[0])
    """, {}, {"R": np.zeros(64, np.float32)}, parameters="n: T.int32")
    kernel = compiled(source, text)
    for run in (kernel, kernel.interpret):
        with pytest.raises(TileError, match="there is no register") as caught:
            run(np.zeros(64, np.float32), 3)
        assert caught.value.code == "T502"
