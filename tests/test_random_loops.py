"""Random loops, pipelined and serial: equal to the bit, for any trip count, at any addresses, and without a hazard.

``TILELANG_RANDOM_LOOPS=1000 pytest tests/test_random_loops.py`` sets the number of cases. Of some (``TILELANG_RANDOM_WAITS``)
every wait is taken out once, and every call is looked at: any number of trips, any choice of branches.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from removal import Call, Removed, removed

LOOPS = int(os.environ.get("TILELANG_RANDOM_LOOPS", "40"))
WAITS = int(os.environ.get("TILELANG_RANDOM_WAITS", "0"))
ROWS, COLUMNS = 8, 24
LONG = 40  # iterations in which a core could send more than a flag counts
BEYOND = 2  # the number of tiles by which a loop with a run-time end may exceed the tensors
TILES = ("x", "y", "z", "carried")

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="npuir", workspace_idx=[-1], pass_configs={{"tl.disable": {without}}})
def make(stages):
    @T.prim_func
    def main(X: T.Tensor(({length}, {columns}), "{dtype}"), W: T.Tensor(({columns}, {columns}), "float16"),
             G: T.Tensor(({turns},), "int32"), H: T.Tensor(({turns},), "int32"), n: T.int32, rounds: T.int32,
             O: T.Tensor(({length}, {columns}), "float32"), S: T.Tensor(({rows}, {columns}), "float32"),
             P: T.Tensor((1, {rows}, {columns}), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            h = T.alloc_shared(({rows}, {columns}), "float16")
            w = T.alloc_shared(({columns}, {columns}), "float16")
            c = T.alloc_fragment(({rows}, {columns}), "float32")
            again = T.alloc_fragment(({rows}, {columns}), "float16")
            d = T.alloc_fragment(({rows}, {columns}), "float32")
            x = T.alloc_shared(({rows}, {columns}), "{dtype}")
            y = T.alloc_shared(({rows}, {columns}), "float32")
            z = T.alloc_shared(({rows}, {columns}), "float32")
            carried = T.alloc_shared(({rows}, {columns}), "float32")
            top = T.alloc_fragment(({rows},), "float32")
            T.vbrc(1.0, carried)
            T.vbrc(0.5, z)
{before}
{loops}
            T.copy(carried, S[0, 0])
    return main
"""


