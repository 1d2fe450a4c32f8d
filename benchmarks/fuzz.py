"""Random kernels, each computed compiled and interpreted, watched by the sanitizer and looked at by the static check.

    python benchmarks/fuzz.py SECONDS [--seed N] [--count N] [--keep DIR] [--jobs N]

A kernel is compiled for the usual chip, and once more for a chip drawn at random with an optimisation off that is drawn at random.
It is a finding where

- the compiled result is not the interpreter's (within what rounding explains),
- the run or the static check reports a hazard, as the compiler inserts every wait itself,
- an exception is raised that is no ``TileError``, or the interpreter refuses what the compiler takes.

Kernels that the compiler refuses are counted. A finding is shrunk, as long as it stays the same kind of finding, and written to
``DIR/seed-N.py``, a script that shows it by itself.
"""

from __future__ import annotations

import argparse
import linecache
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import SanitizerError, TileError
from tilelang_npu.target import chips
from tilelang_npu.transforms.ir.optimisations import OPTIMISATIONS

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "bfloat16")
CHIPS = sorted({chip.name for chip in chips() if chip.name in ("Ascend910B2", "Ascend910_9391", "Ascend910_95")})
ROWS = 288
"""Rows of every input; tiles are loaded from rows before the last ones, or hang over the end."""


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
        symbolic: whether the number of rows is a symbolic dimension.
        columns: of the tensors.
        types: element types of the inputs; there is an output for each of them too.
        macros: macro definitions.
        body: the statements of ``with T.Kernel``.
        n: the value of the scalar argument.
    """

    target: str
    blocks: int
    symbolic: bool
    columns: int
    types: list[str]
    macros: list[Line]
    body: list[Line]
    n: int
    outputs: int

    def source(self) -> str:
        """The kernel as a Python module with ``main`` in it."""
        rows = "R" if self.symbolic else str(ROWS)
        inputs = [f'X_{kind}: T.Tensor(({rows}, {self.columns}), "{kind}")' for kind in self.types]
        outputs = [f'O_{kind}: T.Tensor(({self.outputs}, {self.columns}), "{kind}")' for kind in self.types]
        extra = ['H: T.Tensor((96, 64), "float16")', 'I: T.Tensor((64,), "int32")', "n: T.int32"]
        result = ['P: T.Tensor((512, 64), "float32")']
        lines = ["import tilelang_npu as tilelang", "import tilelang_npu.language as T", ""]
        if self.symbolic:
            lines.append('R = T.symbolic("R")')
        for macro in self.macros:
            lines += ["", "@T.macro", *macro.lines(0)]
        names = "as (cid, _)" if self.target == "npuir" else "as (cid, _)"
        lines += ["", "@T.prim_func", f"def main({', '.join([*inputs, *extra, *outputs, *result])}):",
                  f"    with T.Kernel({self.blocks}, is_npu=True) {names}:"]
        for line in self.body:
            lines += line.lines(2)
        return "\n".join(lines) + "\n"


# --- drawing programs --------------------------------------------------------------------------------------------------------


class Draw:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.stored: list[Line] = []
        self.row = 0

    def one(self, choices: Any) -> Any:
        """One of several."""
        return self.random.choice(list(choices))

    def chance(self, share: float) -> bool:
        """Whether something happens."""
        return self.random.random() < share

    def name(self, what: str) -> str:
        """A name that is new."""
        self.count += 1
        return f"{what}{self.count}"

    def program(self) -> Program:
        """A program."""
        r = self.random
        self.target = "npuir" if self.chance(0.75) else "ascendc"
        self.blocks = self.one([1, 1, 2, 3])
        self.columns = self.one([8, 16, 24, 32, 48, 64])
        self.rows = self.one([1, 3, 8, 16])
        self.types = r.sample([*INTEGERS, *FLOATS, "float32", "int32", "float16"], k=self.one([1, 2, 3]))
        self.types = list(dict.fromkeys(self.types))
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
                body.append(Line(f'{name} = T.alloc_shared(({self.rows}, {self.columns}), "{kind}")'))
                body.append(self.load(kind, name))
        if self.chance(0.4):
            kind = self.one(self.types)
            if kind in ("float16", "float32", "int32"):
                name = self.name("v")
                self.vectors.append((kind, name))
                body.append(Line(f'{name} = T.alloc_shared(({self.rows}, 1), "{kind}")'))
                body.append(Line(f"T.fill({name}, 1)"))
        if self.chance(0.3):
            kind = self.one(["int32", "float32"])
            name = self.name("a")
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
        self.outputs = 0
        for kind in self.types:
            for number, name in enumerate(self.tiles[kind]):
                body.append(Line(f"T.copy({name}, O_{kind}[cid * {self.rows} + {number * self.blocks * self.rows}, 0])"))
                self.outputs = max(self.outputs, (number + 1) * self.blocks * self.rows)
        for number, (kind, name) in enumerate(self.vectors):
            if kind == "float32":
                body.append(Line(f"T.copy({name}, P[{number * 16} + cid * {self.rows}, 63])"))
        if self.cube:
            body += [Line("T.copy(c, P[128 + cid * 32, 0])"), Line("T.copy(d, P[256 + cid * 32, 32])"),
                     Line("T.copy(f, P[384 + cid * 32, 0])")]
        return Program(self.target, self.blocks, self.chance(0.25), self.columns, self.types, self.macros, body,
                       self.one([0, 1, 2, 3, 5]), max(self.outputs, 1))

    # --- statements ------------------------------------------------------------------------------------------------------

    def load(self, kind: str, name: str) -> Line:
        """A load of a tile, sometimes one that hangs over the end."""
        start = self.one([f"rows0 + {self.random.randint(0, 40)}", f"(cid + {self.random.randint(0, 5)}) * {self.rows}",
                          f"{ROWS} - {self.rows} + n % 2 * {self.one([0, max(1, self.rows // 2)])}"])
        pad = ", pad_value=1" if self.chance(0.1) and self.target == "npuir" else ""
        return Line(f"T.copy(X_{kind}[{start}, 0], {name}{pad})")

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
        """A tile is loaded again."""
        kind = self.one(self.tiles)
        return [self.load(kind, self.one(self.tiles[kind]))]

    def fill(self, depth: int) -> list[Line]:
        """A tile, or a part of one, gets one value."""
        kind = self.one(self.tiles)
        name = self.one(self.tiles[kind])
        part = self.one(["", "", f"[0:{max(1, self.rows // 2)}, 0:{self.columns}]", f"[0:{self.rows}, 0:8]"])
        value = self.number(kind)
        return [Line(self.one([f"T.fill({name}{part}, {value})", f"T.clear({name}{part})"]))]

    def alias(self, depth: int) -> list[Line]:
        """A second name, or another shape, of a tile."""
        kind = self.one(self.tiles)
        old, new = self.one(self.tiles[kind]), self.name("s")
        if self.chance(0.5):
            lines = [Line(f"{new} = {old}")]
        else:
            lines = [Line(f"{new} = T.view({old}, ({self.rows}, {self.columns}))")]
        lines.append(Line(f"T.fill({new}[0:1, 0:{self.columns}], {self.number(kind)})"))
        return lines

    def variable(self, depth: int) -> list[Line]:
        """A scalar variable changes."""
        kind, name = self.one(self.variables)
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
        """A loop; its variable may have the name of an enclosing loop's."""
        name = self.one(self.loops) if self.loops and self.chance(0.15) else f"k{len(self.loops)}"
        trips = self.one(["1", "2", "3", "4", "n", "n + 1", "cid + 1"])
        kind = self.one([f"T.serial({trips})", f"range({trips})", f"T.Pipelined({trips}, num_stages=2)",
                         f"T.Pipelined({trips}, num_stages=3)", f"T.serial(1, {trips} + 1)"])
        self.loops.append(name)
        body = self.body(depth)
        self.loops.pop()
        return [Line(f"for {name} in {kind}:", body, True)]

    def operation(self, depth: int) -> list[Line]:
        """An operation on whole tiles."""
        kind = self.one(self.tiles)
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
        """Work of the Cube core, and tiles that change cores."""
        init = self.one(["False", "True", *(f"({name} == 0)" for name in self.loops)])
        target, other = self.one(["c", "d"]), self.one(["g", "h"])
        return self.one([
            [Line(f"T.gemm(h, g, {target}, initC={init})")],
            [Line(f"T.gemm(h, {other}, {target}, initC={init}, b_transpose=True)")],
            [Line(f"T.clear({target})")],
            [Line(f"T.copy(H[n * 8, {self.one([0, 16, 32])}], {other})")],
            [Line(f"T.copy(H[{self.one([0, 16, 32])} : {self.one([48, 64])}, 0:32], {other}[0:{self.one([16, 32])}, 0:32])")]
            if self.chance(0.3) else [Line(f"T.copy(H[32:48, 0:32], {other}[16:32, 0:32])")],
            [Line(f"T.copy({target}, f)")],
            [Line(f"T.copy({target}, f)"), Line("T.vmul(f, 0.5, f)")],
            [Line("T.copy(f, g)")],
            [Line("for i, j in T.Parallel(32, 32):",
                  [Line(f"f[i, j] = f[i, j] * 0.25 + {self.one(['i', 'j', 'n', '1.0'])}")], True)],
        ])

    def macro(self, depth: int) -> list[Line]:
        """A macro, and its call."""
        kind = self.one(self.tiles)
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
        rows, columns = self.rows, self.columns
        part = self.chance(0.2)
        if part:
            rows, columns = max(1, rows // 2), max(1, columns // 2)
        self.at = ("i", "j")
        target = f"{out}[i, j]"
        shift = (self.rows - rows, self.columns - columns)
        self.turns = [("i", "j"), ("i", "j"), ("i", "j"), ("i", f"{columns - 1} - j"), (f"{rows - 1} - i", "j"), ("0", "j"),
                      ("i", "0"), (f"i + {shift[0]}", f"j + {shift[1]}"), ("i", "j // 2"), ("i", f"(j + 1) % {columns}")]
        self.out = out
        body = [Line(f"{target} = {self.expression(kind, self.one([1, 2, 2, 3]))}")]
        if self.chance(0.2):
            self.turns = self.turns[:1]
            body = [Line(f"if {self.condition(kind)}:", body, True)]
        axes, extents = "i, j", f"{rows}, {columns}"
        return [Line(f"for {axes} in T.Parallel({extents}):", body, True)]

    def operand(self, kind: str) -> str:
        """An element, an index, a number or a variable."""
        draw = self.random.random()
        if draw < 0.55:
            name = self.one(self.tiles[kind]) if self.chance(0.7) else self.one(self.one(list(self.tiles.values())))
            i, j = ("i", "j") if name == self.out or self._is_alias(name) else self.one(self.turns)
            return f"{name}[{i}, {j}]"
        if draw < 0.7:
            return self.one(["i", "j", "i + j", "j * 3", "j - i"])
        if draw < 0.78:
            return self.one(["n", "cid", *self.loops, *(name for _, name in self.variables)])
        return self.number(kind)

    def _is_alias(self, name: str) -> bool:
        return not name.startswith("t")

    def number(self, kind: str) -> str:
        """A literal that the type has."""
        if kind in FLOATS:
            return self.one(["0.5", "2.0", "-1.25", "3", "0"])
        if kind.startswith("u"):
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
        whole = kind in INTEGERS
        choices = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"T.max({a}, {b})", f"T.min({a}, {b})",
                   f"T.if_then_else({self.condition(kind)}, {a}, {b})"]
        if whole:
            choices += [f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})", f"({a} // 3)", f"({a} % 5)", f"({a} << 1)", f"({a} >> 1)"] * 1
        else:
            choices += [f"T.exp(T.min({a}, 2.0))", f"T.abs({a})", f"({a} / 3.0)", f"T.sqrt(T.abs({a}))"]
        choices += [f'T.cast({a}, "{self.one([*self.types, "float32", "int32"])}")']
        found: str = self.one(choices)
        return found


# --- running -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What is wrong with a program.

    Attributes:
        kind: ``values``, ``hazard``, ``exception``, or ``refused`` where only the interpreter refuses.
        key: what a shrunk program must show too.
        text: the report.
        chip, without: how it was compiled.
    """

    kind: str
    key: str
    text: str
    chip: str
    without: tuple[str, ...]


class Refused(Exception):
    """The compiler refuses the program."""


def inputs(program: Program, seed: int) -> list[Any]:
    """The arguments of a program."""
    rng = np.random.default_rng(seed)
    values: list[Any] = []
    for kind in program.types:
        shape = (ROWS, program.columns)
        if kind in FLOATS:
            made = rng.standard_normal(shape) * 4
            values.append(made.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind))
        else:
            info = np.iinfo(kind)
            small = rng.integers(max(info.min, -100), min(info.max, 200), shape, endpoint=True)
            large = rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
            values.append(np.where(rng.random(shape) < 0.8, small.astype(kind), large))
    values += [rng.integers(-4, 5, (96, 64)).astype(np.float16) / 2, rng.integers(0, 8, (64,)).astype(np.int32), program.n]
    outputs = [np.zeros((program.outputs, program.columns), ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
               for kind in program.types]
    return [*values, *outputs, np.zeros((512, 64), np.float32)]


_NUMBER = [0]


def compiled(program: Program, chip: str, without: tuple[str, ...]) -> Any:
    """The kernel.

    Raises:
        Refused: the compiler refuses it.
    """
    _NUMBER[0] += 1
    name = f"<fuzz {os.getpid()} {_NUMBER[0]}>"
    source = program.source()
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "fuzz"}
    exec(compile(source, name, "exec"), names)
    switches: dict[Any, Any] = {"tl.disable": list(without)}
    if program.target == "ascendc":
        switches |= {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
                     tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
                     tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}
    try:
        return tilelang.compile(names["main"], target=program.target, chip=chip, pass_configs=switches)
    except TileError as error:
        raise Refused(error.code) from None
    finally:
        linecache.cache.pop(f"<fuzz {os.getpid()} {_NUMBER[0] - 50}>", None)


def judge(program: Program, seed: int, chip: str, without: tuple[str, ...]) -> Finding | None:
    """Compile a program, compute it both ways, and look for hazards.

    Raises:
        Refused: the compiler refuses it.
    """
    from tilelang_npu.runtime.listeners import record
    from tilelang_npu.runtime.sanitizer import Sanitizer

    def found(kind: str, key: str, text: str) -> Finding:
        return Finding(kind, key, text, chip, without)

    try:
        kernel = compiled(program, chip, without)
        with record(sanitizer=Sanitizer([])) as done:
            agreement = kernel.check(*inputs(program, seed))
        hazards = [finding for tally in done.tallies for finding in tally.findings if finding.allowed is None]
    except Refused:
        raise
    except SanitizerError as error:
        return found("hazard", error.code, str(error))
    except TileError as error:
        where = "".join(traceback.format_exception(error))
        if "/interpreter/" in where or "/interpreted.py" in where:
            return found("refused", error.code, str(error))
        if error.code in ("T502", "T130", "T406", "T410", "T411"):  # the program itself is wrong
            raise Refused(error.code) from None
        return found("exception", error.code, str(error))
    except Exception as error:  # noqa: BLE001  (whatever is raised is a finding)
        last = traceback.extract_tb(error.__traceback__)[-1]
        return found("exception", f"{type(error).__name__} {Path(last.filename).name}:{last.name}",
                     "".join(traceback.format_exception(error))[-3000:])
    if not agreement:
        return found("values", "values", str(agreement))
    if hazards:
        return found("hazard", hazards[0].code, str(hazards[0]))
    return None


# --- shrinking ---------------------------------------------------------------------------------------------------------------


def smaller(lines: list[Line]) -> Iterator[list[Line]]:
    """Each way of leaving something out: a statement, or the block around its body."""
    for at, line in enumerate(lines):
        yield lines[:at] + lines[at + 1:]
        if line.opens:
            yield lines[:at] + line.body + lines[at + 1:]
            for body in smaller(line.body):
                yield [*lines[:at], Line(line.text, body, True), *lines[at + 1:]]


def shrunk(program: Program, seed: int, finding: Finding, seconds: float = 60.0) -> tuple[Program, Finding]:
    """A smaller program that shows the same kind of finding."""
    end = time.monotonic() + seconds
    best = program
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for body in smaller(best.body):
            if time.monotonic() > end:
                break
            tried = Program(**{**vars(best), "body": body})
            if _shows(tried, seed, finding):
                best, progress = tried, True
                break
    for change in ({"macros": []}, {"symbolic": False}, {"blocks": 1}):
        tried = Program(**{**vars(best), **change})
        if _shows(tried, seed, finding):
            best = tried
    last = judge(best, seed, finding.chip, finding.without)
    return best, last or finding


def _shows(program: Program, seed: int, finding: Finding) -> bool:
    try:
        other = judge(program, seed, finding.chip, finding.without)
    except (Refused, SyntaxError):
        return False
    return other is not None and (other.kind, other.key) == (finding.kind, finding.key)


def script(program: Program, seed: int, finding: Finding) -> str:
    """A script that shows a finding by itself."""
    head = "".join(f"# {line}\n" for line in finding.text.splitlines()[:12])
    auto = (', "tl.ascend_auto_sync": True, "tl.ascend_auto_cv_sync": True, "tl.ascend_auto_cv_combine": True, '
            '"tl.ascend_memory_planning": True' if program.target == "ascendc" else "")
    tail = f'''
import ml_dtypes
import numpy as np
import sys
sys.path.insert(0, "benchmarks")
import fuzz
kernel = tilelang.compile(main, target="{program.target}", chip="{finding.chip}", sanitize=True,
                          pass_configs={{"tl.disable": {list(finding.without)}{auto}}})
program = fuzz.Program("{program.target}", {program.blocks}, {program.symbolic}, {program.columns}, {program.types}, [], [],
                       {program.n}, {program.outputs})
print(kernel.check(*fuzz.inputs(program, {seed})))
'''
    return f"# {finding.kind}, seed {seed}, on {finding.chip} without {list(finding.without)}\n{head}{program.source()}{tail}"


# --- the command -------------------------------------------------------------------------------------------------------------


def campaign(seconds: float, first: int, count: int | None = None, keep: Path | None = None, *, quiet: bool = False
             ) -> tuple[Counter[str], list[tuple[int, Finding]]]:
    """Judge programs from seed ``first`` on, until the time is over or ``count`` were judged.

    Returns:
        how many programs had which outcome, and the findings with their seeds.
    """
    outcomes: Counter[str] = Counter()
    findings: list[tuple[int, Finding]] = []
    end = time.monotonic() + seconds
    seed = first
    while time.monotonic() < end and (count is None or seed - first < count):
        program = Draw(seed).program()
        other = random.Random(seed)
        ways = [("Ascend910B2", ()), (other.choice(CHIPS), (other.choice(list(OPTIMISATIONS)),) if other.random() < 0.7 else ())]
        for chip, without in ways:
            try:
                finding = judge(program, seed, chip, without)
            except Refused as refusal:
                outcomes[f"refused {refusal}"] += 1
                break
            outcomes["judged"] += 1
            if finding is None:
                continue
            outcomes[finding.kind] += 1
            if keep is not None:
                small, last = shrunk(program, seed, finding)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"seed-{seed}.py").write_text(script(small, seed, last), encoding="utf-8")
                finding = last
            findings.append((seed, finding))
            if not quiet:
                print(f"seed {seed}: {finding.kind} {finding.key} on {finding.chip} without {finding.without}\n"
                      + "\n".join(finding.text.splitlines()[:6]), flush=True)
            break
        seed += 1
    outcomes["programs"] = seed - first
    return outcomes, findings


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "tilelang-fuzz")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["TILELANG_DISABLE_CACHE"] = "1"
    outcomes, findings = campaign(args.seconds, args.seed, args.count, args.keep)
    refused = sum(number for word, number in outcomes.items() if word.startswith("refused "))
    print(f"{outcomes['programs']} programs, {outcomes['judged']} compiled and judged, {refused} refused, {len(findings)} findings"
          + (f" in {args.keep}" if findings else ""))
    for word, number in sorted(outcomes.items()):
        if word.startswith("refused "):
            print(f"  {word}: {number}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
del T
