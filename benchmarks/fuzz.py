"""Fuzzer: random kernels are run compiled and interpreted, with the sanitizer and the static check.

    python benchmarks/fuzz.py SECONDS [--seed N] [--count N] [--keep DIR] [--jobs N]

A kernel is compiled for Ascend910B2 with every optimisation on, and a second time for a random chip with a random optimisation
off. A finding is

- ``values``: the compiled result differs from the interpreter's by more than rounding;
- ``hazard``: the sanitizer or the static check reports a hazard, although the compiler inserts every wait itself (padding in
  reductions is no such hazard);
- ``exception``: an error other than a refusal of the compiler;
- ``silent``: the interpreter reports an access outside of a buffer, and the compiled run does not;
- ``refused``: the interpreter refuses a kernel that the compiler accepts;
- ``unsaid``: a loop shadows the variable of an enclosing loop, which is used after it, and there is no warning;

and is written to ``DIR/seed-N.py``, a script that reproduces it.
"""

from __future__ import annotations

import argparse
import inspect
import linecache
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tilelang_npu as tilelang
from tilelang_npu.errors import SanitizerError, TileError
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import record
from tilelang_npu.runtime.reports.static_checker import Checker
from tilelang_npu.target import chips
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "float32", "bfloat16")
CHIPS = {family: sorted(chip.name for chip in chips() if chip.family == family)
         for family in sorted({chip.family for chip in chips()})}
"""Names of the chips of each family: a family is drawn, then a chip of it."""
ROWS = 288
"""Length of the inputs' first axis; tiles are loaded from rows before the last ones, or extend past the end."""
SHADOWED = "T147"
"""The warning for a loop that shadows the variable of an enclosing loop."""
PADDING = "S224"
"""The code of padding that takes part in a reduction."""
OUTSIDE = ("T130", "T502")
"""Codes of an access outside of its buffer."""


# --- programs: statements as a tree of lines ----------------------------------------------------------------------------------


@dataclass
class Line:
    """A statement, or one with a body."""

    text: str
    body: list[Line] = field(default_factory=list)
    opens: bool = False

    def lines(self, indent: int) -> Iterator[str]:
        """The source."""
        yield "    " * indent + self.text
        if self.opens:
            for line in self.body:
                yield from line.lines(indent + 1)
            if not self.body:
                yield "    " * (indent + 1) + "pass"