@dataclass
class Loop:
    """A loop.

    Attributes:
        start, trips: the first iteration and the trip count.
        bound: how the end is written: a constant, an argument of the call, or a symbolic size.
        steps: the operations of an iteration, in order.
        product: whether the input of the steps is a product of the Cube core.
        inner: trip count of a loop around the steps; 0 without one.
        chained: whether the Cube core multiplies the result of the steps.
        guard: the part of an iteration that is conditional: nothing, all, or everything after the load.
        row: whether the largest elements of the rows, a one-dimensional buffer, are added after everything else.
        around: the statement around the loop: nothing, a branch, or a loop of which an argument of the call skips iterations.
        through: whether the products go through a workspace of the author.
        again: whether a second loop with the same text, and so the same buffers, follows; it has its own branches.
        twice: whether the loaded tile is also stored, without products.
    """

    start: int
    trips: int
    bound: str
    product: bool
    inner: int
    stages: int
    chained: bool
    guard: str
    row: bool
    around: str
    through: bool
    again: bool
    twice: bool
    steps: list[str] = field(default_factory=list)

    def text(self, without: Sequence[str] = ()) -> str:
        """The kernel, some optimisations left out."""
        length = "M" if self.bound == "symbolic" else str((self.start + self.trips or 1) * ROWS)
        end = {"constant": str(self.start + self.trips), "argument": "n", "symbolic": f"M // {ROWS}"}[self.bound]
        load = [f"T.copy(X[i * {ROWS}, 0], {'h' if self.product else 'x'})"]
        passed = ["T.copy({0}, P[cid, 0, 0])", "T.copy(P[cid, 0, 0], y)"] if self.through else ["T.copy({0}, y)"]
        load += (["T.gemm(h, w, c, initC=True)", *(line.format("c") for line in passed)] if self.product
                 else ["T.vmul(x, 1.0, y)"])
        steps = [*(["T.reduce_max(y, top, dim=1)"] if self.row else []),
                 *([f"for j in T.serial({self.inner}):"] if self.inner else []),
                 *((" " * 4 if self.inner else "") + step for step in self.steps)]
        if self.chained:
            steps += ["T.copy(y, again)", "T.gemm(again, w, d, initC=True)", *(line.format("d") for line in passed)]
        if self.row:
            steps += [f"for a, b in T.Parallel({ROWS}, {COLUMNS}):", "    y[a, b] = y[a, b] + top[a]"]
        through = self.twice and not self.product
        steps += ["T.copy(y, x)"] * through + [f"T.copy({'x' if through else 'y'}, O[i * {ROWS}, 0])"]
        if self.guard == "all":
            load, steps = ["if G[i] > 0:", *(" " * 4 + line for line in load)], [" " * 4 + line for line in steps]
        elif self.guard == "rest":
            steps = ["if G[i] > 0:", *(" " * 4 + line for line in steps)]
        turns = "M" if self.bound == "symbolic" else (self.start + self.trips or 1) + BEYOND * (self.bound == "argument")
        made = TEXT.format(length=length, without=list(without), turns=turns, columns=COLUMNS, rows=ROWS,
                           dtype="float16" if self.product else "float32",
                           before="            T.copy(W[0, 0], w)" if self.product or self.chained else "",
                           loops="\n".join(" " * 12 + line for line in self._loops(end, [*load, *steps])))
        symbol = '    M = T.symbolic("M")\n' if self.bound == "symbolic" else ""
        return made.replace("    @T.prim_func", symbol + "    @T.prim_func")

    def _loops(self, end: str, body: list[str]) -> list[str]:
        one = [f"for i in T.Pipelined({self.start}, {end}, num_stages=stages):", *("    " + line for line in body)]
        loops = [*one, *(line.replace("if G[i]", "if H[i]") for line in one)] if self.again else one
        around = AROUND[self.around]
        return [*around, *("    " * len(around) + line for line in loops)]


AROUND: dict[str, list[str]] = {
    "": [], "branch": ["if rounds > 0:"], "persistent": ["for t in T.serial(3):", "    if t < rounds:"]}
TILE = st.sampled_from(["y", "z", "carried"])
STEP = st.one_of(
    st.builds("T.v{}({}, {}, {})".format, st.sampled_from(["add", "sub", "max", "min"]), TILE, TILE, TILE),
    st.builds("T.vmul({}, {}, {})".format, TILE, st.sampled_from([0.5, -0.25]), TILE),
    st.builds("T.copy({}, {})".format, st.just("y"), st.sampled_from(["z", "carried"])),
    st.sampled_from([f"T.copy(y[{at}:{at + 4}, 0:{COLUMNS}], {to}[2:6, 0:{COLUMNS}])"
                     for at in (0, 4) for to in ("z", "carried")]),
    st.builds("T.vabs({}, {})".format, TILE, TILE))
LOOP = st.builds(Loop, start=st.sampled_from([0, 0, 1, 3]), trips=st.sampled_from([0, 1, 2, 3, 4, 7]),
                 bound=st.sampled_from(["constant", "argument", "symbolic"]), product=st.booleans(),
                 inner=st.sampled_from([0, 0, 1, 2]), stages=st.sampled_from([2, 3, 4]),
                 chained=st.booleans(), guard=st.sampled_from(["", "", "all", "rest"]), row=st.booleans(),
                 around=st.sampled_from(["", "", "branch", "persistent"]), again=st.sampled_from([False, False, True]),
                 through=st.booleans(), twice=st.booleans(),
                 steps=st.lists(STEP, min_size=1, max_size=6)).filter(
                     lambda loop: loop.trips or (not loop.start if loop.bound == "constant" else loop.bound == "argument"))


def _made(path: Path, text: str) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make


SAME_FLAG = Loop(start=0, trips=1, bound="constant", product=True, inner=0, stages=2, chained=True, guard="", row=False,
                 around="", again=True, through=True, twice=False, steps=["T.vmul(z, 0.5, y)"])
