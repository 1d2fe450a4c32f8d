"""Random legal HIVM of both cores: products, transfers, moves, vector work, loops and branches with carried numbers.

The passes add addresses, flags and waits. The module, and its printed and parsed text, are run: they have equal bytes and equal
cycles, and the values of NumPy. ``TILELANG_RANDOM_MODULES=400`` sets the number of cases.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.kernel.foreign_modules import runnable

ROWS, BLOCKS = 32, 2
"""Rows of a block's tile, half of them for each Vector core; number of blocks."""
BINARY = {"vadd": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmax": np.maximum, "vmin": np.minimum}
UNARY = {"vabs": np.abs, "vrelu": lambda a: np.maximum(a, 0)}
TILES = st.integers(0, 1)
WORK = st.one_of(
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), TILES, TILES, TILES),
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), TILES, TILES),
    st.tuples(st.just("scaled"), TILES, TILES),
    st.tuples(st.just("cast"), TILES, TILES),
    st.tuples(st.just("select"), TILES, TILES, TILES),
    st.tuples(st.just("row"), TILES, TILES),
    st.tuples(st.just("load"), TILES),
    st.tuples(st.just("copy"), TILES, TILES),
    st.tuples(st.just("atomic"), TILES),
    st.tuples(st.just("product"), TILES, st.booleans(), st.booleans()),
    st.tuples(st.just("direct"), st.booleans()))
STEPS = st.recursive(
    st.lists(WORK, min_size=1, max_size=4),
    lambda inner: st.lists(st.one_of(WORK, st.tuples(st.just("if"), inner, inner),
                                     st.tuples(st.just("for"), st.integers(0, 2), inner)), min_size=1, max_size=3),
    max_leaves=3)
Step = tuple[Any, ...]


def kind(space: str, element: str, *shape: int, strides: str = "") -> str:
    return f"memref<{'x'.join(map(str, shape))}x{element}{strides}, #hivm.address_space<{space}>>"


