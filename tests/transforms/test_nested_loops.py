"""Random nested loops and branches, with tiles of one to three slots at every level: there are no races, and each set has its
wait.

Tiles may share bytes, trip counts are zero or small and change from run to run, and more events may be needed than there are.
``TILELANG_RANDOM_NESTS=1000 pytest tests/transforms/test_nested_loops.py`` sets the number of cases.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from xdsl.context import Context

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.program import Program
from tilelang_npu.transforms.hivm.expand_multi_buffer import ExpandMultiBuffer
from tilelang_npu.transforms.hivm.guard_l0 import GuardL0
from tilelang_npu.transforms.hivm.insert_sync import InsertSync

NESTS = int(os.environ.get("TILELANG_RANDOM_NESTS", "40"))
UNWRITTEN = "S221"
"""Random kernels may read uninitialised bytes."""
ROW, MATRIX, SUM = f"memref<64xf32, {texts.UB}>", f"memref<1x1x16x16xf16, {texts.L1}>", f"memref<1x1x16x16xf32, {texts.L0C}>"
GM_ROW, GM_MATRIX, GM_SUM = f"memref<64xf32, {texts.GM}>", f"memref<16x16xf16, {texts.GM}>", f"memref<16x16xf32, {texts.GM}>"


class Nest:
    """A random kernel of one core.

    Args:
        rng: the random generator.
        core: ``AIV``: loads, additions and stores; ``AIC``: loads, products and stores of their results.
    """

    def __init__(self, rng: random.Random, core: str) -> None:
        self.rng, self.core = rng, core
        self.lines: list[str] = []
        self.names = 0
        self.bytes = 256 if core == "AIV" else 512
        self.room = rng.choice((6, 40, 200))
        self.many = rng.choice((2, 3, 7))
        self.left = 24

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def tiles(self, kind: str, most: int, slots: int) -> list[str]:
        """Declare tiles of a kind here; they may share bytes."""
        made = []
        for _ in range(self.rng.randint(1, most)):
            room = min(self.room, 100) if kind == SUM else self.room
            places = self.rng.sample(range(room), self.rng.randint(1, slots))
            numbers = []
            size = 1024 if kind == SUM else self.bytes
            for place in places:
                numbers.append(self.name())
                self.lines.append(f"{numbers[-1]} = arith.constant {place * size} : i64")
            made.append(self.name())
            self.lines.append(f"{made[-1]} = hivm.hir.pointer_cast({', '.join(numbers)}) : {kind}")
        return made

    def op(self, tiles: list[str], sums: list[str], own: int) -> None:
        """An operation, mostly on the last tiles of those that there are, which were declared here; or a chain of them."""
        def pick(names: list[str]) -> str:
            return self.rng.choice(names[-own:] if names is tiles and self.rng.random() < 0.85 else names)

        a, b, c = pick(tiles), pick(tiles), pick(tiles)
        if self.core == "AIV":
            steps = [f"hivm.hir.load ins(%X : {GM_ROW}) outs({a} : {ROW})",
                     f"hivm.hir.vadd ins({a}, {b} : {ROW}, {ROW}) outs({c} : {ROW})",
                     f"hivm.hir.store ins({c} : {ROW}) outs(%Y : {GM_ROW})"]
        else:
            total = pick(sums)
            steps = [f"hivm.hir.nd2nz {{dst_continuous}} ins(%X : {GM_MATRIX}) outs({a} : {MATRIX})",
                     f"hivm.hir.mmadL1 ins({a}, {b}, %init, %c16, %c16, %c16 : {MATRIX}, {MATRIX}, i1, index, index, index) "
                     f"outs({total} : {SUM})",
                     f"hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>}} ins({total} : {SUM}) outs(%Y : {GM_SUM})"]
        first = self.rng.randrange(3)
        self.lines += steps[:self.rng.choice((2, 2, 3))] if self.rng.random() < 0.6 else steps[first:first + 1]

    def branch(self, tiles: list[str], sums: list[str], depth: int, around: str) -> None:
        """A branch, with or without an alternative."""
        turn, condition = self.name(), self.name()
        self.lines += [f"{turn} = arith.remui {around}, %c{self.rng.randint(2, 3)} : index",
                       f"{condition} = arith.cmpi {self.rng.choice(('eq', 'ne'))}, {turn}, %c{self.rng.randint(0, 1)} : index",
                       f"scf.if {condition} {{"]
        self.block(tiles, sums, depth, around)
        if self.rng.random() < 0.3:
            self.lines.append("} else {")
            self.block(tiles, sums, depth, around)
        self.lines.append("}")

    def block(self, tiles: list[str], sums: list[str], depth: int, around: str = "") -> None:
        inside = depth > 0
        here = self.tiles(ROW if self.core == "AIV" else MATRIX, self.many, 3 if inside else 1)
        tiles = tiles + here
        sums = sums + (self.tiles(SUM, 1, 2 if inside else 1) if self.core == "AIC" and not (sums and self.rng.random() < 0.6)
                       else [])
        for _ in range(self.rng.randint(1, 2 * self.many if inside else 2)):
            self.left -= 1
            if self.left < 0:
                break
            if depth < 3 and self.rng.random() < (0.3 if inside else 0.8):
                index, bound = self.name(), f"%c{self.rng.randint(0, 4)}"
                if around and self.rng.random() < 0.6:
                    last, bound = self.name(), self.name()
                    self.lines += [f"{last} = arith.addi {around}, %c{self.rng.randint(1, 4)} : index",
                                   f"{bound} = arith.remui {last}, %c{self.rng.randint(2, 4)} : index"]
                self.lines.append(f"scf.for {index} = %c0 to {bound} step %c1 {{")
                self.block(tiles, sums, depth + 1, index)
                self.lines.append("}")
            elif around and self.rng.random() < 0.25:
                self.branch(tiles, sums, depth, around)
            else:
                self.op(tiles, sums, len(here))

    def text(self) -> str:
        self.lines = [*(f"%c{number} = arith.constant {number} : index" for number in (0, 1, 2, 3, 4, 16)),
                      "%init = arith.constant true"]
        self.block([], [], 0)
        given = [f"%X: {GM_ROW}", f"%Y: {GM_ROW}"] if self.core == "AIV" else [f"%X: {GM_MATRIX}", f"%Y: {GM_SUM}"]
        return texts.module(texts.kernel(self.core, given, "\n".join(self.lines)))


@pytest.mark.parametrize("core", ["AIV", "AIC"])
def test_nothing_races(core: str) -> None:
    out = {"AIV": np.zeros(64, np.float32), "AIC": np.zeros((16, 16), np.float32)}[core]
    given = {"AIV": np.zeros(64, np.float32), "AIC": np.zeros((16, 16), np.float16)}[core]
    for seed in range(NESTS // 2):
        text = Nest(random.Random(seed), core).text()
        made = parse_module(text)
        for step in (GuardL0(), InsertSync(), ExpandMultiBuffer()):
            step.apply(Context(), made)
        found = check(Program(made), [given, out], 1)
        message = [str(one) for one in (*found.hazards, *found.errors) if one.code != UNWRITTEN]
        assert message == [], f"seed {seed}: {message[0]}\n{text}\n{made}"
