"""Random scalar programs: the generated code compared with direct interpretation of the IR.

Hoisting, common subexpression elimination and folding must not change a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate


class Writer:
    """Writes a random program over i32 values; every value in sight may be used."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self, values: list[str]) -> str:
        return values[int(self.rng.integers(len(values)))]

    def block(self, values: list[str], depth: int, steps: int) -> list[str]:
        values = list(values)
        for _ in range(steps):
            kind = self.rng.random()
            if kind < 0.62 or depth == 0:
                values.append(self.arithmetic(values))
            elif kind < 0.75:
                values.append(self.branch(values, depth))
            elif kind < 0.9:
                values.append(self.loop(values, depth))
            else:
                self.store(values)
        return values

    def arithmetic(self, values: list[str]) -> str:
        name = self.fresh()
        op = self.pick(["addi", "subi", "muli", "minsi", "maxsi", "andi", "xori", "divsi", "remsi", "divui", "remui", "shrsi"])
        right = self.pick(values)
        if op in ("divsi", "remsi", "divui", "remui", "shrsi"):
            right = self.pick(["%three", "%five"])
        self.lines.append(f"{name} = arith.{op} {self.pick(values)}, {right} : i32")
        return name

    def branch(self, values: list[str], depth: int) -> str:
        name, test = self.fresh(), self.fresh()
        relation, left, right = self.pick(["slt", "eq", "uge"]), self.pick(values), self.pick(values)
        self.lines.append(f"{test} = arith.cmpi {relation}, {left}, {right} : i32")
        self.lines.append(f"{name} = scf.if {test} -> (i32) {{")
        self.lines.append(f"scf.yield {self.pick(self.block(values, depth - 1, 3))} : i32")
        self.lines.append("} else {")
        self.lines.append(f"scf.yield {self.pick(self.block(values, depth - 1, 3))} : i32")
        self.lines.append("}")
        return name

    def loop(self, values: list[str], depth: int) -> str:
        name, carried, index, number = (self.fresh() for _ in range(4))
        low, high = self.rng.integers(0, 3), self.rng.integers(0, 5)
        bounds = [self.fresh(), self.fresh()]
        for bound, value in zip(bounds, (low, high), strict=True):
            self.lines.append(f"{bound} = arith.constant {value} : index")
        self.lines.append(f"{name} = scf.for {index} = {bounds[0]} to {bounds[1]} step %one iter_args({carried} = "
                          f"{self.pick(values)}) -> (i32) {{")
        self.lines.append(f"{number} = arith.index_cast {index} : index to i32")
        inner = self.block([*values, carried, number], depth - 1, 4)
        self.lines.append(f"scf.yield {self.pick(inner)} : i32")
        self.lines.append("}")
        return name

    def store(self, values: list[str]) -> None:
        at = self.pick(["%zero", "%one", "%two"])
        old, new = self.fresh(), self.fresh()
        self.lines += [f"{old} = memref.load %box[{at}] : memref<3xi32>",
                       f"{new} = arith.addi {old}, {self.pick(values)} : i32",
                       f"memref.store {new}, %box[{at}] : memref<3xi32>"]


def program(seed: int) -> str:
    writer = Writer(seed)
    values = writer.block(["%a", "%b", "%three"], 3, 8)
    kind = f"memref<4xi32, {texts.GM}>"
    head = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index", "%two = arith.constant 2 : index",
            "%last = arith.constant 3 : index", "%three = arith.constant 3 : i32", "%five = arith.constant 5 : i32",
            "%box = memref.alloca() : memref<3xi32>"]
    tail = [f"memref.store {writer.pick(values)}, %O[%last] : {kind}"]
    for place, name in enumerate(("%zero", "%one", "%two")):
        tail += [f"%o{place} = memref.load %box[{name}] : memref<3xi32>", f"memref.store %o{place}, %O[{name}] : {kind}"]
    body = "\n".join([*head, *writer.lines, *tail])
    return texts.module(texts.kernel("AIV", ["%a: i32", "%b: i32", f"%O: {kind}"], body))


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


BINARY: dict[str, Any] = {
    "arith.addi": lambda x, y: x + y, "arith.subi": lambda x, y: x - y, "arith.muli": lambda x, y: x * y, "arith.minsi": min,
    "arith.maxsi": max, "arith.andi": lambda x, y: x & y, "arith.xori": lambda x, y: x ^ y, "arith.shrsi": lambda x, y: x >> y,
    "arith.divsi": lambda x, y: int(x / y), "arith.remsi": lambda x, y: x - int(x / y) * y,
    "arith.divui": lambda x, y: x % 2**32 // y, "arith.remui": lambda x, y: x % 2**32 % y}


class Reader:
    """Executes the IR as it is written."""

    def __init__(self, values: dict[SSAValue, Any]) -> None:
        self.values = values

    def run(self, block: Block) -> list[Any]:
        for op in block.ops:
            if op.name in ("scf.yield", "func.return"):
                return [self.values[operand] for operand in op.operands]
            self.step(op)
        return []

    def step(self, op: Operation) -> None:
        given = [self.values.get(operand) for operand in op.operands]
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr)
            self.values[op.result] = op.value.value.data
        elif op.name in BINARY:
            self.values[op.results[0]] = wrap(BINARY[op.name](*given))
        elif isinstance(op, arith.IndexCastOp):
            self.values[op.result] = given[0]
        elif isinstance(op, arith.CmpiOp):
            x, y = given
            self.values[op.result] = {2: x < y, 0: x == y, 9: x % 2**32 >= y % 2**32}[op.predicate.value.data]
        elif isinstance(op, scf.IfOp):
            region = op.true_region if given[0] else op.false_region
            self.values[op.results[0]] = self.run(region.block)[0]
        elif isinstance(op, scf.ForOp):
            low, high, step, carried = given
            for index in range(low, high, step):
                self.values[op.body.block.args[0]], self.values[op.body.block.args[1]] = index, carried
                carried = self.run(op.body.block)[0]
            self.values[op.results[0]] = carried
        elif isinstance(op, memref.AllocaOp):
            self.values[op.results[0]] = [0, 0, 0]
        elif isinstance(op, memref.LoadOp):
            self.values[op.results[0]] = int(given[0][given[1]])
        elif isinstance(op, memref.StoreOp):
            given[1][given[2]] = given[0]
        else:
            raise AssertionError(op.name)


def expected(module: ModuleOp, a: int, b: int) -> list[int]:
    function = next(op for op in module.body.block.ops if isinstance(op, FuncOp))
    out = [0, 0, 0, 0]
    block = function.body.block
    Reader(dict(zip(block.args, (a, b, out), strict=True))).run(block)
    return out


@pytest.mark.parametrize("seed", range(60))
def test_generated_code_computes_what_the_ir_says(seed: int) -> None:
    module = parse_module(program(seed))
    for a, b in ((0, 0), (7, -3), (-(2**31), 2**31 - 1), (123456, -98765)):
        out = np.zeros(4, np.int32)
        simulate(module, [a, b, out], blocks=1)
        assert out.tolist() == expected(module, a, b)