class Writer:
    """The text of a module."""

    def __init__(self, depth: int, columns: int, filled: int) -> None:
        self.lines: list[str] = []
        self.depth, self.columns, self.filled = depth, columns, filled
        self.count = 0
        self.half = kind("ub", "f32", ROWS // 2, columns)
        self.ws = kind("gm", "f32", ROWS, columns)
        self.l1a = kind("cbuf", "f16", depth // 16, 2, 16, 16)
        self.l1b = kind("cbuf", "f16", columns // 16, depth // 16, 16, 16)
        self.l1bt = kind("cbuf", "f16", depth // 16, columns // 16, 16, 16)
        self.acc = kind("cc", "f32", columns // 16, 2, 16, 16)

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, name: str, ins: list[tuple[str, str]], out: tuple[str, str], suffix: str = "", attributes: str = "") -> None:
        operands = f"ins({', '.join(value for value, _ in ins)} : {', '.join(type_ for _, type_ in ins)})"
        self.lines.append(f"hivm.hir.{name} {attributes} {operands} outs({out[0]} : {out[1]}) {suffix}")

    def part(self, source: str, source_type: str, offset: str, rows: int, columns: int, stride: int, element: str,
             space: str = "gm") -> tuple[str, str]:
        """Some rows of a matrix, from its first column on."""
        made = kind(space, element, rows, columns, strides=f", strided<[{stride}, 1]{', offset: ?' if offset != '0' else ''}>")
        name = self.fresh()
        self.lines.append(f"{name} = memref.subview {source}[{offset}, 0] [{rows}, {columns}] [1, 1] : {source_type} to {made}")
        return name, made

    def module(self, steps: list[Step], times: int) -> str:
        k, n, total = self.depth, self.columns, ROWS * BLOCKS
        wide, narrow = kind("gm", "f32", total, n), kind("gm", "f16", total, n)
        self.args = {"A": kind("gm", "f16", total, k), "B": kind("gm", "f16", k, n), "T": kind("gm", "f16", n, k),
                     "D": wide, "O": wide, "P": wide, "Q": wide, "H": narrow}
        self.lines = [f"func.func @k({', '.join(f'%{name}: {type_}' for name, type_ in self.args.items())}) attributes "
                      "{hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {"]
        numbers = sorted({0, 1, 2, ROWS, ROWS // 2, k, n, times})
        self.lines += [f"%c{number} = arith.constant {number} : index" for number in numbers]
        self.lines += ["%true = arith.constant true", "%half = arith.constant 0.5 : f32", "%one = arith.constant 1.0 : f32",
                       "%id = hivm.hir.get_block_idx -> i64", "%block = arith.index_cast %id : i64 to index",
                       "%sub = hivm.hir.get_sub_block_idx -> i64", "%vid = arith.index_cast %sub : i64 to index",
                       f"%row = arith.muli %block, %c{ROWS} : index", f"%in = arith.muli %vid, %c{ROWS // 2} : index",
                       "%mine = arith.addi %row, %in : index"]
        self.lines += [f"%{name} = memref.alloc() : {type_}" for name, type_ in (
            ("t0", self.half), ("t1", self.half), ("h", kind("ub", "f16", ROWS // 2, n)),
            ("r", kind("ub", "f32", ROWS // 2, 1)), ("m", kind("ub", "i1", ROWS // 2, n)))]
        for tile in ("%t0", "%t1"):
            self.op("load", [self.part("%D", wide, "%mine", ROWS // 2, n, n, "f32")], (tile, self.half))
        self.write_direct(False, index="")  # both cores take part in every module
        self.lines.append(f"%last = scf.for %i = %c0 to %c{times} step %c1 iter_args(%s = %one) -> (f32) {{")
        self.block(steps, "%i")
        self.lines += ["%s1 = arith.mulf %s, %half : f32", "%s2 = arith.addf %s1, %half : f32", "scf.yield %s2 : f32", "}"]
        self.op("vmul", [("%t1", self.half), ("%last", "f32")], ("%t1", self.half))
        for tile, out in (("%t0", "%P"), ("%t1", "%Q")):
            self.op("store", [(tile, self.half)], self.part(out, wide, "%mine", ROWS // 2, n, n, "f32"))
        return "\n".join([*self.lines, "return", "}"])

    def block(self, steps: list[Step], index: str) -> None:
        for step in steps:
            getattr(self, f"write_{step[0]}")(*step[1:], index=index)

    def write_binary(self, name: str, target: int, a: int, b: int, *, index: str) -> None:
        self.op(name, [(f"%t{a}", self.half), (f"%t{b}", self.half)], (f"%t{target}", self.half))

    def write_unary(self, name: str, target: int, a: int, *, index: str) -> None:
        self.op(name, [(f"%t{a}", self.half)], (f"%t{target}", self.half))

    def write_scaled(self, target: int, a: int, *, index: str) -> None:
        self.op("vmul", [(f"%t{a}", self.half), ("%s", "f32")], (f"%t{target}", self.half))

    def write_cast(self, target: int, a: int, *, index: str) -> None:
        narrow = kind("ub", "f16", ROWS // 2, self.columns)
        self.op("vcast", [(f"%t{a}", self.half)], ("%h", narrow))
        self.op("vcast", [("%h", narrow)], (f"%t{target}", self.half))

    def write_select(self, target: int, a: int, b: int, *, index: str) -> None:
        mask = kind("ub", "i1", ROWS // 2, self.columns)
        self.op("vcmp", [(f"%t{a}", self.half), ("%s", "f32")], ("%m", mask), "compare_mode = <lt>")
        self.op("vsel", [("%m", mask), (f"%t{a}", self.half), (f"%t{b}", self.half)], (f"%t{target}", self.half))

    def write_row(self, target: int, a: int, *, index: str) -> None:
        row = kind("ub", "f32", ROWS // 2, 1)
        self.op("vreduce <max>", [(f"%t{a}", self.half)], ("%r", row), "reduce_dims = [1]")
        self.op("vsub", [(f"%t{a}", self.half), ("%r", row)], (f"%t{target}", self.half), "broadcast = [1]")

    def write_load(self, target: int, *, index: str) -> None:
        """The first columns only."""
        source = self.part("%D", self.args["D"], "%mine", ROWS // 2, self.filled, self.columns, "f32")
        self.op("load", [source], self.part(f"%t{target}", self.half, "0", ROWS // 2, self.filled, self.columns, "f32", "ub"))

    def write_copy(self, target: int, a: int, *, index: str) -> None:
        if target != a:
            self.op("copy", [(f"%t{a}", self.half)], (f"%t{target}", self.half))

    def write_atomic(self, a: int, *, index: str) -> None:
        out = self.part("%O", self.args["O"], "%mine", ROWS // 2, self.columns, self.columns, "f32")
        self.op("store", [(f"%t{a}", self.half)], out, "atomic = <add>")

    def multiply(self, transposed: bool) -> str:
        k, n = self.depth, self.columns
        a, b, acc = self.fresh(), self.fresh(), self.fresh()
        l1b = self.l1bt if transposed else self.l1b
        self.lines += [f"{name} = memref.alloc() : {type_}" for name, type_ in ((a, self.l1a), (b, l1b), (acc, self.acc))]
        rows = self.part("%A", self.args["A"], "%row", ROWS, k, k, "f16")
        self.op("nd2nz", [rows], (a, self.l1a), attributes="{dst_continuous}")
        name = "T" if transposed else "B"
        self.op("nd2nz", [(f"%{name}", self.args[name])], (b, l1b), attributes="{dst_continuous}")
        sizes = [("%true", "i1"), (f"%c{ROWS}", "index"), (f"%c{k}", "index"), (f"%c{n}", "index")]
        self.op("mmadL1", [(a, self.l1a), (b, l1b), *sizes], (acc, self.acc), attributes="{b_transpose}" if transposed else "")
        return acc

    def write_product(self, target: int, transposed: bool, relu: bool, *, index: str) -> None:
        acc, ws = self.multiply(transposed), self.fresh()
        self.lines.append(f"{ws} = memref_ext.alloc_workspace() : {self.ws}")
        clamp = ", pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>" if relu else ""
        self.op("fixpipe", [(acc, self.acc)], (ws, self.ws), attributes=f"{{dma_mode = #hivm.dma_mode<nz2nd>{clamp}}}")
        self.op("load", [self.part(ws, self.ws, "%in", ROWS // 2, self.columns, self.columns, "f32")],
                (f"%t{target}", self.half))

    def write_direct(self, transposed: bool, *, index: str) -> None:
        acc = self.multiply(transposed)
        self.op("fixpipe", [(acc, self.acc)], self.part("%H", self.args["H"], "%row", ROWS, self.columns, self.columns, "f16"),
                attributes="{dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>}")

    def write_if(self, then: list[Step], otherwise: list[Step], *, index: str) -> None:
        odd, test = self.fresh(), self.fresh()
        self.lines += [f"{odd} = arith.remui {index}, %c2 : index", f"{test} = arith.cmpi eq, {odd}, %c0 : index",
                       f"scf.if {test} {{"]
        self.block(then, index)
        self.lines.append("} else {")
        self.block(otherwise, index)
        self.lines.append("}")

    def write_for(self, times: int, body: list[Step], *, index: str) -> None:
        inner, end = self.fresh(), self.fresh()
        self.lines += [f"{end} = arith.constant {times} : index", f"scf.for {inner} = %c0 to {end} step %c1 {{"]
        self.block(body, inner)
        self.lines.append("}")


class Reader:
    """A reference that computes the module for all blocks at once."""

    def __init__(self, a: Any, b: Any, d: Any, filled: int) -> None:
        self.products = a.astype(np.float32) @ b.astype(np.float32)
        self.d, self.filled = d, filled
        self.t = [d.copy(), d.copy()]
        self.atomic = np.zeros_like(d)
        self.scale = np.float32(1)

    def run(self, steps: list[Step], times: int) -> list[Any]:
        for index in range(times):
            self.block(steps, index)
            self.scale = self.scale * np.float32(0.5) + np.float32(0.5)
        return [self.atomic, self.t[0], self.t[1] * self.scale, self.products.astype(np.float16)]

    def block(self, steps: list[Step], index: int) -> None:
        t = self.t
        for name, *rest in steps:
            if name == "binary":
                t[rest[1]] = BINARY[rest[0]](t[rest[2]], t[rest[3]])
            elif name == "unary":
                t[rest[1]] = UNARY[rest[0]](t[rest[2]])
            elif name == "scaled":
                t[rest[0]] = t[rest[1]] * self.scale
            elif name == "cast":
                t[rest[0]] = t[rest[1]].astype(np.float16).astype(np.float32)
            elif name == "select":
                t[rest[0]] = np.where(t[rest[1]] < self.scale, t[rest[1]], t[rest[2]])
            elif name == "row":
                t[rest[0]] = t[rest[1]] - t[rest[1]].max(1, keepdims=True)
            elif name == "load":
                t[rest[0]] = np.concatenate([self.d[:, :self.filled], t[rest[0]][:, self.filled:]], axis=1)
            elif name == "copy":
                t[rest[0]] = t[rest[1]].copy()
            elif name == "atomic":
                self.atomic = self.atomic + t[rest[0]]
            elif name == "product":
                t[rest[0]] = np.maximum(self.products, 0) if rest[2] else self.products.copy()
            elif name == "if":
                self.block(rest[0] if index % 2 == 0 else rest[1], index)
            elif name == "for":
                for inner in range(rest[0]):
                    self.block(rest[1], inner)


@settings(max_examples=int(os.environ.get("TILELANG_RANDOM_MODULES", "30")), deadline=None)
@given(steps=STEPS, times=st.integers(0, 3), depth=st.sampled_from([16, 32]), columns=st.sampled_from([16, 48]),
       filled=st.sampled_from([8, 16]))
def test_the_numbers_the_text_and_the_cycles(steps: list[Step], times: int, depth: int, columns: int, filled: int) -> None:
    rng = np.random.default_rng(0)
    total = ROWS * BLOCKS
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((total, depth), (depth, columns)))
    d = rng.integers(-4, 5, (total, columns)).astype(np.float32)
    outs = [np.zeros((total, columns), kind_) for kind_ in (np.float32, np.float32, np.float32, np.float16)]
    module = runnable(parse_module(Writer(depth, columns, filled).module(steps, times)))
    written = print_module(module)
    again = parse_module(written)
    assert print_module(again) == written
    results = []
    for one in (module, again, parse_module(print_module(module, generic=True))):
        arrays = [a, b, b.T.copy(), d, *(out.copy() for out in outs)]
        launch = simulator.simulate(one, arrays, blocks=BLOCKS, hazards=True)
        assert launch.hazards == []
        results.append((launch.cycles, [array.tobytes() for array in arrays]))
    assert results[0] == results[1] == results[2]
    with np.errstate(all="ignore"):
        right = Reader(a, b, d, filled).run(steps, times)
    for array, expected in zip(arrays[4:], right, strict=True):
        np.testing.assert_array_equal(array, expected)