@dataclass
class Program:
    """A kernel.

    Attributes:
        target: ``npuir`` or ``ascendc``.
        blocks: number of blocks.
        symbolic: whether the length of the inputs' first axis is a symbolic dimension.
        inner: sizes of the other axes of tensors and tiles: none, one or two.
        types: element types of the inputs; there is an output of each of them too.
        macros: macro definitions.
        body: the statements of ``with T.Kernel``.
        n: the value of the scalar argument.
        outputs: length of the outputs' first axis.
    """

    target: str
    blocks: int
    symbolic: bool
    inner: tuple[int, ...]
    types: list[str]
    macros: list[Line]
    body: list[Line]
    n: int
    outputs: int

    def tensors(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Element type and shape of each tensor, by its name, without those of the outputs."""
        return {**{f"X_{kind}": (kind, (ROWS, *self.inner)) for kind in self.types}, "H": ("float16", (96, 64))}

    def results(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Element type and shape of each output."""
        return {**{f"O_{kind}": (kind, (self.outputs, *self.inner)) for kind in self.types}, "P": ("float32", (512, 64))}

    def source(self) -> str:
        """The kernel as a Python module with ``main`` in it."""
        def declared(name: str, kind: str, shape: tuple[int, ...]) -> str:
            first = "R" if self.symbolic and name.startswith("X_") else shape[0]
            sizes = [str(first), *map(str, shape[1:])]
            return f'{name}: T.Tensor(({", ".join(sizes)},), "{kind}")'

        parameters = [declared(name, *about) for name, about in self.tensors().items()]
        parameters += ["n: T.int32", *(declared(name, *about) for name, about in self.results().items())]
        lines = ["import tilelang_npu as tilelang", "import tilelang_npu.language as T", ""]
        if self.symbolic:
            lines.append('R = T.symbolic("R")')
        for macro in self.macros:
            lines += ["", "@T.macro", *macro.lines(0)]
        lines += ["", "@T.prim_func", f"def main({', '.join(parameters)}):",
                  f"    with T.Kernel({self.blocks}, is_npu=True) as (cid, _):"]
        for line in self.body:
            lines += line.lines(2)
        return "\n".join(lines) + "\n"

    def arguments(self, seed: int) -> list[Any]:
        """Arguments of a call."""
        return [*inputs(seed, self.tensors()), self.n, *inputs(None, self.results())]


def inputs(seed: int | None, tensors: dict[str, tuple[str, tuple[int, ...]]]) -> list[Any]:
    """Returns arrays of some element types and shapes: integers of the whole range and small ones, floats of both signs and a
    few outside of the range of int8; zeros without a seed."""
    import ml_dtypes
    import numpy as np

    rng, made = np.random.default_rng(seed), []
    for name, (kind, shape) in tensors.items():
        dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        if seed is None:
            made.append(np.zeros(shape, dtype))
        elif name == "H":
            made.append((rng.integers(-4, 5, shape) / 2).astype(dtype))
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            small = rng.integers(max(info.min, -100), min(info.max, 200), shape, endpoint=True).astype(dtype)
            large = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
            made.append(np.where(rng.random(shape) < 0.8, small, large))
        else:
            made.append((rng.standard_normal(shape) * np.where(rng.random(shape) < 0.9, 4, 64)).astype(dtype))
    return made


# --- drawing programs --------------------------------------------------------------------------------------------------------


class Draw:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def one(self, choices: Any) -> Any:
        """Returns a random choice."""
        return self.random.choice(list(choices))

    def chance(self, share: float) -> bool:
        """Returns True with a probability."""
        return self.random.random() < share

    def name(self, what: str) -> str:
        """Returns a new name."""
        self.count += 1
        return f"{what}{self.count}"

    def program(self) -> Program:
        """A program."""
        r = self.random
        self.target = "npuir" if self.chance(0.75) else "ascendc"
        self.blocks = self.one([1, 1, 2, 3])
        self.inner = self.one([(), *[(size,) for size in (8, 16, 24, 32, 48, 64, 20)],
                               *([(3, 16), (2, 32)] if self.target == "npuir" else [])])  # ascendc's T.Parallel has two axes
        self.rows = self.one([8, 24, 33, 64]) if not self.inner else self.one([1, 3, 8, 16])
        self.shape = (self.rows, *self.inner)
        self.types = list(dict.fromkeys(r.sample([*INTEGERS, *FLOATS, "float32", "int32", "float16"], k=self.one([1, 2, 3]))))
        self.macros: list[Line] = []
        self.tiles: dict[str, list[str]] = {}
        self.vectors: list[tuple[str, str]] = []
        self.variables: list[tuple[str, str]] = []
        self.loops: list[str] = []
        self.cube = self.chance(0.4)
        body = [Line(f"rows0 = cid * {self.rows}")]
        for kind in self.types:
            for _ in range(self.one([1, 2])):
                name = self.name("t")
                self.tiles.setdefault(kind, []).append(name)
                body.append(Line(f'{name} = T.alloc_shared({self.shape}, "{kind}")'))
                body.append(self.load(kind, name))
        kind = self.one(self.types)
        if len(self.inner) == 1 and self.chance(0.4) and kind in ("float16", "float32", "int32"):
            name = self.name("v")
            self.vectors.append((kind, name))
            body += [Line(f'{name} = T.alloc_shared(({self.rows}, 1), "{kind}")'), Line(f"T.fill({name}, 1)")]
        if self.chance(0.3):
            kind, name = self.one(["int32", "float32"]), self.name("a")
            body.append(Line(f'{name} = T.alloc_var("{kind}", init=2)'))
            self.variables.append((kind, name))
        if self.cube:
            body += [Line('h = T.alloc_shared((32, 32), "float16")'), Line('g = T.alloc_shared((32, 32), "float16")'),
                     Line('c = T.alloc_fragment((32, 32), "float32")'), Line('d = T.alloc_fragment((32, 32), "float32")'),
                     Line('f = T.alloc_shared((32, 32), "float32")'),
                     Line("T.copy(H[0, 0], h)"), Line("T.copy(H[32, 0], g)"), Line("T.fill(f, 0.5)"),
                     Line("T.gemm(h, g, c, initC=True)"), Line("T.gemm(g, h, d, initC=True)")]
        for _ in range(r.randint(1, 6)):
            body += self.statement(0)
        outputs = 1
        zeros = ", 0" * len(self.inner)
        for kind in self.types:
            for number, name in enumerate(self.tiles[kind]):
                body.append(Line(f"T.copy({name}, O_{kind}[cid * {self.rows} + {number * self.blocks * self.rows}{zeros}])"))
                outputs = max(outputs, (number + 1) * self.blocks * self.rows)
        for number, (kind, name) in enumerate(self.vectors):
            if kind == "float32":
                body.append(Line(f"T.copy({name}, P[{number * 16} + cid * {self.rows}, 63])"))
        if self.cube:
            body += [Line("T.copy(c, P[128 + cid * 32, 0])"), Line("T.copy(d, P[256 + cid * 32, 32])"),
                     Line("T.copy(f, P[384 + cid * 32, 0])")]
        return Program(self.target, self.blocks, self.chance(0.25), self.inner, self.types, self.macros, body,
                       self.one([0, 1, 2, 3, 5]), outputs)

    # --- statements ------------------------------------------------------------------------------------------------------

    def load(self, kind: str, name: str) -> Line:
        """A load of a tile, sometimes one that extends past the end."""
        start = self.one([f"rows0 + {self.random.randint(0, 40)}", f"(cid + {self.random.randint(0, 5)}) * {self.rows}",
                          f"{ROWS} - {self.rows} + n % 2 * {self.one([0, max(1, self.rows // 2)])}"])
        pad = ", pad_value=1" if self.chance(0.1) and self.target == "npuir" else ""
        return Line(f"T.copy(X_{kind}[{start}{', 0' * len(self.inner)}], {name}{pad})")

    def statement(self, depth: int) -> list[Line]:
        """One or two statements."""
        weights: list[tuple[Callable[[int], list[Line]], float]] = [
            (self.parallel, 5), (self.operation, 3), (self.reload, 2), (self.branch, 2 if depth < 3 else 0),
            (self.loop, 2.5 if depth < 3 else 0), (self.reduction, 1.5 if self.vectors else 0),
            (self.variable, 1 if self.variables else 0), (self.product, 4 if self.cube else 0),
            (self.macro, 0.7 if depth == 0 else 0), (self.alias, 0.7 if depth == 0 else 0), (self.fill, 1)]
        functions, shares = zip(*weights, strict=True)
        return self.random.choices(functions, shares)[0](depth)

    def body(self, depth: int) -> list[Line]:
        """The statements of a block."""
        found: list[Line] = []
        for _ in range(self.random.randint(1, 3)):
            found += self.statement(depth + 1)
        return found

    def reload(self, depth: int) -> list[Line]:
        """A second load of a tile."""
        kind = self.one(self.tiles)
        return [self.load(kind, self.one(self.tiles[kind]))]

    def part(self) -> str:
        """A whole tile, or some of its rows or columns."""
        sizes = [f"0:{size}" for size in self.shape]
        rows = [f"0:{max(1, self.rows // 2)}", *sizes[1:]]
        choices = ["", "", f"[{', '.join(rows)}]"]
        if self.inner and self.inner[-1] >= 16:
            choices.append(f"[{', '.join([*sizes[:-1], '0:8'])}]")
        return self.one(choices)

    def fill(self, depth: int) -> list[Line]:
        """A fill of a tile, or of a part of one."""
        kind = self.one(self.tiles)
        tile = self.one(self.tiles[kind]) + self.part()
        return [Line(self.one([f"T.fill({tile}, {self.number(kind)})", f"T.clear({tile})"]))]

    def alias(self, depth: int) -> list[Line]:
        """A second name, or another shape, of a tile."""
        kind = self.one(self.tiles)
        old, new = self.one(self.tiles[kind]), self.name("s")
        made = Line(f"{new} = {old}" if self.chance(0.5) else f"{new} = T.view({old}, {self.shape})")
        rest = "".join(f", 0:{size}" for size in self.inner)
        return [made, Line(f"T.fill({new}[0:1{rest}], {self.number(kind)})")]

    def variable(self, depth: int) -> list[Line]:
        """An assignment to a scalar variable."""
        _, name = self.one(self.variables)
        amount = self.one(["1", "cid", "n", *(self.loops or ["3"])])
        return [Line(self.one([f"{name} = {name} + {amount}", f"{name} += 1", f"{name} = {name} * 2 - {amount}"]))]

    def branch(self, depth: int) -> list[Line]:
        """An ``if``, with or without an ``else``."""
        left = self.one(["n", "cid", "n + cid", *self.loops, *(name for kind, name in self.variables if kind == "int32")])
        test = self.one([f"{left} > {self.random.randint(0, 3)}", f"{left} % 2 == {self.random.randint(0, 1)}",
                         f"{left} < 2 and n != 1", f"{left} == 0 or n > 2"])
        made = [Line(f"if {test}:", self.body(depth), True)]
        if self.chance(0.4):
            made.append(Line("else:", self.body(depth), True))
        return made

    def loop(self, depth: int) -> list[Line]:
        """A loop; its variable may have the name of an enclosing loop's, which is then used after it."""
        hides = bool(self.loops) and self.chance(0.15)
        name = self.one(self.loops) if hides else f"k{len(self.loops)}"
        trips = self.one(["1", "2", "3", "4", "n", "n + 1", "cid + 1"])
        kind = self.one([f"T.serial({trips})", f"range({trips})", f"T.Pipelined({trips}, num_stages=2)",
                         f"T.Pipelined({trips}, num_stages=3)", f"T.serial(1, {trips} + 1)"])
        self.loops.append(name)
        body = self.body(depth)
        self.loops.pop()
        made = [Line(f"for {name} in {kind}:", body, True)]
        if hides:
            kind = self.one(self.tiles)
            tile = self.one(self.tiles[kind])
            first = ", ".join("0" for _ in self.shape)
            made.append(Line(f"{tile}[{first}] = {name}"))
        return made

    def operation(self, depth: int) -> list[Line]:
        """An operation on whole tiles."""
        kind = self.one([kind for kind in self.tiles if kind in (*SIGNED, "float16", "float32")] or [None])
        if kind is None:
            return self.fill(depth)
        names = self.tiles[kind]
        a, b, out = self.one(names), self.one(names), self.one(names)
        if self.vectors and kind == self.vectors[0][0] and self.chance(0.3):
            b = self.vectors[0][1]
        word = self.one(["add", "sub", "mul", "max", "min"])
        if kind in FLOATS and self.chance(0.3):
            word = self.one(["exp", "abs", "relu", "sqrt"])
            return [Line(f"T.tile.{word}({out}, {a})" if self.target == "ascendc" else f"T.v{word}({a}, {out})")]
        other = self.number(kind) if self.chance(0.25) else b
        return [Line(f"T.tile.{word}({out}, {a}, {other})" if self.target == "ascendc" else f"T.v{word}({a}, {other}, {out})")]

    def reduction(self, depth: int) -> list[Line]:
        """A reduction along the rows."""
        kind, name = self.one(self.vectors)
        word = self.one(["reduce_max", "reduce_min", "reduce_sum"])
        clear = self.one(["", "", ", clear=False"])
        return [Line(f"T.{word}({self.one(self.tiles[kind])}, {name}, dim=-1{clear})")]

    def product(self, depth: int) -> list[Line]:
        """Products, and transfers of tiles between the cores."""
        init = self.one(["False", "True", *(f"({name} == 0)" for name in self.loops)])
        target, other, start = self.one(["c", "d"]), self.one(["g", "h"]), f"n * {self.one([1, 2, 8])}"
        choices: list[tuple[float, list[Line]]] = [
            (2, [Line(f"T.gemm(h, g, {target}, initC={init})")]),
            (1, [Line(f"T.gemm(h, {other}, {target}, initC={init}, b_transpose=True)")]),
            (1.5, [Line(f"T.clear({target})")]),
            (1, [Line(f"T.copy(H[n * 8, {self.one([0, 16, 32])}], {other})")]),
            (0.5, [Line(f"T.copy(H[32:48, 0:32], {other}[16:32, 0:32])")]),
            (0.5, [Line(f"T.copy(H[0:16, 0:32], {other}[{start}:{start} + 16, 0:32])")]),
            (1, [Line(f"T.copy({target}, f)")]),
            (1, [Line(f"T.copy({target}, f)"),
                 Line("T.vmul(f, 0.5, f)" if self.target == "npuir" else "T.tile.mul(f, f, 0.5)")]),
            (1, [Line("T.copy(f, g)")]),
            (1, [Line("for i, j in T.Parallel(32, 32):",
                      [Line(f"f[i, j] = f[i, j] * 0.25 + {self.one(['i', 'j', 'n', '1.0'])}")], True)]),
        ]
        made: list[Line] = self.random.choices([lines for _, lines in choices], [share for share, _ in choices])[0]
        return made

    def macro(self, depth: int) -> list[Line]:
        """A macro, and its call."""
        kind = self.one([kind for kind in self.tiles if kind in (*SIGNED, "float16", "float32")] or [None])
        if kind is None:
            return self.fill(depth)
        name, operation = self.name("macro"), self.one(["add", "sub", "max"])
        call = f"T.tile.{operation}(x, x, y)" if self.target == "ascendc" else f"T.v{operation}(x, y, x)"
        inner = [Line(call)]
        if self.chance(0.5):
            inner = [Line("for q in T.serial(m):", inner, True)]
        self.macros.append(Line(f"def {name}(x, y, m):", inner, True))
        a, b = self.one(self.tiles[kind]), self.one(self.tiles[kind])
        return [Line(f"{name}({a}, {b}, {self.one(['1', '2', 'n'])})")]

    # --- T.Parallel ------------------------------------------------------------------------------------------------------

    def parallel(self, depth: int) -> list[Line]:
        """An elementwise loop with an expression of several types."""
        kind = self.one(self.tiles)
        out = self.one(self.tiles[kind])
        extents = list(self.shape)
        if self.chance(0.25):
            axis = self.random.randrange(len(extents))
            extents[axis] = max(1, extents[axis] // 2)
        self.axes = ["i", "j", "k"][:len(extents)]
        self.out = out
        # for each axis: the index of a store, different for each point, and the index of a load
        stores = [[name] for name in self.axes]
        self.loads = []
        for axis, (name, extent, size) in enumerate(zip(self.axes, extents, self.shape, strict=True)):
            room = size - extent
            places = [f"{extent - 1} - {name}", *([f"{name} + {room}", f"{size - 1} - {name}"] if room else []),
                      *([f"{name} * 2", f"2 * {name} + 1"] if extent > 1 and 2 * extent <= size else [])]
            if self.chance(0.25):
                stores[axis] += places
            other = [one for one, length in zip(self.axes, extents, strict=True) if one != name and length <= size]
            self.loads.append([*[name] * 6, *places, "0", f"{name} // 2", f"({name} + 1) % {extent}", f"{size - 1}", *other])
        self.aligned = [self.one(choices) for choices in stores]
        if self.chance(0.12):
            return [Line(f"for {', '.join(self.axes)} in T.Parallel({', '.join(map(str, extents))}):",
                         [self.accumulation(kind, out)], True)]
        body = [Line(f"{out}[{', '.join(self.aligned)}] = {self.expression(kind, self.one([1, 2, 2, 3]))}")]
        if self.chance(0.2):
            body = [Line(f"if {self.condition(kind)}:", body, True)]
            if self.chance(0.3):
                body.append(Line("else:", [Line(f"{out}[{', '.join(self.aligned)}] = {self.expression(kind, 1)}")], True))
        return [Line(f"for {', '.join(self.axes)} in T.Parallel({', '.join(map(str, extents))}):", body, True)]

    def accumulation(self, kind: str, out: str) -> Line:
        """A statement of T.Parallel that combines the values of several points in one element."""
        for axis in range(len(self.aligned)):
            if self.chance(0.6):
                self.aligned[axis] = self.one(["0", str(self.shape[axis] - 1), str(self.random.randrange(self.shape[axis]))])
        element, value = f"{out}[{', '.join(self.aligned)}]", self.expression(kind, self.one([0, 1, 2]))
        forms = [f"{element} + {value}", f"{element} - {value}", f"T.max({element}, {value})", f"T.min({value}, {element})"]
        if kind in INTEGERS:
            forms += [f"{element} & {value}", f"{element} | {value}", f"{value} ^ {element}"]
        return Line(f"{element} = {self.one(forms)}")

    def operand(self, kind: str) -> str:
        """An element, an index, a number or a variable."""
        draw = self.random.random()
        if draw < 0.55:
            name = self.one(self.tiles[kind]) if self.chance(0.7) else self.one(self.one(list(self.tiles.values())))
            places = self.aligned if name == self.out else [self.one(choices) for choices in self.loads]
            return f"{name}[{', '.join(places)}]"
        if draw < 0.7:
            first, last = self.axes[0], self.axes[-1]
            return self.one([first, last, f"{first} + {last}", f"{last} * 3", f"{last} - {first}", f"-{first}"])
        if draw < 0.78:
            return self.one(["n", "cid", *self.loops, *(name for _, name in self.variables)])
        return self.number(kind)

    def number(self, kind: str) -> str:
        """A literal of the type."""
        if kind in FLOATS:
            return self.one(["0.5", "2.0", "-1.25", "3", "0"])
        if kind in UNSIGNED:
            return self.one(["0", "1", "3", "100"])
        return self.one(["0", "1", "-2", "7", "100"])

    def condition(self, kind: str) -> str:
        """A comparison."""
        sign = self.one([">", "<", ">=", "<=", "==", "!="])
        return f"{self.operand(kind)} {sign} {self.operand(kind)}"

    def expression(self, kind: str, depth: int) -> str:
        """An expression."""
        if depth == 0:
            return self.operand(kind)
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        choices = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"T.max({a}, {b})", f"T.min({a}, {b})",
                   f"T.if_then_else({self.condition(kind)}, {a}, {b})"]
        if kind in INTEGERS:
            choices += [f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})", f"({a} // 3)", f"({a} % 5)", f"({a} << 1)",
                        f"({a} >> 1)"]
        else:
            choices += [f"T.exp(T.min({a}, 2.0))", f"T.abs({a})", f"({a} / 3.0)", f"T.sqrt(T.abs({a}))"]
        choices += [f'T.cast({a}, "{self.one([*self.types, "float32", "int32"])}")']
        found: str = self.one(choices)
        return found


