"""Random loops with explicit slots, ``x[t % n]``, whose statements work on several iterations at a time.

Each statement works on the tile of another iteration, a fixed number of iterations after the first. The compiled loop must be
right for all these numbers and orders; the values are checked with two memory plans, and the machine checks for hazards.
``TILELANG_RANDOM_SLOTS=1000 pytest tests/test_random_slots.py`` sets the number of loops.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from removal import Call, Removed, removed

LOOPS = int(os.environ.get("TILELANG_RANDOM_SLOTS", "12"))
ROWS, COLUMNS = 16, 64

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", pass_configs={{"tl.disable": {without}}})
def make():
    @T.prim_func
    def main(X: T.Tensor(({length}, {columns}), "float16"), W: T.Tensor(({columns}, {columns}), "float16"),
             Y: T.Tensor(({length}, {columns}), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared(({taken[0]}, {rows}, {columns}), "float16")
            w = T.alloc_shared(({columns}, {columns}), "float16")
            y = T.alloc_{where}(({taken[1]}, {rows}, {columns}), "float32")
            h = T.alloc_shared(({rows}, {columns}), "float32")
{body}
    return main
"""


@dataclass(frozen=True)
class Turns:
    """A loop of a load, a computation and a store, or of a load and two of each other kind.

    Attributes:
        trips: the number of tiles.
        slots: the number of slots of loaded and of stored tiles.
        behind: the number of iterations by which each statement is later than the first.
        order: the order of the statements, by their numbers.
        product: whether the Cube core computes.
        guarded: whether the first and last iterations are part of the loop, under branches; otherwise they are peeled.
        rounds: how often the loop is executed.
    """

    trips: int
    slots: tuple[int, int]
    behind: tuple[int, int, int]
    order: tuple[int, ...]
    product: bool
    guarded: bool
    rounds: int = 1

    def _statement(self, number: int, tile: str) -> list[str]:
        row, x, y = f"({tile}) * {ROWS}", f"x[({tile}) % {self.slots[0]}, :, :]", f"y[({tile}) % {self.slots[1]}, :, :]"
        return [
            [f"T.copy(X[{row}, 0], {x})"],
            [f"T.gemm({x}, w, {y}, initC=True)"] if self.product else [f"T.vcast({x}, h)", f"T.vexp(h, {y})"],
            [f"T.copy({y}, Y[{row}, 0])"],
        ][number]

    def text(self, without: tuple[str, ...] = ()) -> str:
        last = max(self.behind)
        lines = ["T.copy(W[0, 0], w)"] if self.product else []

        def turn(step: str, indent: str, known: int | None) -> None:
            for number in self.order:
                tile = f"{step} - {self.behind[number]}" if known is None else str(known - self.behind[number])
                if known is not None and not 0 <= int(tile) < self.trips:
                    continue
                own = indent
                if known is None and self.guarded:
                    lines.append(f"{indent}if {tile} >= 0 and {tile} < {self.trips}:")
                    own += "    "
                lines.extend(own + line for line in self._statement(number, tile))

        if self.guarded:
            lines.append(f"for t in T.serial({self.trips + last}):")
            turn("t", "    ", None)
        else:
            for step in range(last):
                turn("", "", step)
            lines.append(f"for t in T.serial({last}, {self.trips}):")
            turn("t", "    ", None)
            for step in range(self.trips, self.trips + last):
                turn("", "", step)
        if self.rounds > 1:
            head = int(self.product)
            lines = [*lines[:head], f"for r in T.serial({self.rounds}):", *("    " + line for line in lines[head:])]
        return TEXT.format(without=list(without), length=self.trips * ROWS, columns=COLUMNS, rows=ROWS, taken=self.slots,
                           where="fragment" if self.product else "shared",
                           body="\n".join(" " * 12 + line for line in lines))



    def is_right(self) -> bool:
        """Whether each statement reads the right iteration's tile, and overwrites only tiles that were read before."""
        for one, two in ((0, 1), (1, 2)):
            apart, is_later = self.behind[two] - self.behind[one], self.order.index(two) > self.order.index(one)
            if apart < 0 or apart > self.slots[one] or (apart in (0, self.slots[one]) and is_later == (apart > 0)):
                return False
        return max(self.behind) < self.trips


TURNS = st.builds(Turns, trips=st.integers(1, 9), slots=st.tuples(st.integers(1, 4), st.integers(1, 2)),
                  behind=st.tuples(st.just(0), st.integers(0, 4), st.integers(0, 6)),
                  order=st.permutations(range(3)).map(tuple), product=st.booleans(),
                  guarded=st.booleans(), rounds=st.integers(1, 2)).filter(Turns.is_right)


def _made(file: Path, text: str) -> Any:
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make()


def _inputs(loop: Turns) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(loop.trips)
    return (rng.uniform(-1, 1, (loop.trips * ROWS, COLUMNS)).astype(np.float16),
            rng.uniform(-1, 1, (COLUMNS, COLUMNS)).astype(np.float16), np.full((loop.trips * ROWS, COLUMNS), 7, np.float32))


def _run(loop: Turns, kernel: Any) -> Any:
    x, w, y = _inputs(loop)
    kernel(x, w, y)
    assert kernel.last_launch.hazards == []
    wide = x.astype(np.float32)
    np.testing.assert_allclose(y, wide @ w.astype(np.float32) if loop.product else np.exp(wide), rtol=1e-4, atol=1e-4)
    return y


@settings(max_examples=LOOPS, suppress_health_check=list(HealthCheck), deadline=None)
@given(loop=TURNS)
@example(loop=Turns(9, (2, 2), (0, 1, 1), (0, 1, 2), product=False, guarded=False))
@example(loop=Turns(9, (3, 2), (0, 2, 3), (1, 0, 2), product=True, guarded=True))
def test_slots_by_hand(tmp_path_factory: pytest.TempPathFactory, loop: Turns) -> None:
    folder = tmp_path_factory.mktemp("slots")
    made = [_run(loop, _made(folder / f"slots{name}.py", loop.text(without)))
            for name, without in (("", ()), ("elsewhere", ("banks", "keep-apart")))]
    np.testing.assert_array_equal(*made)

def _removed(folder: Path, loop: Turns) -> Removed:
    kernel = _made(folder / "slots.py", loop.text())
    call = kernel.signature.bind(_inputs(loop))
    return removed(kernel.mlir(), [Call(kernel.machine_arguments(call), kernel.blocks(call)[0])])


@pytest.mark.parametrize(("loop", "spare"), [
    (Turns(9, (2, 2), (0, 1, 1), (0, 1, 2), product=False, guarded=False), []),
    # the rows that are stored after the loop are not stored in it
    (Turns(9, (2, 2), (0, 1, 2), (0, 1, 2), product=False, guarded=False), ["hivm.hir.pipe_barrier[<PIPE_MTE3>]"]),
    (Turns(7, (3, 2), (0, 2, 2), (0, 1, 2), product=True, guarded=False), []),
    (Turns(9, (2, 1), (0, 1, 1), (1, 2, 0), product=True, guarded=True), []),
], ids=["a tile ahead", "three at a time", "two ahead", "load after"])
def test_no_wait_can_go(tmp_path: Path, loop: Turns, spare: list[str]) -> None:
    """But those that the compiler knows no better of."""
    found = _removed(tmp_path, loop)
    assert found.tried > 3
    assert found.idle == spare
