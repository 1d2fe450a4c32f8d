"""Random input for every entry point of the package: kernels in the language, and randomly changed MLIR text.

A case is determined by its seed. Every input must give a result or a :class:`TileError`.
"""

from __future__ import annotations

import importlib.util
import linecache
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from simulator import texts

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
MOST_BLOCKS = 3


def corpus() -> list[str]:
    """The MLIR text that is damaged: the inputs of the FileCheck tests, and whole kernels."""
    files = sorted((TESTS / "filecheck").rglob("*.mlir")) + sorted((TESTS / "dialects" / "modules").rglob("*.mlir"))
    found = [re.sub(r"^//.*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE) for file in files]
    return [*found, texts.add_tiles(), texts.gemm(32, 32, 64), texts.scaled_product(), texts.row_softmax(64, 8)]


# -- damage ------------------------------------------------------------------------------------------------------------


_SWAPS = (("f32", "f16", "bf16", "i32", "i8", "i64", "i1", "index"), ("ub", "gm", "cbuf", "cc", "ca", "cb"),
          ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3", "PIPE_M", "PIPE_FIX", "PIPE_ALL", "PIPE_S"),
          ("EVENT_ID0", "EVENT_ID1", "EVENT_ID7"), ("AIC", "AIV", "MIX"), ("set_flag", "wait_flag"),
          ("sync_block_set", "sync_block_wait"), ("vadd", "vsub", "vexp", "vbrc", "vcast", "vsel", "load", "store", "copy"),
          ("scf.for", "scf.while", "scf.if"), ("ins", "outs"))
_NUMBERS = ("0", "1", "-1", "2", "7", "15", "16", "17", "31", "33", "64", "100", "4096", "65536", "196608", "2147483647",
            "-2147483648", "9223372036854775807", "?", "4611686018427387904", "-9223372036854775808", "9223372036854775808",
            "1180591620717411303424")


def damaged(text: str, rng: random.Random) -> str:
    """The text with a few changes of a few kinds."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        text = rng.choice(_DAMAGE)(text, rng)
    return text


def _lines(change: Callable[[list[str], random.Random], None]) -> Callable[[str, random.Random], str]:
    def damage(text: str, rng: random.Random) -> str:
        lines = text.splitlines()
        if len(lines) > 1:
            change(lines, rng)
        return "\n".join(lines) + "\n"

    return damage


def _without(lines: list[str], rng: random.Random) -> None:
    del lines[rng.randrange(len(lines))]


def _twice(lines: list[str], rng: random.Random) -> None:
    line = rng.choice(lines)
    lines.insert(rng.randrange(len(lines)), line)


def _exchanged(lines: list[str], rng: random.Random) -> None:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _number(text: str, rng: random.Random) -> str:
    places = list(re.finditer(r"-?\b\d+\b", text))
    if not places:
        return text
    place = rng.choice(places)
    return text[:place.start()] + rng.choice(_NUMBERS) + text[place.end():]


def _word(text: str, rng: random.Random) -> str:
    words = rng.choice(_SWAPS)
    places = list(re.finditer(r"\b(" + "|".join(map(re.escape, words)) + r")\b", text))
    if not places:
        return text
    place = rng.choice(places)
    return text[:place.start()] + rng.choice(words) + text[place.end():]


def _value(text: str, rng: random.Random) -> str:
    names = sorted(set(re.findall(r"%\w+", text)))
    places = list(re.finditer(r"%\w+", text))
    if not places:
        return text
    place = rng.choice(places)
    return text[:place.start()] + rng.choice(names) + text[place.end():]


def _characters(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    cut = rng.choice((0, 0, 1, 1, 2, 5))
    made = "".join(rng.choice("<>(){}[],:=%@#\"'x?*0129abfi \n\t\\éÿ\0") for _ in range(rng.choice((0, 1, 1, 2, 4))))
    return text[:at] + made + text[at + cut:]


_DAMAGE: tuple[Callable[[str, random.Random], str], ...] = (
    _lines(_without), _lines(_twice), _lines(_exchanged), _number, _number, _number, _word, _word, _word, _value, _value,
    _characters)


def random_bytes(rng: random.Random) -> bytes:
    """Bytes that may or may not be text."""
    return bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 3, 20, 300))))


# -- kernels -----------------------------------------------------------------------------------------------------------


_HEAD = '''import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target={target!r}, pass_configs={switches})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), H: T.Tensor((64, 64), "float16"), I: T.Tensor((64,), "int32"),
             B: T.Tensor((64, 64), "float32"), n: T.int32):
        with T.Kernel({blocks}, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 64), "float32")
            y = T.alloc_ub((32, 64), "float32")
            h = T.alloc_ub((32, 64), "float16")
            r = T.alloc_ub((32, 1), "float32")
            k = T.alloc_ub((64,), "int32")
            s = T.alloc_shared((64, 64), "float16")
            l1 = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            v = T.alloc_var("int32", init=0)
'''


class _Writer:
    """Writes random statements: most make sense, some do not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.depth = 0
        self.loops: list[str] = []
        self.sense = rng.choice([0.2, 0.7, 0.85, 0.95])

    def number(self) -> str:
        pool = ["0", "1", "2", "7", "16", "31", "32", "63", "64", "-1", "n", "v", "cid", "vid", *self.loops]
        first = self.rng.choice(pool)
        if self.rng.random() < 0.3:
            return f"({first} {self.rng.choice(['+', '-', '*', '//', '%'])} {self.rng.choice(pool)})"
        return first

    def place(self) -> str:
        name = self.rng.choice(["x", "y", "h", "x", "y", "r", "s", "l1", "c", "k", "A", "B", "H", "I"])
        kind = self.rng.random()
        if kind < 0.5:
            return name
        if kind < 0.7:
            return f"{name}[{self.number()}, {self.number()}]"
        if kind < 0.8:
            return f"{name}[{self.number()}]"
        low, high = self.number(), self.number()
        return self.rng.choice([f"{name}[{low}:{high}, :]", f"{name}[{low}:{low} + 8, 0:16]", f"{name}[{low}:{high}]"])

    def scalar(self) -> str:
        return self.rng.choice(["1.0", "0", "-2", "1e30", "n", "v", "x[0, 0]", "k[3]", "float('nan')", "None", "'a'",
                                self.number()])

    def sensible(self) -> list[str]:
        """A statement that most kernels could have."""
        rng = self.rng
        big, half = rng.choice("xy"), "vid * 32"
        row = rng.choice(["v % 32", "n", "7", *(f"{name} % 32" for name in self.loops)])
        length = rng.choice(["8", "n", "n + 1", "16 - n"])
        return [rng.choice([
            f"T.copy(A[{half}, 0], {big})", f"T.copy({big}, B[{half}, 0])", f"T.copy(H[{half}, 0], h)", "T.copy(I, k)",
            f"T.copy(A[{half}:{half} + {length}, :], {big}[0:{length}, :])", f"T.copy({big}[0:{length}, :], B[{half}, 0])",
            f"T.tile.exp({big}, {big})", "T.tile.add(x, x, y)", f"T.tile.mul(y, x, {self.rng.choice(['2.0', 'n', 'x[0, 0]'])})",
            f"T.tile.add(x[{row}, :], y[{row}, :], x[{row}, :])", f"T.tile.max(x[0:{length}, :], y[0:{length}, :], 1.0)",
            f"T.reduce_sum({big}, r, dim=-1)", "T.tile.sub(x, x, r)", "T.tile.cast(h, x, 'CAST_RINT', 2048)", "T.copy(h, x)",
            f"{big}[{row}, k[3] % 64] = {big}[0, {row}]", "v = v + 1", "T.tile.fill(y, 0.5)", "T.barrier_all()",
            "T.copy(H, l1)", "T.copy(H, s)", "T.gemm_v0(l1, l1, c, init=True)", "T.gemm_v0(l1, s, c, init=(v == 0))",
            "T.copy(c, B)", "T.copy(c, A)", "T.tile.atomic_add(B[0, 0], x)", "T.tile.fill(s, 0)", "T.tile.relu(h, h)"])]

    def statement(self) -> list[str]:
        rng = self.rng
        if rng.random() < self.sense:
            return self.sensible()
        kind = rng.random()
        if self.depth < 3 and kind < 0.22:
            return self.block()
        if kind < 0.42:
            return [f"T.copy({self.place()}, {self.place()})"]
        if kind < 0.50:
            op = rng.choice(["exp", "ln", "abs", "relu", "sqrt", "reciprocal"])
            return [f"T.tile.{op}({self.place()}, {self.place()})"]
        if kind < 0.60:
            op = rng.choice(["add", "sub", "mul", "div", "max", "min"])
            return [f"T.tile.{op}({self.place()}, {self.place()}, {rng.choice([self.place(), self.scalar()])})"]
        if kind < 0.65:
            return [f"T.tile.fill({self.place()}, {self.scalar()})"]
        if kind < 0.70:
            op = rng.choice(["reduce_sum", "reduce_max"])
            return [f"T.{op}({self.place()}, {self.place()}, dim={rng.choice(['-1', '0', '1', '2'])})"]
        if kind < 0.75:
            return [f"T.gemm_v0({self.place()}, {self.place()}, {rng.choice(['c', self.place()])}, init=True)"]
        if kind < 0.83:
            return [f"{rng.choice(['v', 'x[1, 2]', 'k[n]', self.place()])} = {rng.choice([self.scalar(), self.number()])}"]
        if kind < 0.90:
            one, other = (rng.choice(["mte2", "v", "mte3", "s", "m", "fix"]) for _ in range(2))
            return [f"T.{rng.choice(['set', 'wait'])}_flag({one!r}, {other!r}, {rng.choice(['0', '1', self.number()])})"]
        if kind < 0.95:
            flag = rng.choice(["0", "1", self.number()])
            return [rng.choice([f"T.set_cross_flag('MTE3', {flag})", f"T.wait_cross_flag({flag})", "T.sync_all()"])]
        return [rng.choice(["T.barrier_all()", "T.pipe_barrier('v')", "pass", "v = v + 1", "x = y", "del x", "return",
                            "break", "T.tile.cast(h, x, 'CAST_RINT', 64)", "T.nothing(x)", "assert v > 0", "print(x)",
                            "T.tile.atomic_add(B[0, 0], x)", "T.annotate_address({x: 0, y: 64})", "y[0, 0] += 1"])]

    def block(self) -> list[str]:
        rng = self.rng
        name = f"i{len(self.loops)}"
        head = rng.choice([
            f"for {name} in T.serial({self.number()}):", f"for {name} in range({self.number()}):",
            f"for {name} in T.Pipelined({self.number()}, num_stages={rng.choice(['0', '1', '2', '3', '9'])}):",
            f"for {name}, j in T.Parallel({rng.choice(['32', '8', '64', self.number()])}, {rng.choice(['64', '16'])}):",
            f"for {name} in T.unroll({rng.choice(['2', '3', self.number()])}):",
            f"if {self.number()} {rng.choice(['<', '==', '>='])} {self.number()}:", f"while v < {self.number()}:",
            "with T.Scope('V'):", "with T.Scope('C'):"])
        loop = head.startswith("for")
        self.depth += 1
        if loop:
            self.loops.append(name)
        body = [line for _ in range(rng.choice((1, 1, 2, 3))) for line in self.statement()]
        if head.startswith("while") and rng.random() < 0.8:
            body.append("v = v + 1")
        if loop:
            self.loops.pop()
        self.depth -= 1
        return [head, *(f"    {line}" for line in body)]


def kernel_text(rng: random.Random) -> str:
    """The text of a script with one kernel."""
    writer = _Writer(rng)
    target = rng.choice(["ascendc", "ascendc", "npuir"])
    switches = {name: True for name in ("tl.ascend_auto_sync", "tl.ascend_auto_cv_combine", "tl.ascend_auto_cross_core_sync",
                                        "tl.ascend_memory_planning") if rng.random() < 0.6}
    head = _HEAD.format(target=target, switches=switches, blocks=rng.choice([1, 1, 2, MOST_BLOCKS]))
    body = [line for _ in range(rng.choice((1, 3, 6, 10))) for line in writer.statement()]
    return head + "".join(f"            {line}\n" for line in body) + "    return main\n"


_CALL = '''

import numpy as np

rng = np.random.default_rng(0)
factory()(rng.standard_normal((64, 64)).astype(np.float32), rng.standard_normal((64, 64)).astype(np.float16),
          rng.integers(0, 64, 64).astype(np.int32), np.zeros((64, 64), np.float32), 5)
'''


def script_text(rng: random.Random) -> str:
    """The text of a script that calls its kernel once."""
    return kernel_text(rng) + _CALL


def load(text: str, folder: Path) -> Any:
    """The factory of a script."""
    file = folder / "fuzzed.py"
    file.write_text(text, encoding="utf-8")
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location("fuzzed", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.factory


def run_kernel(text: str, folder: Path) -> None:
    """Compile a script's kernel, run it and look for hazards."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            factory = load(text, folder)
        except SyntaxError:  # Python's own
            return
        kernel = factory()
        kernel(rng.standard_normal((64, 64)).astype(np.float32), rng.standard_normal((64, 64)).astype(np.float16),
               rng.integers(0, 64, 64).astype(np.int32), np.zeros((64, 64), np.float32), 5)
        _ = kernel.last_launch.hazards
        _ = kernel.last_launch.time_us