# --- running -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """A finding for a program.

    Attributes:
        kind: see the docstring of the module.
        key: the property that a shrunk program must have too.
        text: the report.
        chip, without: how it was compiled.
    """

    kind: str
    key: str
    text: str
    chip: str
    without: tuple[str, ...]


class Refused(Exception):
    """The compiler refuses the program, or the program is invalid and both ways report an error."""


_NUMBER = [0]


def switches(program: Program, without: tuple[str, ...]) -> dict[Any, Any]:
    """Returns the pass switches of a program."""
    keys = tilelang.PassConfigKey
    automatic = (keys.TL_ASCEND_AUTO_SYNC, keys.TL_ASCEND_AUTO_CV_SYNC, keys.TL_ASCEND_AUTO_CV_COMBINE,
                 keys.TL_ASCEND_MEMORY_PLANNING)
    return {"tl.disable": list(without)} | ({key.value: True for key in automatic} if program.target == "ascendc" else {})


def compiled(program: Program, chip: str, without: tuple[str, ...]) -> Any:
    """Compiles the program.

    Raises:
        TileError: the compiler refuses it.
    """
    _NUMBER[0] += 1
    name = f"<fuzz {os.getpid()} {_NUMBER[0]}>"
    source = program.source()
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "fuzz"}
    exec(compile(source, name, "exec"), names)
    try:
        return tilelang.compile(names["main"], target=program.target, chip=chip, pass_configs=switches(program, without))
    finally:
        linecache.cache.pop(f"<fuzz {os.getpid()} {_NUMBER[0] - 50}>", None)


def is_hidden(lines: list[Line], names: tuple[str, ...] = ()) -> bool:
    """Whether a loop shadows the variable of an enclosing loop, and a later statement in the same block reads this variable."""
    for at, line in enumerate(lines):
        name = line.text.split()[1] if line.text.startswith("for k") else None
        if name in names and any(after.text.endswith(f"= {name}") for after in lines[at + 1:]):
            return True
        if is_hidden(line.body, (*names, name) if name else names):
            return True
    return False


def judge(program: Program, seed: int, chip: str, without: tuple[str, ...]) -> Finding | None:
    """Compiles a program, runs it compiled and interpreted, and checks it for hazards.

    Raises:
        Refused: the compiler refuses it.
    """
    def found(kind: str, key: str, text: str) -> Finding:
        return Finding(kind, key, text, chip, without)

    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            kernel = compiled(program, chip, without)
        if is_hidden(program.body) and not any(str(one.message).startswith(SHADOWED) for one in warned):
            return found("unsaid", SHADOWED, "a loop hides the variable of a loop around it, and no warning says so")
    except TileError as error:
        if type(error) is not TileError:  # InternalError
            return found("exception", f"{type(error).__name__} {error.code}", str(error))
        raise Refused(error.code) from None
    except Exception as error:  # noqa: BLE001  (any exception of the compiler is a finding of this seed)
        return _raised(error, found)
    try:
        with record(sanitizer=Sanitizer([])) as done:
            agreement = kernel.check(*program.arguments(seed))
        hazards = [finding for tally in done.tallies for finding in tally.findings if _counts(finding)]
        if agreement and not hazards:
            hazards = statically(kernel, program, seed)
    except SanitizerError as error:
        return found("hazard", error.code, str(error))
    except TileError as error:
        of_run = reported(kernel, program, seed)
        if of_run is None:  # an error of the interpreter
            return found("silent" if error.code in OUTSIDE else "refused", error.code, str(error))
        if of_run in OUTSIDE and reported(kernel.interpret, program, seed) in OUTSIDE:
            raise Refused(error.code) from None
        return found("exception", error.code, str(error))
    except Exception as error:  # noqa: BLE001  (any exception of the simulator is a finding of this seed)
        return _raised(error, found)
    if not agreement:
        code = f" with {hazards[0].code}" if hazards else ""  # shrinking must not add reads of unwritten memory
        return found("values", agreement.differences[0].tensor + code, str(agreement))
    if hazards:
        return found("hazard", hazards[0].code, str(hazards[0]))
    return None


def statically(kernel: Any, program: Program, seed: int) -> list[Any]:
    """Returns the findings of the static check of a kernel that runs without a finding."""
    checker = Checker(Sanitizer([]), {})
    with record(checker=checker):
        kernel(*program.arguments(seed))
    return [finding for look in checker.looks for finding in look.findings if _counts(finding)]


def _counts(finding: Any) -> bool:
    """Whether a finding is one of the compiler: a program that reduces tiles past the end of a tensor reduces their padding."""
    return finding.allowed is None and finding.code != PADDING


def reported(call: Callable[..., Any], program: Program, seed: int) -> str | None:
    """Returns the code of the error that a run ends with; None if it succeeds."""
    try:
        call(*program.arguments(seed))
    except TileError as error:
        return error.code
    return None


def _raised(error: Exception, found: Callable[[str, str, str], Finding]) -> Finding:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return found("exception", f"{type(error).__name__} {Path(last.filename).name}:{last.name}",
                 "".join(traceback.format_exception(error))[-3000:])


# --- shrinking ---------------------------------------------------------------------------------------------------------------


def smaller(lines: list[Line]) -> Iterator[list[Line]]:
    """Yields copies of a body with statements removed, long runs first, and then with single blocks unwrapped."""
    width = max(len(lines) // 2, 1)
    while width and lines:
        for at in reversed(range(0, len(lines), width)):
            yield lines[:at] + lines[at + width:]
        width //= 2
    for at, line in enumerate(lines):
        if line.opens:
            yield lines[:at] + line.body + lines[at + 1:]
            for body in smaller(line.body):
                yield [*lines[:at], Line(line.text, body, True), *lines[at + 1:]]


def shrunk(program: Program, seed: int, finding: Finding, seconds: float) -> tuple[Program, Finding]:
    """Returns a smaller program with the same kind of finding."""
    end = time.monotonic() + seconds
    best, last = program, finding

    def shows(tried: Program) -> bool:
        nonlocal best, last
        try:
            other = judge(tried, seed, finding.chip, finding.without)
        except (Refused, SyntaxError):
            return False
        if other is None or (other.kind, other.key) != (finding.kind, finding.key):
            return False
        best, last = tried, other
        return True

    progress = True
    while progress and time.monotonic() < end:
        progress = any(shows(replace(best, body=body)) for body in smaller(best.body) if time.monotonic() < end)
    for change in ({"macros": []}, {"symbolic": False}, {"blocks": 1}):
        if time.monotonic() < end:
            shows(replace(best, **change))
    return best, last


def script(program: Program, seed: int, finding: Finding) -> str:
    """Returns a self-contained script that reproduces a finding."""
    head = "".join(f"# {line}\n" for line in finding.text.splitlines()[:12])
    return f"""# {finding.kind} {finding.key}, seed {seed}, on {finding.chip} without {list(finding.without)}
{head}from typing import Any

