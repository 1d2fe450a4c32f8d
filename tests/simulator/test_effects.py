"""The declared effects of ops on their operands are complete: all other bytes of memory may be noise."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from captured import KERNELS, Run, captured, copies
from ops import surface
from simulator.poisoning import ByLine, Poisoner, recorded, stated
from simulator.test_cube import product
from simulator.test_moves import layout_round, through_ub
from simulator.test_operand_checks import OPS, OWNER
from simulator.test_operand_checks import _module as one_op
from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.text import location_of, parse_module
from tilelang_npu.dialects.tile import root_of
from tilelang_npu.ops import DType, dtype
from tilelang_npu.simulator import Program

DEEP = int(os.environ.get("TILELANG_EFFECTS", "1"))
"""How often each op of a kernel is checked, and how many of an example's kernels are run; the tests' own are few."""
EXAMPLES = [file for file in sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
            if DEEP > 1 or not file.stem.endswith("_expert")]
SCRIPTS = [*KERNELS, *EXAMPLES]


def _texts(runs: list[Run]) -> list[Run]:
    """One run of each text, of few blocks."""
    found: dict[str, Run] = {}
    for run in sorted(runs, key=lambda each: each.launch.blocks):
        found.setdefault(run.text, run)
    return list(found.values())[:DEEP]


@pytest.mark.shared
@pytest.mark.parametrize("script", SCRIPTS, ids=[file.stem for file in SCRIPTS])
def test_ops_of_the_examples_have_only_their_declared_effects(script: Path) -> None:
    for run in _texts(captured(script)):
        poisoner = Poisoner(Program(parse_module(run.text)), DEEP)
        poisoner.run(copies(run.before), min(run.launch.blocks, 1 + DEEP))
        assert poisoner.checked
        assert poisoner.faults == []
        for function in poisoner.program.functions:
            for op, record in zip(function.recorded, function.records, strict=True):
                assert stated(op) == recorded(record), op


# -- the op tables -----------------------------------------------------------------------------------------------------

IN_A_KERNEL = 8
"""Calls that are compiled as one kernel."""


OF_ONE_TYPE = ("cast", "sort32")
"""Operations whose other element types take other calls than the one that there is."""


class Calls:
    """Calls of operations, compiled as one kernel: buffers that are loaded, worked on, and stored back."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.statements: list[str] = []
        self._rng = np.random.default_rng(1)

    def add(self, call: surface.Call) -> None:
        """Adds a call on new buffers."""
        names = {name: f"b{len(self.arrays) + place}" for place, name in enumerate(call.buffers)}
        for name, (shape, element) in call.buffers.items():
            kind = np.dtype(element.numpy)
            numbers = np.zeros(shape) if name == "i" else self._rng.integers(1, 2 if element.mlir == "i1" else 100, shape)
            self.arrays[names[name]] = numbers.astype(kind)
        self.statements.append(re.sub(r"\b[a-z]\b", lambda word: names.get(word[0], word[0]), call.statement))

    def compiled(self, made: Callable[[str], Any], dialect: str) -> Any:
        """The kernel."""
        kinds = {name: str(dtype(array.dtype)) for name, array in self.arrays.items()}
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in self.arrays.items()]
        lines += [f"T.copy({name.upper()}, {name})" for name in self.arrays]
        lines += [*self.statements, *(f"T.copy({name}, {name.upper()})" for name in self.arrays)]
        parameters = ", ".join(f"{name.upper()}: T.Tensor({self.arrays[name].shape}, {kind!r})" for name, kind in kinds.items())
        text = surface.kernel_text(lines, parameters).replace("T.Kernel(1, is_npu=True) as (cid, vid)", "T.Kernel(1) as cid")
        return tilelang.compile(made(text).main, target=dialect)


def _kinds(entry: ops.Operation, name: str) -> list[DType]:
    legal = [kind for kind in dict.fromkeys((surface.first_type(entry, name), *entry.dtypes))
             if surface.is_legal(entry, kind, surface.dialect_of(name))]
    return legal if DEEP > 1 and entry.name not in OF_ONE_TYPE else legal[:1]


def _by_kernel() -> list[Any]:
    found: dict[str, list[surface.Call]] = {}
    for entry, name in surface.covered():
        for kind in _kinds(entry, name):
            found.setdefault(surface.dialect_of(name), []).append(surface.example(name, entry, kind))
    return [pytest.param(dialect, calls[first:first + IN_A_KERNEL], id=f"{dialect}-{calls[first].name}")
            for dialect, calls in found.items() for first in range(0, len(calls), IN_A_KERNEL)]


@pytest.mark.parametrize(("dialect", "calls"), _by_kernel())
def test_ops_of_the_tables_have_only_their_declared_effects(source: Any, dialect: str, calls: list[surface.Call]) -> None:
    made = Calls()
    for call in calls:
        made.add(call)
    kernel = made.compiled(source, dialect)
    lines = ByLine()
    poisoner = Poisoner(kernel.programs[0], watch=lines)
    poisoner.run(copies(list(made.arrays.values())), 1)
    assert poisoner.checked > len(calls)
    assert poisoner.faults == []
    reads, writes = of_tiles(kernel)
    named = {label for _, label in reads | writes}
    assert len(named) == 2 * len(made.arrays)  # each buffer, and its parameter
    assert {each for each in lines.reads if each[1] in named} <= reads
    assert {each for each in lines.writes if each[1] in named} <= writes


