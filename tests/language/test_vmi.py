"""What a call of ``T.vmi`` emits, and each of its errors with the place of the mistake. The values are tested in
tests/simulator/test_vector_functions.py."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tilelang_npu.language as T
from simulator.register_kernels import text_of
from tilelang_npu import TileError
from tilelang_npu.frontend import trace
from tilelang_npu.language import vmi
from tilelang_npu.target import chip

HEAD = '''
import tilelang_npu.language as T


@T.prim_func
def main(A: T.Tensor((256,), "float32"), n: T.int32):
    with T.Kernel(1) as _:
        a = T.alloc_shared((256,), "float32")
        h = T.alloc_shared((256,), "float16")
        g = T.alloc_shared((256,), "int32")
        l = T.alloc_shared((256,), "int64")
        c = T.alloc_L1((16, 16), "float16")
        T.copy(A, a)
        T.copy(A, h)
        with T.SimdVF():
            m = T.vmi.create_mask(50, size=64)
            w = T.vmi.create_mask(50, size=128)
            x, y = T.vmi.vload(a[0], size=64), T.vmi.vload(h[0], size=64)
            i = T.vmi.vload(g[0], size=64)
            long = T.vmi.vload(a[0], size=128)
            {statement}
'''

MISTAKES: dict[str, tuple[str, str]] = {
    "T.vmi.vload(a[0], size=63)": ("T150", "63 is not a number of lanes"),
    "T.vmi.vload(A[0], size=64)": ("T201", "is in GM"),
    "T.vmi.vload(c[0, 0], size=64)": ("T201", "is in L1"),
    "T.vmi.vload(3, size=64)": ("T110", "the source must be"),
    "T.vmi.vload(l[0], size=64)": ("T110", "there are no registers of int64"),
    "T.vmi.vload(a[200], size=64)": ("T130", "lanes 200 to 263 are not all inside a"),
    "T.vmi.vload(a[0], 64, size=64)": ("T145", "a buffer takes no offset"),
    'T.vmi.vload(a[0], size=64, dist_mode="unpack")': ("T190", "unpack"),
    'T.vmi.vload(a[0], size=64, dist_mode="twice")': ("T145", "there is no dist_mode 'twice'"),
    "T.vmi.vload(a[0], size=64, group=4)": ("T145", "group and stride belong together"),
    "T.vmi.vload(a[0], size=64, group=3, stride=8)": ("T150", "3 does not divide 64 lanes into groups"),
    "T.vmi.vload(a[0], size=64, block_stride=2)": ("T145", "block_stride and repeat_stride belong together"),
    "T.vmi.vload(a[0], size=64, block_stride=2, repeat_stride=8)": ("T190", "one register of the hardware"),
    "T.vmi.vload(a[0], size=64, group=4, stride=8, block_stride=2, repeat_stride=0)": ("T145", "exclude each other"),
    'T.vmi.vload(a[0], size=64, dist_mode="dintlv", group=4, stride=8)': ("T145", "excludes group"),
    "T.vmi.vstore(y, a[0])": ("T110", "the register has elements of float16"),
    "T.vmi.vstore((x, x), a[0])": ("T145", "2 registers are given"),
    'T.vmi.vstore(x, a[0], dist_mode="dintlv")': ("T145", "1 registers are given"),
    "T.vmi.vstore(x, a[0], m, group=4, stride=16)": ("T145", "a store of groups takes no mask"),
    "T.vmi.vstore(m, a[0])": ("T110", "must be a vector register"),
    "T.vmi.vstore(3.0, a[0])": ("T110", "must be a vector register, not 3.0"),
    'T.vmi.vstore(x, a[0], pmode="merge")': ("T190", "pmode='merge'"),
    "T.vmi.vadd(x, y)": ("T110", "the operands differ"),
    "T.vmi.vadd(x, long)": ("T110", "the operands differ"),
    "T.vmi.vadd(x, x, w)": ("T111", "and the operands have 64 lanes"),
    "T.vmi.vadd(x, x, x)": ("T110", "the mask is"),
    "T.vmi.vadd(x)": ("T145", "rhs"),
    "T.vmi.vadds(x, 2.0)": ("T145", "mask"),
    "T.vmi.vadds(x, x, m)": ("T110", "must be a number"),
    "T.vmi.vand(x, x, m)": ("T110", "does not work on float32"),
    "T.vmi.vexp(i, m)": ("T110", "does not work on int32"),
    'T.vmi.vcmp(x, x, m, "less")': ("T145", "there is no comparison 'less'"),
    'T.vmi.vcmp(i, i, m, "olt")': ("T145", "there is no comparison 'olt' of int32"),
    "T.vmi.vcadd(x, m)": ("T145", "takes reassoc"),
    "T.vmi.vcmax(x, m, group=3)": ("T150", "3 is no number of groups"),
    'T.vmi.vcmax(T.vmi.vcvt(x, "bfloat16"), m)': ("T110", "does not work on bfloat16"),
    "T.vmi.vcvt(x)": ("T145", "takes an element type"),
    'T.vmi.vcvt(x, "int32")': ("T145", "takes rounding"),
    'T.vmi.vcvt(x, "int32", rounding="H")': ("T190", "rounding"),
    'T.vmi.vcvt(x, "int32", rounding="up")': ("T145", "there is no rounding 'up'"),
    'T.vmi.vcvt(i, "int8")': ("T145", "takes saturate"),
    'T.vmi.vcvt(x, "float16", saturate="yes")': ("T145", "there is no saturate='yes'"),
    'T.vmi.vcvt(x, "float16", m)': ("T190", "a mask is not supported"),
    'T.vmi.vcvt(x, "int64", rounding="R")': ("T110", "there are no registers of int64"),
    "T.vmi.vinterpret_cast(x)": ("T145", "takes an element type"),
    "T.vmi.vgather(a[0], x, m)": ("T110", "the offsets are"),
    "T.vmi.vscatter(long, a[0], i, m)": ("T111", "the value has 128 lanes"),
    "T.vmi.vscatter(y, a[0], i, m)": ("T110", "the register has elements of float16"),
    "T.vmi.vbrc(x, size=64)": ("T111", "has not one lane for each of 1 groups"),
    "T.vmi.vbrc(2, size=64, group=2)": ("T145", "group belongs to a register"),
    'T.vmi.vci(T.int32(0), size=64, order="up")': ("T145", "there is no order 'up'"),
    "T.vmi.create_mask(3, size=60)": ("T150", "60 is not a number of lanes"),
    "T.vmi.create_mask(3, size=64, group=5)": ("T150", "5 does not divide 64 lanes"),
    "T.vmi.create_mask(20, size=64, group=4)": ("T150", "20 lanes are selected in groups of 16"),
    "T.vmi.mask(3)": ("T150", "3 is not a number of lanes"),
    'T.vmi.vreg(64, "half a byte")': ("T110", "half a byte"),
    "T.vmi.alloc_local((4,), T.vmi.mask(64))": ("T110", "is not the type of a register"),
    'T.vmi.alloc_local((n,), T.vmi.vreg(64, "float32"))': ("T150", "not a positive constant"),
    'T.vmi.alloc_var("float32", size=65)': ("T150", "65 is not a number of lanes"),
    "T.vmi.vunzip(T.vmi.vinterpret_cast(x, 'uint8'))": ("T110", "has no halves"),
    "T.vmi.vunzip(x, 'uint8')": ("T110", "uint8 has 8 bits, not 16"),
    "T.vmi.vzip(x, x)": ("T110", "holds no halves"),
    "T.vmi.vmull(x, x, m)": ("T110", "works on integers of 32 bits"),
    "T.vmi.vselr(x, i)": ("T190", "vselr"),
    "T.vmi.vdhist(x, x, m)": ("T190", "vdhist"),
    "T.vmi.vchist(x, x, m)": ("T190", "vchist"),
    "T.vmi.vgatherb(a[0], i, m)": ("T190", "vgatherb"),
    "T.copy(a, A)": ("T141", "operations on registers and an operation on tiles"),
    "a[3] = 1.0": ("T141", "stores a single element"),
    "x + y": ("T146", "unsupported operand"),
}


@pytest.mark.parametrize("statement", MISTAKES)
def test_a_mistake_is_an_error_at_its_place(source: Any, statement: str) -> None:
    code, words = MISTAKES[statement]
    with pytest.raises(TileError) as caught:
        trace(source(HEAD.format(statement=statement)).main, dialect="npuir")
    error = caught.value
    assert error.code == code, str(error)
    assert words in error.message, str(error)
    assert error.help, str(error)
    assert error.location is not None
    assert statement in str(error)


def test_an_operation_outside_of_a_vector_function_is_an_error(source: Any) -> None:
    text = HEAD.format(statement="pass").replace("with T.SimdVF():", "if True:")
    with pytest.raises(TileError, match=r"T\.vmi\.create_mask is outside of a vector function") as caught:
        trace(source(text).main, dialect="npuir")
    assert caught.value.code == "T160"


def test_an_operation_in_a_parallel_loop_is_an_error(source: Any) -> None:
    statement = "for k in T.Parallel(4):\n                T.vmi.vadd(x, x)"
    with pytest.raises(TileError, match=r"cannot be used inside T\.Parallel") as caught:
        trace(source(HEAD.format(statement=statement)).main, dialect="npuir")
    assert caught.value.code == "T141"


def test_every_operation_has_a_description_with_an_example_and_its_errors() -> None:
    for name in vmi.NAMES:
        function = getattr(T.vmi, name)
        text = inspect.getdoc(function) or ""
        if not text.startswith("Is not supported"):
            assert f"T.vmi.{name}" in text, name
        assert inspect.signature(function), name


def test_the_ops_of_a_vector_function(source: Any) -> None:
    """The function takes the buffers and the scalars that it uses; a constant is made inside."""
    import numpy as np

    arrays = {"A": np.zeros(256, np.float32)}, {"R": np.zeros(256, np.float32)}
    text = text_of("""
        for i in T.serial(4):
            m = T.vmi.create_mask(n - i * 64, size=64)
            T.vmi.vstore(T.vmi.vmuls(T.vmi.vload(a[i * 64], size=64), 2.0, m), r[i * 64], m)
    """, *arrays, frame="T.SimdVF(latency=500)", parameters="n: T.int32")
    module = trace(source(text).main, dialect="npuir", chip=chip("950")).module
    module.verify()
    function = next(op for op in module.walk() if op.name == "tile.vector_function")
    assert [len(function.inputs), len(function.outputs), len(function.scalars)] == [1, 1, 1]
    assert function.latency.value.data == 500
    shown = ("scf.", "vector.", "arith.mulf", "arith.select")
    assert [op.name for op in function.body.walk() if op.name.startswith(shown)] == [
        "scf.for", "vector.create_mask", "vector.load", "arith.mulf", "arith.select", "vector.maskedstore", "scf.yield"]


@pytest.mark.parametrize("frame", ["T.SimdVF()", "T.SimtVF(threads=64)"])
def test_a_chip_without_registers_is_named_with_those_that_have_them(source: Any, frame: str) -> None:
    text = HEAD.format(statement="pass").replace("T.SimdVF()", frame)
    with pytest.raises(TileError) as caught:
        trace(source(text).main, dialect="npuir", chip=chip("910B2"))
    error = caught.value
    assert error.code == "T190"
    assert f"{frame.split('(', maxsplit=1)[0]} computes on vector registers, which Ascend910B2 does not have" in str(error)
    assert "Ascend910_95" in error.help
    assert error.location is not None
    assert error.location.line == 1 + next(number for number, line in enumerate(text.splitlines()) if "VF(" in line)