{program.source()}

{inspect.getsource(inputs)}

kernel = tilelang.compile(main, target={program.target!r}, chip={finding.chip!r}, sanitize={finding.kind == "hazard"},
                          pass_configs={switches(program, finding.without)!r})
print(kernel.check(*inputs({seed}, {program.tensors()!r}), {program.n},
                   *inputs(None, {program.results()!r})))
"""


# --- the command -------------------------------------------------------------------------------------------------------------


def ways(seed: int) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the chip and the disabled optimisations of both compilations of a program."""
    drawn = random.Random(seed)
    chip = drawn.choice(CHIPS[drawn.choice(list(CHIPS))])
    return [("Ascend910B2", ()), (chip, (drawn.choice(list(OPTIMISATIONS)),) if drawn.random() < 0.7 else ())]


def examine(seed: int, keep: Path | None = None, shrink: float = 60.0) -> tuple[int, Counter[str], Finding | None]:
    """Draws a program and judges it; a finding is shrunk and written to ``keep``."""
    outcomes: Counter[str] = Counter(programs=1)
    program = Draw(seed).program()
    for chip, without in ways(seed):
        try:
            finding = judge(program, seed, chip, without)
        except Refused as refusal:
            outcomes[f"refused {refusal}"] += 1
            break
        outcomes["judged"] += 1
        if finding is not None:
            outcomes[finding.kind] += 1
            if keep is not None:
                small, finding = shrunk(program, seed, finding, shrink)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"seed-{seed}.py").write_text(script(small, seed, finding), encoding="utf-8")
            return seed, outcomes, finding
    return seed, outcomes, None