def of_tiles(kernel: Any) -> tuple[set[tuple[int, str]], set[tuple[int, str]]]:
    """Returns the declared effects of the ops of the tile dialect: lines, and names of buffers."""
    found: tuple[set[tuple[int, str]], set[tuple[int, str]]] = set(), set()
    for op in kernel._lowering.traced.module.walk():
        for effect in effects_of(op):
            root, where = root_of(effect.value), location_of(op)
            name = root.owner.label.data if isinstance(root.owner, tile.AllocOp) else root.name_hint
            assert where is not None
            assert name is not None
            for does, each in ((effect.reads, found[0]), (effect.writes, found[1])):
                each.update({(where.line, name)} if does else ())
    return found


def test_an_op_with_an_undeclared_effect_is_found(source: Any) -> None:
    made = Calls()
    for name in ("tile.add", "tile.select", "tile.gather_mask", "reduce_sum", "tile.transpose", "tile.exp"):
        entry = next(each for each, called in surface.covered() if called == name)
        made.add(surface.example(name, entry, surface.first_type(entry, name)))
    poisoner = Poisoner(made.compiled(source, "ascendc").programs[0], lies=True)
    poisoner.run(copies(list(made.arrays.values())), 1)
    assert poisoner.faults == []
    assert poisoner.missed == []
    assert poisoner.tried > 2 * len(made.statements)


# -- matrix units and moves --------------------------------------------------------------------------------------------

def _alone() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """An op between memories that it can work on, for each way that it can."""
    for op, (_, owner, operands, rows) in OPS.items():
        for spaces in rows:
            core = owner or next(OWNER[space] for space in spaces if space in OWNER)
            arrays = [np.ones((16, 16) if space == "gm" else 16, dtype(element).numpy)
                      for element, space in zip(operands.values(), spaces, strict=True)]
            yield f"{op}-{'-'.join(spaces)}", one_op(core, op, spaces), arrays


def _with_clauses() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Loads that pad, stores that add, products that add up, parts of fractal blocks."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((4, 10)).astype(np.float32), np.ones((4, 16), np.float32)
    numbers = "\n".join(f"    %{name} = arith.constant {text}" for name, text in (
        ("p", "9.0 : f32"), ("left", "2 : index"), ("right", "3 : index"), ("on", "true"), ("off", "false")))
    pads = "pad_mode = <PadValue> pad_value = %p : f32 left_padding_num = %left : index"
    for name, clauses in (("fills", pads), ("leaves", f"{pads} right_padding_num = %right : index"),
                          ("clears", f"{pads} init_out_buffer = true right_padding_num = %right : index"),
                          ("not", f"{pads} init_out_buffer = true right_padding_num = %right : index"
                                  " init_condition = %off : i1"),
                          ("first", "pad_mode = <PadFirstElem> left_padding_num = %left : index")):
        yield f"load-{name}", through_ub(x, y, clauses, numbers), [x, y]
    text = through_ub(y, y, "")
    store = next(line for line in text.splitlines() if "hivm.hir.store" in line)
    yield "store-adds", text.replace(store, f"{store} atomic = <add>"), [y, y.copy()]
    a, b, c = (rng.standard_normal(shape).astype(kind) for shape, kind in (
        ((20, 24), np.float16), ((24, 40), np.float16), ((20, 40), np.float32)))
    bias = rng.standard_normal(40).astype(np.float32)
    products = product(a, b, c, times=2, bias=40)
    drain = next(line for line in products.splitlines() if "hivm.hir.fixpipe" in line)
    copy = store.replace("hivm.hir.store", "hivm.hir.copy")
    for name, written, line, arrays in (("store", text, store, [y, y.copy()]),
                                        ("copy", text.replace(store, copy), copy, [y, y.copy()]),
                                        ("fixpipe", products, drain, [a, b, c, bias])):
        begin, end = (f"    hivm.hir.set_atomic kind = <{kind}>[type = f32]" for kind in ("add", "none"))
        yield f"{name}-adds-as-the-core-is-set", written.replace(line, f"{begin}\n{line}\n{end}"), arrays
        yield f"{name}-adds-as-a-loop-before-it-set-the-core", written.replace(
            line, "%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n"
            f"scf.for %turn = %z to %o step %o {{\n{begin}\n}}\n{line}\n{end}"), arrays
    yield "products", products, [a, b, c, bias]
    yield "turned", product(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c, a_turned=True, b_turned=True), [
        np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c]
    yield "part", product(a, b, c).replace("%m = arith.constant 20", "%m = arith.constant 7"), [a, b, c]
    for op in ("mmadL1", "mma"):
        (spaces,) = OPS[op][3]
        yield f"{op}-part", one_op("AIC", op, spaces).replace("%n = arith.constant 16", "%n = arith.constant 7"), [
            np.ones(16, dtype(element).numpy) for element in OPS[op][2].values()]
    yield "layout", layout_round(33, 70, np.float16), [np.ones((33, 70), np.float16), np.ones((33, 70), np.float16)]


@pytest.mark.parametrize(("text", "arrays"), [pytest.param(text, arrays, id=name)
                                              for name, text, arrays in (*_alone(), *_with_clauses())])
def test_moves_and_products_have_only_their_declared_effects(text: str, arrays: list[np.ndarray]) -> None:
    poisoner = Poisoner(Program(parse_module(text)))
    poisoner.run(copies(arrays), 1)
    assert poisoner.checked
    assert poisoner.faults == []
