"""The lowering of vector functions: the text is read again without a change, MLIR's own parsers read it, and each function has
its parameters' effects, a name of its own and its latency."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from dialects.test_upstream_mlir import DISTRIBUTIONS, _agree, _in_context
from simulator.register_kernels import compiled, text_of
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.ops.register_operations import REGISTER_OPERATIONS

ARRAYS = {"A": np.zeros(256, np.float32), "B": np.zeros(256, np.float32), "H": np.zeros(256, np.float16),
          "U": np.zeros(256, np.uint8), "I": np.zeros(256, np.int32)}
EVERY = """
    x, y, i = T.vmi.vload(a[0], size=64), T.vmi.vload(b[n], size=64), T.vmi.vload(i[0], size=64)
    h, u = T.vmi.vload(h[0], size=128), T.vmi.vload(u[0], size=64)
    m = T.vmi.create_mask(n, size=64)
    {computed}
    even, odd = T.vmi.vload(a[0], size=64, dist_mode="dintlv")
    T.vmi.vstore((even, odd), r[0], m, dist_mode="dintlv")
    T.vmi.vstore(T.vmi.vload(a[n], size=64, group=4, stride=n), r[0], group=4, stride=16)
    T.vmi.vstore(T.vmi.vload(a[0], size=64, block_stride=n, repeat_stride=0), r[0], m, block_stride=2, repeat_stride=0)
    T.vmi.vstore(T.vmi.vload(a[0], size=64, dist_mode="brc", group=8, stride=8), r[0], T.vmi.create_mask(3, size=64, group=4))
    T.vmi.vstore(T.vmi.vgather(a[0], i, m), r[0])
    T.vmi.vscatter(x, r[0], i, m)
    low, high = T.vmi.vintlv(x, y, m)
    T.vmi.vstore(T.vmi.vsel(T.vmi.vcmp(low, high, m, "lt"), low, high), r[0])
    T.vmi.vstore(T.vmi.vsel(T.vmi.vcmps(i, n, m, "ge"), x, y), r[0])
    T.vmi.vstore(T.vmi.vcadd(x, m, group=4, reassoc=True), r[0])
    T.vmi.vstore(T.vmi.vcvt(h, "float32"), r[0])
    T.vmi.vstore(T.vmi.vcvt(x, "uint8", rounding="Z"), w[0])
    T.vmi.vstore(T.vmi.vcvt(T.vmi.vcvt(u, "float16"), "float32"), r[0])
    T.vmi.vstore(T.vmi.vzip(*T.vmi.vunzip(x), "float32"), r[0])
    T.vmi.vstore(T.vmi.vinterpret_cast(T.vmi.vmull(i, T.vmi.vci(n, size=64), m)[1], "float32"), r[0])
    acc = T.vmi.alloc_var("float32", size=64)
    acc = T.vmi.vbrc(T.float32(0), size=64)
    for k in T.serial(n):
        if k != 3:
            acc = T.vmi.vadd(acc, x, m)
    T.vmi.vstore(acc, r[0])
"""


def every_operation() -> str:
    lines = []
    for name, entry in REGISTER_OPERATIONS.items():
        given = ", ".join("2" if operand in entry.numbers else "x" if "float32" in entry.elements else "i"
                          for operand in entry.operands)
        value = f"T.vmi.{name}({given}, m)"
        if "float32" not in entry.elements:
            value = f'T.vmi.vinterpret_cast({value}, "float32")'
        lines.append(f"T.vmi.vstore({value}, r[0])")
    return EVERY.format(computed="\n    ".join(lines))


def test_every_operation_is_text_that_is_read_again_and_that_mlir_reads(source: Any) -> None:
    made = {"R": np.zeros(256, np.float32), "W": np.zeros(256, np.uint8)}
    kernel = compiled(source, text_of(every_operation(), ARRAYS, made, parameters="n: T.int32"))
    with ExitStack() as stack:
        readers = [stack.enter_context(_in_context(distribution)) for distribution in DISTRIBUTIONS]
        for stage in ("hivm-auto", "hivm"):
            text = kernel.mlir(stage)
            module = parse_module(text)
            assert print_module(module) == text
            assert print_module(parse_module(print_module(module, generic=True))) == text
            for ir in readers:
                _agree(ir, module)


def test_each_function_has_its_own_name_and_effects(source: Any) -> None:
    statements = "T.vmi.vstore(T.vmi.vload(a[0], size=64), r[0])"
    text = text_of(statements, {"A": np.zeros(64, np.float32)}, {"R": np.zeros(64, np.float32)})
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if "SimdVF" in line)
    second = ["        with T.SimdVF(latency=9):", "            T.vmi.vstore(T.vmi.vload(r[0], size=64), r[0])"]
    made = compiled(source, "\n".join([*lines[:place + 2], *second, *lines[place + 2:]]) + "\n").mlir()
    functions = [line.strip() for line in made.splitlines() if "func.func private @main_vf_" in line]
    read, write, both = (f"#hivm.memory_effect<{word}>" for word in ("read", "write", "read_write"))
    names = [line.split("(", maxsplit=1)[0].removeprefix("func.func private ") for line in functions]
    assert names == ["@main_vf_0", "@main_vf_1"]
    assert read in functions[0]
    assert write in functions[0]
    assert "latency" not in functions[0]
    assert both in functions[1]
    assert "latency = 9" in functions[1]
    assert all("hivm.vector_function" in line and "no_inline" in line for line in functions)
