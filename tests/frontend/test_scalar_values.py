"""Values of emitted scalar code: random integer expressions are traced, run op by op, and compared with Python's own answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import IndexType, IntegerType

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


class Word:
    """An integer of 32 bits that wraps; Python's rounding otherwise."""

    def __init__(self, value: int) -> None:
        self.value = wrapped(int(value), 32)

    def _with(self, other: Any, function: Callable[[int, int], int], swap: bool = False) -> Word:
        right = other.value if isinstance(other, Word) else other
        return Word(function(right, self.value) if swap else function(self.value, right))

    def __add__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a + b, swap=True)

    def __sub__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a - b, swap=True)

    def __mul__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a % b)

    def __and__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a & b)

    def __rshift__(self, other: Any) -> Word:
        return self._with(other, lambda a, b: a >> b)

    def __neg__(self) -> Word:
        return Word(-self.value)

    def __lt__(self, other: Any) -> bool:
        return self.value < (other.value if isinstance(other, Word) else other)

    def __gt__(self, other: Any) -> bool:
        return self.value > (other.value if isinstance(other, Word) else other)


def expression(chance: random.Random, names: list[str], depth: int) -> str:
    if depth == 0 or chance.random() < 0.15:
        return chance.choice([*names, *names, str(chance.randrange(-9, 10))])
    left, right = expression(chance, names, depth - 1), expression(chance, names, depth - 1)
    divisor = chance.choice(["2", "3", "7", "16", "-3", "5"])
    return chance.choice([
        f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"({left} // {divisor})", f"({left} % {divisor})",
        f"({left} & {chance.choice(['7', '255'])})", f"({left} >> {chance.randrange(4)})", f"(-{left})",
        f"T.min({left}, {right})", f"T.max({left}, {right})", f"T.Select({left} < {right}, {right}, {left})",
        f"({left} if {left} < {right} else {right})",
    ])


class Host:
    """``T`` for Python's own evaluation."""

    @staticmethod
    def min(a: Any, b: Any) -> Any:
        return b if b < a else a

    @staticmethod
    def max(a: Any, b: Any) -> Any:
        return b if a < b else a

    @staticmethod
    def Select(condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b


def run(kernel: Any, arguments: dict[str, int]) -> list[int]:
    """The stored values, by executing each op of the launch in order."""
    function = kernel.only("func.func")
    values: dict[Any, int] = {argument: arguments.get(argument.name_hint or "", 0) for argument in function.body.block.args}
    launch = kernel.only("tile.launch")
    values.update({argument: arguments.get(argument.name_hint or "", 0) for argument in launch.body.block.args})
    stored = []
    for op in [*function.body.block.ops, *launch.body.block.ops]:
        name = op.name.removeprefix("arith.")
        operands = [values.get(operand, 0) for operand in op.operands]
        if op.name == "memref.store":
            stored.append(operands[0])
        if not op.results:
            continue
        kind = op.results[0].type
        bits = kind.width.data if isinstance(kind, IntegerType) else 64 if isinstance(kind, IndexType) else 0
        values[op.results[0]] = outcome(op, name, operands, bits)
    return stored


def outcome(op: Any, name: str, operands: list[int], bits: int) -> int:
    if name == "constant":
        return int(op.value.value.data)
    if name == "cmpi":
        a, b = operands
        return [a == b, a != b, a < b, a <= b, a > b, a >= b][op.predicate.value.data]
    if name == "select":
        return operands[1] if operands[0] else operands[2]
    if name in ("divui", "remui", "shrui"):
        assert min(operands) >= 0, f"{name} of {operands}"
    table: dict[str, Callable[[int, int], int]] = {
        "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b, "floordivsi": lambda a, b: a // b,
        "divui": lambda a, b: a // b, "remui": lambda a, b: a % b, "andi": lambda a, b: a & b, "minsi": min, "maxsi": max,
        "shrsi": lambda a, b: a >> b, "shrui": lambda a, b: a >> b,
    }
    if name in table:
        return wrapped(table[name](*operands), bits)
    assert name in ("index_cast", "trunci", "extsi", "extui") or not operands or bits == 0, name
    return wrapped(operands[0], bits) if bits > 1 and operands else (operands[0] if operands else 0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("names", [["n", "m"], ["cid", "vid"], ["cid", "k4"]], ids="-".join)
def test_random_expressions(source: Any, traced: Any, names: list[str], seed: int) -> None:
    chance = random.Random(seed * 100 + len("".join(names)))
    texts = []
    while len(texts) < 40:
        text = expression(chance, names, 4)
        if any(name in text for name in names):
            texts.append(text)
    stores = "\n            ".join(f"A[{position}] = {text}" for position, text in enumerate(texts))
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((64,), "int64"), n: T.int32, m: T.int32):
            with T.Kernel(40, is_npu=True) as (cid, vid):
                k4 = cid * 4 + 2
                {stores.replace(chr(10), chr(10) + "    ")}
    """)
    kernel = traced(module.main)
    for _ in range(8):
        cid, vid = chance.randrange(40), chance.randrange(2)
        n, m = (chance.choice([0, 1, -1, chance.randrange(-100, 100), chance.randrange(-2**31, 2**31)]) for _ in "nm")
        word = names == ["n", "m"]
        env: dict[str, Any] = {"T": Host, "n": Word(n), "m": Word(m), "cid": cid, "vid": vid, "k4": cid * 4 + 2}
        have = run(kernel, {"n": n, "m": m, "cid": cid, "vid": vid})
        for text, value in zip(texts, have, strict=True):
            expected = eval(text, env)
            number = expected.value if isinstance(expected, Word) else expected
            assert value == wrapped(number, 32 if word else 64), (text, n, m, cid, vid)