"""A regression: two pipes of the Vector cores set flags, one after the first loop and one in the second, with the same
number."""
ENDED = Loop(start=0, trips=3, bound="constant", product=True, inner=0, stages=4, chained=True, guard="", row=True, around="",
             through=True, again=False, twice=True,
             steps=["T.copy(y, carried)", "T.vabs(carried, z)", "T.copy(y[0:4, 0:24], z[2:6, 0:24])", "T.copy(y, z)",
                    "T.vmax(z, y, z)"])
"""The other core loads the stored data of a stage after the stage has ended, so that waits inside of the stage are
redundant."""

FEWER_NUMBERS = Loop(start=1, trips=6, bound="symbolic", product=False, inner=0, stages=4, chained=False, guard="all", row=True,
                     around="persistent", through=True, again=True, twice=False,
                     steps=["T.vmax(y, carried, y)", "T.copy(y, z)", "T.copy(y, carried)"])
"""Two loops want more numbers than there are for slots that a branch uses: three for four slots, and a wait missed the one that
had its slot."""


@settings(max_examples=LOOPS, suppress_health_check=list(HealthCheck))
@given(loop=LOOP, seed=st.integers(0, 99), rounds=st.integers(0, 3))
@example(loop=SAME_FLAG, seed=0, rounds=0)
@example(loop=ENDED, seed=90, rounds=1)
@example(loop=FEWER_NUMBERS, seed=1, rounds=1)
def test_pipelined_is_serial(tmp_path_factory: pytest.TempPathFactory, loop: Loop, seed: int, rounds: int) -> None:
    folder = tmp_path_factory.mktemp("loop")
    make, elsewhere = (_made(folder / f"loop{seed}{name}.py", loop.text(without))
                       for name, without in (("", ()), ("elsewhere", ("banks", "keep-apart"))))
    rng = np.random.default_rng(seed)
    length = (loop.start + loop.trips or 1) * ROWS
    x = rng.uniform(-1, 1, (length, COLUMNS)).astype(np.float16 if loop.product else np.float32)
    w = rng.uniform(-1, 1, (COLUMNS, COLUMNS)).astype(np.float16)
    end = loop.start + loop.trips if loop.bound != "symbolic" else length // ROWS
    turns = length if loop.bound == "symbolic" else length // ROWS + BEYOND * (loop.bound == "argument")
    chosen = rng.integers(0, 2, (2, turns), np.int32)
    left = []
    for kernel in (elsewhere(loop.stages), make(1), make(loop.stages)):
        out = np.full((length, COLUMNS), 7.0, np.float32)
        carried = np.zeros((ROWS, COLUMNS), np.float32)
        kernel(x, w, *chosen, end, rounds, out, carried)
        assert kernel.last_launch.hazards == []
        left.append((out.tobytes(), carried.tobytes()))
    assert left[0] == left[1] == left[2]
    np.testing.assert_array_equal(out[:loop.start * ROWS], 7.0)
    _check(loop, x, w, [*chosen], end, rounds, out, carried)


@np.errstate(over="ignore", invalid="ignore")  # squares of squares leave float16 there and here
def _check(loop: Loop, x: Any, w: Any, chosen: Sequence[Any], end: int, rounds: int, out: Any, carried: Any) -> None:
    """The same on whole arrays."""
    tiles: dict[str, Any] = {"z": np.full((ROWS, COLUMNS), np.float32(0.5)), "carried": np.ones((ROWS, COLUMNS), np.float32)}
    calls: dict[str, Any] = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "mul": np.multiply}
    exact = 2e-2 if loop.chained else 1e-5  # a rounding to float16 in between may go either way
    rounds = {"": 1, "branch": min(rounds, 1), "persistent": rounds}[loop.around]
    runs, left = (chosen if loop.again else chosen[:1]) * rounds, dict[int, Any]()
    for some, i in [(some, i) for some in runs for i in range(loop.start, end)]:
        if loop.guard and some[i] <= 0:
            continue
        part = x[i * ROWS:(i + 1) * ROWS].astype(np.float32)
        tiles["y"] = part @ w.astype(np.float32) if loop.product else part.copy()
        top = tiles["y"].max(axis=1, keepdims=True)
        for step in loop.steps * max(loop.inner, 1):
            if "[" in step:  # rows of y into those in the middle of another tile
                first, to = int(step.split("[")[1].split(":")[0]), step.split(", ")[2].split("[")[0]
                tiles[to] = tiles[to].copy()
                tiles[to][2:6] = tiles["y"][first:first + 4]
                continue
            name, *operands = re.findall(r"[\w.-]+", step.removeprefix("T."))
            values = [tiles[one] if one in tiles else np.float32(one) for one in operands[:-1]]
            tiles[operands[-1]] = (values[0].copy() if name == "copy" else np.abs(values[0]) if name == "vabs"
                                   else calls[name[1:]](*values))
        if loop.chained:
            tiles["y"] = tiles["y"].astype(np.float16).astype(np.float32) @ w.astype(np.float32)
        if loop.row:
            tiles["y"] = tiles["y"] + top
        left[i] = tiles["y"]
    for i in range(loop.start, end):
        expected = left.get(i, np.full((ROWS, COLUMNS), 7.0))
        np.testing.assert_allclose(out[i * ROWS:(i + 1) * ROWS], expected, rtol=exact, atol=exact)
    np.testing.assert_allclose(carried, tiles["carried"], rtol=1e-5, atol=1e-5)