def _prepare() -> None:
    os.environ["TILELANG_DISABLE_CACHE"] = "1"
    warnings.simplefilter("ignore")


def _examined(given: tuple[int, Path | None, float]) -> tuple[int, Counter[str], Finding | None]:
    return examine(*given)


def campaign(seconds: float, first: int, count: int | None = None, keep: Path | None = None, *, jobs: int = 1,
             shrink: float = 60.0, until_found: bool = False) -> tuple[Counter[str], list[tuple[int, Finding]]]:
    """Judges programs from seed ``first`` on, until the time is over, ``count`` were judged, or a finding ends the run.

    Returns:
        the number of programs by outcome, and the findings with their seeds.
    """
    outcomes: Counter[str] = Counter()
    findings: list[tuple[int, Finding]] = []
    end = time.monotonic() + seconds

    def seeds() -> Iterator[tuple[int, Path | None, float]]:
        seed = first
        while time.monotonic() < end and (count is None or seed - first < count) and not (until_found and findings):
            yield seed, keep, shrink
            seed += 1

    def note(results: Any) -> None:
        for seed, counted, finding in results:
            outcomes.update(counted)
            if finding is not None:
                findings.append((seed, finding))
                print(f"seed {seed}: {finding.kind} {finding.key} on {finding.chip} without {list(finding.without)}\n  "
                      + "\n  ".join(finding.text.splitlines()[:6]), flush=True)

    _prepare()
    if jobs == 1:
        note(map(_examined, seeds()))
    else:
        with multiprocessing.get_context("spawn").Pool(jobs, _prepare) as pool:
            note(_bounded(pool, seeds(), 4 * jobs))
    return outcomes, findings


def _bounded(pool: Any, given: Iterator[Any], most: int) -> Iterator[Any]:
    """Yields the results in order, with at most ``most`` tasks in progress."""
    under_way: list[Any] = []
    for one in given:
        under_way.append(pool.apply_async(_examined, (one,)))
        while len(under_way) >= most:
            yield under_way.pop(0).get()
    for result in under_way:
        yield result.get()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="largest number of programs")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "tilelang-fuzz", help="their folder")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds for shrinking a finding")
    parser.add_argument("--first", action="store_true", help="stop at the first finding")
    args = parser.parse_args()
    outcomes, findings = campaign(args.seconds, args.seed, args.count, args.keep, jobs=args.jobs, shrink=args.shrink,
                                  until_found=args.first)
    refused = {word: number for word, number in sorted(outcomes.items()) if word.startswith("refused ")}
    print(f"{outcomes['programs']} programs from seed {args.seed}, {outcomes['judged']} compiled and judged, "
          f"{sum(refused.values())} refused, {len(findings)} findings" + (f" in {args.keep}" if findings else ""))
    for word, number in refused.items():
        print(f"  {word}: {number}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