def _calls(kernel: Any, loop: Loop) -> Iterator[Call]:
    """Calls with every number of trips and rounds, and branches taken always, never, now and then, once in as many iterations
    as there are slots, and once at all; the longest first, but for many trips. Of a symbolic length, half a tile is no trip."""
    beyond = BEYOND * (loop.bound == "argument")
    long = [LONG] if loop.bound == "symbolic" and loop.guard else []
    for trips in (*range(loop.trips + beyond, -1, -1), *long) if loop.bound != "constant" else (loop.trips,):
        end = loop.start + trips
        tiles = end if loop.bound == "symbolic" else loop.start + loop.trips
        length = tiles * ROWS or (ROWS // 2 if loop.bound == "symbolic" else ROWS)
        x = np.zeros((length, COLUMNS), np.float16 if loop.product else np.float32)
        w, o, s = (np.zeros((rows, COLUMNS), kind) for rows, kind in ((COLUMNS, np.float16), (length, np.float32),
                                                                     (ROWS, np.float32)))
        turns = np.arange(length if loop.bound == "symbolic" else (tiles or 1) + beyond)
        some = turns >= 0, turns % 2 == 0, turns % 2 == 1, turns % 3 == 0, turns % loop.stages == loop.start % loop.stages, \
            turns == loop.start, turns < 0
        every, once, never = some[0], *some[-2:]
        pairs = [(each, each) for each in some] + [pair for each in (every, once) for pair in ((each, never), (never, each))
                                                   if loop.again]
        for chosen in {(one.tobytes(), two.tobytes()): (one, two) for one, two in pairs if loop.guard}.values() or pairs[:1]:
            for rounds in (3, 1, 0) if loop.around else (1,):
                call = kernel.signature.bind((x, w, *(each.astype(np.int32) for each in chosen), end, rounds, o, s))
                yield Call(kernel.machine_arguments(call), kernel.blocks(call)[0])


NEEDED = {
    # a wait for the other core orders all of its pipes, so that no flag goes back
    "both cores": Loop(
        start=0, trips=3, bound="constant", product=True, inner=2, stages=2, chained=True, guard="", row=False,
        around="branch", through=False, again=False, twice=True,
        steps=["T.vadd(carried, y, y)", "T.copy(y[4:8, 0:24], carried[2:6, 0:24])",
               "T.copy(y[0:4, 0:24], carried[2:6, 0:24])", "T.copy(y, carried)", "T.vabs(z, y)", "T.vabs(y, carried)"]),
    # round trips between the cores count in branches; M // 8 tiles have no edge, which would be filled
    "branch": Loop(
        start=0, trips=4, bound="symbolic", product=False, inner=2, stages=2, chained=True, guard="rest", row=True,
        around="", through=False, again=False, twice=False,
        steps=["T.vabs(y, y)", "T.copy(y[0:4, 0:24], carried[2:6, 0:24])", "T.copy(y, carried)", "T.vabs(carried, y)",
               "T.vabs(z, carried)"]),
    # a branch around all: if it is not taken, Vector frees slots for which Cube has not waited yet; that the second product
    # comes before the slot's next first access is known only transitively by Vector, through a branch, and after the loop
    "ahead": Loop(
        start=0, trips=5, bound="symbolic", product=True, inner=0, stages=3, chained=True, guard="all", row=False,
        around="persistent", through=True, again=False, twice=False,
        steps=["T.copy(y[4:8, 0:24], z[2:6, 0:24])", "T.vmul(carried, -0.25, carried)"]),
    # the first of two loops with the same bounds was executed in place of the second one
    "same bounds": Loop(
        start=0, trips=4, bound="argument", product=True, inner=2, stages=3, chained=False, guard="", row=True,
        around="branch", through=False, again=True, twice=True, steps=["T.copy(y[0:4, 0:24], z[2:6, 0:24])"]),
    # the second product is in a branch, the first one before it: Vector work is between them on entry and on exit
    "into a branch": Loop(
        start=0, trips=4, bound="argument", product=True, inner=0, stages=2, chained=True, guard="rest", row=False,
        around="persistent", through=True, again=True, twice=True, steps=["T.vmul(y, -0.25, z)", "T.vmul(z, -0.25, y)"]),
    # work that a branch of a loop began has ended after the loop: the other loop's buffers need no event for its next run
    "after the loop": Loop(
        start=3, trips=4, bound="symbolic", product=True, inner=0, stages=2, chained=True, guard="all", row=False,
        around="persistent", through=True, again=True, twice=True,
        steps=["T.vmax(carried, z, y)", "T.copy(y[0:4, 0:24], carried[2:6, 0:24])", "T.vmul(carried, 0.5, carried)",
               "T.vmin(carried, z, z)", "T.vabs(z, z)"]),
}
"""Loops in which every wait is needed, by the fact that the compiler has to find out."""


@pytest.mark.parametrize("every", [0, 1, 7], ids="one in {}".format)
@pytest.mark.parametrize("rounds", [1, 3])
def test_no_core_runs_ahead(tmp_path: Path, every: int, rounds: int) -> None:
    """However many iterations leave the branch out in which one core waits for the other."""
    loop = NEEDED["ahead"]
    x, w = np.ones((LONG * ROWS, COLUMNS), np.float16), np.eye(COLUMNS, dtype=np.float16)
    chosen = np.arange(LONG * ROWS, dtype=np.int32) % every == 0 if every else np.zeros(LONG * ROWS, np.int32)
    out, carried = np.full((LONG * ROWS, COLUMNS), 7.0, np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    kernel = _made(tmp_path / "loop.py", loop.text())(loop.stages)
    kernel(x, w, chosen.astype(np.int32), chosen.astype(np.int32), LONG, rounds, out, carried)
    assert kernel.last_launch.hazards == []
    _check(loop, x, w, [chosen, chosen], LONG, rounds, out, carried)


def _removed(folder: Path, loop: Loop) -> Removed:
    kernel = _made(folder / "loop.py", loop.text())(loop.stages)
    return removed(kernel.mlir(), list(_calls(kernel, loop)))


@pytest.mark.parametrize("loop", NEEDED.values(), ids=NEEDED)
def test_no_wait_can_go(tmp_path: Path, loop: Loop) -> None:
    assert _removed(tmp_path, loop).idle == []


@pytest.mark.skipif(not WAITS, reason="TILELANG_RANDOM_WAITS says of how many random loops every wait is taken out")
def test_few_waits_of_random_loops_can_go(tmp_path_factory: pytest.TempPathFactory) -> None:
    tried = idle = 0

    @settings(max_examples=WAITS, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate])
    @given(loop=LOOP)
    def count(loop: Loop) -> None:
        nonlocal tried, idle
        if loop.bound != "constant":
            loop = replace(loop, trips=loop.stages + 2)
        if loop.guard and loop.bound == "argument":  # what keeps a core from running ahead is needed in loops that are longer
            loop = replace(loop, bound="symbolic")
        found = _removed(tmp_path_factory.mktemp("loop"), loop)
        tried, idle = tried + found.tried, idle + len(found.idle)

    count()
    assert idle <= tried / 50
