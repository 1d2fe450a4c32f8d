"""Scalar arithmetic, loops and branches, and scalar storage; results are stored to GM by the scalar unit."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program, simulate


def stores(values: dict[str, str], body: str, args: tuple[str, ...] = ()) -> str:
    """A kernel that computes ``body`` and stores each SSA value of ``values`` (name: type) to its own GM array."""
    lines = ["    %zero = arith.constant 0 : index", body]
    outs = []
    for name, kind in values.items():
        outs.append(f"%out_{name}: memref<1x{kind}, {texts.GM}>")
        lines.append(f"    memref.store %{name}, %out_{name}[%zero] : memref<1x{kind}, {texts.GM}>")
    return texts.module(texts.kernel("AIV", [*args, *outs], "\n".join(lines)))


KINDS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f16": np.float16, "i1": np.bool_}


def evaluate(values: dict[str, str], body: str, args: tuple[str, ...] = (), given: tuple[Any, ...] = ()) -> list[Any]:
    results = [np.zeros(1, KINDS[kind]) for kind in values.values()]
    simulate(parse_module(stores(values, body, args)), [*given, *results], blocks=1)
    return [result[0].item() for result in results]


def wrapped(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


SAMPLES = [(7, 3), (-7, 3), (7, -3), (-7, -3), (2**31 - 1, 2), (-(2**31), 3), (100, 31), (-1, 1), (12345, 678)]


@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
@pytest.mark.parametrize(("a", "b"), SAMPLES)
def test_integers(a: int, b: int, constant: bool) -> None:
    """i32 arithmetic wraps, divides toward zero and shifts as MLIR says, whether folded or generated."""
    unsigned = 2**32
    ua, ub = a % unsigned, b % unsigned
    shift = b % 32
    expected = {
        "addi": a + b, "subi": a - b, "muli": a * b, "divsi": int(math.copysign(abs(a) // abs(b), a * b)) if a * b else 0,
        "remsi": int(math.fmod(a, b)), "divui": ua // ub, "remui": ua % ub, "andi": a & b, "ori": a | b, "xori": a ^ b,
        "minsi": min(a, b), "maxsi": max(a, b), "minui": min(ua, ub), "maxui": max(ua, ub), "floordivsi": a // b,
        "ceildivsi": -(-a // b)}
    shifts = {"shli": a << shift, "shrsi": a >> shift, "shrui": ua >> shift}
    body = ([] if not constant else [f"    %a = arith.constant {a} : i32", f"    %b = arith.constant {b} : i32"])
    body += [f"    %s = arith.constant {shift} : i32"]
    body += [f"    %{name} = arith.{name} %a, %b : i32" for name in expected]
    body += [f"    %{name} = arith.{name} %a, %s : i32" for name in shifts]
    body += [f"    %c{n} = arith.cmpi {p}, %a, %b : i32" for n, p in enumerate(
        ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"))]
    kinds = dict.fromkeys([*expected, *shifts], "i32") | {f"c{n}": "i1" for n in range(10)}
    args, given = ((), ()) if constant else (("%a: i32", "%b: i32"), (a, b))
    got = evaluate(kinds, "\n".join(body), args, given)
    want = [wrapped(value, 32) for value in (*expected.values(), *shifts.values())]
    want += [a == b, a != b, a < b, a <= b, a > b, a >= b, ua < ub, ua <= ub, ua > ub, ua >= ub]
    assert dict(zip(kinds, got, strict=True)) == dict(zip(kinds, want, strict=True))


def test_widths(rng: np.random.Generator) -> None:
    body = """    %n8 = arith.trunci %a : i32 to i8
    %s64 = arith.extsi %a : i32 to i64
    %u64 = arith.extui %a : i32 to i64
    %ix = arith.index_cast %a : i32 to index
    %back = arith.index_cast %ix : index to i16
    %bit = arith.trunci %a : i32 to i1
    %wide = arith.extui %bit : i1 to i32
    %neg = arith.extsi %bit : i1 to i32"""
    got = evaluate({"n8": "i8", "s64": "i64", "u64": "i64", "back": "i16", "bit": "i1", "wide": "i32", "neg": "i32"}, body,
                   ("%a: i32",), (-70001,))
    assert got == [wrapped(-70001, 8), -70001, 2**32 - 70001, wrapped(-70001, 16), True, 1, -1]


def test_floats() -> None:
    a, b = np.float32(1.1), np.float32(-2.7)
    body = """    %sum = arith.addf %a, %b : f32
    %dif = arith.subf %a, %b : f32
    %pro = arith.mulf %a, %b : f32
    %quo = arith.divf %a, %b : f32
    %neg = arith.negf %a : f32
    %max = arith.maximumf %a, %b : f32
    %low = arith.truncf %a : f32 to f16
    %up = arith.extf %low : f16 to f32
    %int = arith.fptosi %b : f32 to i32
    %flo = arith.sitofp %int : i32 to f32
    %less = arith.cmpf olt, %b, %a : f32
    %exp = math.exp %a : f32
    %bits = arith.bitcast %a : f32 to i32
    %sel = arith.select %less, %a, %b : f32"""
    kinds = dict.fromkeys(("sum", "dif", "pro", "quo", "neg", "max"), "f32")
    kinds |= {"low": "f16", "up": "f32", "int": "i32", "flo": "f32", "less": "i1", "exp": "f32", "bits": "i32", "sel": "f32"}
    got = evaluate(kinds, body, ("%a: f32", "%b: f32"), (1.1, -2.7))
    want = [a + b, a - b, a * b, a / b, -a, a, np.float16(a), np.float32(np.float16(a)), -2, -2.0, True,
            np.float32(math.exp(float(a))), struct.unpack("i", struct.pack("f", a))[0], a]
    assert got == [float(value) if isinstance(value, np.floating) else value for value in want]


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(TileError, match=r"T509.*divides by zero"):
        evaluate({"q": "i32"}, "    %q = arith.divsi %a, %b : i32", ("%a: i32", "%b: i32"), (1, 0))


@pytest.mark.parametrize("op", ["remui", "remsi", "divui", "divsi", "floordivsi", "ceildivsi"])
def test_what_is_left_of_a_division_by_zero_is_an_error(op: str) -> None:
    """By 1 nothing is left of any number, and by 0 nothing else can be: it was known to be 0 before it was divided."""
    body = f"""    %one = arith.constant 1 : i32
    %by = arith.andi %b, %one : i32
    %n = arith.maxsi %a, %zero_ : i32
    %r = arith.{op} %n, %by : i32"""
    body = "    %zero_ = arith.constant 0 : i32\n" + body
    args = ("%a: i32", "%b: i32")
    assert evaluate({"r": "i32"}, body, args, (7, 3)) == [7 if "div" in op else 0]
    with pytest.raises(TileError, match=r"T509.*divides by zero"):
        evaluate({"r": "i32"}, body, args, (7, 2))


def test_a_division_that_does_not_run_does_not_fail() -> None:
    """An operation that may fail is not moved out of a branch, or of a loop that may not run."""
    body = """    %c0 = arith.constant 0 : i32
    %one = arith.constant 1 : index
    %n = arith.index_cast %b : i32 to index
    %some = arith.cmpi ne, %b, %c0 : i32
    %r = scf.if %some -> (i32) {
      %q = arith.divsi %a, %b : i32
      scf.yield %q : i32
    } else {
      scf.yield %a : i32
    }
    %s = scf.for %i = %zero to %n step %one iter_args(%x = %r) -> (i32) {
      %q = arith.divsi %a, %b : i32
      %y = arith.addi %x, %q : i32
      scf.yield %y : i32
    }"""
    assert evaluate({"r": "i32", "s": "i32"}, body, ("%a: i32", "%b: i32"), (9, 0)) == [9, 9]
    assert evaluate({"r": "i32", "s": "i32"}, body, ("%a: i32", "%b: i32"), (9, 3)) == [3, 12]


@pytest.mark.parametrize("op", ["divui", "divsi", "floordivsi", "ceildivsi", "remui", "remsi"])
def test_a_division_by_a_constant_zero_fails_if_it_runs(op: str) -> None:
    body = f"""    %c0 = arith.constant 0 : i32
    %some = arith.cmpi ne, %b, %c0 : i32
    %r = scf.if %some -> (i32) {{
      %q = arith.{op} %a, %c0 : i32
      scf.yield %q : i32
    }} else {{
      scf.yield %a : i32
    }}"""
    assert evaluate({"r": "i32"}, body, ("%a: i32", "%b: i32"), (9, 0)) == [9]
    with pytest.raises(TileError, match=r"T509.*divides by zero"):
        evaluate({"r": "i32"}, body, ("%a: i32", "%b: i32"), (9, 1))


@pytest.mark.parametrize("value", [False, True])
def test_truth_values_that_are_loaded(value: bool) -> None:
    body = f"""    %t = memref.load %flag[%zero] : memref<1xi1, {texts.GM}>
    %yes = arith.constant true
    %n = arith.xori %t, %yes : i1
    %u = arith.extui %t : i1 to i32
    %c0 = arith.constant 0 : i32
    %g = arith.cmpi sgt, %u, %c0 : i32
    %s = arith.extsi %t : i1 to i32
    %f = arith.uitofp %t : i1 to f32
    %c = arith.select %t, %a, %b : i32
    %r = scf.if %t -> (i32) {{
      scf.yield %a : i32
    }} else {{
      scf.yield %b : i32
    }}"""
    kinds = {"t": "i1", "n": "i1", "u": "i32", "g": "i1", "s": "i32", "f": "f32", "c": "i32", "r": "i32"}
    args = (f"%flag: memref<1xi1, {texts.GM}>", "%a: i32", "%b: i32")
    chosen = 7 if value else 5
    assert evaluate(kinds, body, args, (np.array([value]), 7, 5)) == [
        value, not value, int(value), value, -int(value), float(value), chosen, chosen]


def test_loops_carry_values() -> None:
    body = """    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %one = arith.constant 1 : index
    %ten = arith.constant 10 : index
    %f:2 = scf.for %i = %zero to %ten step %one iter_args(%a = %c0, %b = %c1) -> (i64, i64) {
      %n = arith.addi %a, %b : i64
      scf.yield %b, %n : i64, i64
    }
    %w:2 = scf.while (%x = %c1, %y = %c0) : (i64, i64) -> (i64, i64) {
      %limit = arith.constant 1000 : i64
      %more = arith.cmpi slt, %x, %limit : i64
      scf.condition(%more) %x, %y : i64, i64
    } do {
    ^bb0(%x: i64, %y: i64):
      %d = arith.addi %x, %x : i64
      %e = arith.addi %y, %c1 : i64
      scf.yield %d, %e : i64, i64
    }
    %first = arith.addi %f#0, %c0 : i64
    %power = arith.addi %w#0, %c0 : i64
    %steps = arith.addi %w#1, %c0 : i64"""
    assert evaluate({"first": "i64", "power": "i64", "steps": "i64"}, body) == [55, 1024, 10]


def test_nested_branches_and_storage() -> None:
    """A counter in scalar storage; values from outer loops in inner branches; sibling branches that share expressions."""
    body = """    %box = memref.alloca() : memref<2x3xi64>
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %five = arith.constant 5 : index
    %k = arith.constant 10 : i64
    scf.for %i = %zero to %five step %one {
      %j = arith.index_cast %i : index to i64
      %odd = arith.remui %i, %two : index
      %is = arith.cmpi eq, %odd, %one : index
      scf.if %is {
        %p = arith.muli %j, %k : i64
        %old = memref.load %box[%one, %two] : memref<2x3xi64>
        %new = arith.addi %old, %p : i64
        memref.store %new, %box[%one, %two] : memref<2x3xi64>
      } else {
        %p = arith.muli %j, %k : i64
        %old = memref.load %box[%zero, %one] : memref<2x3xi64>
        %q = arith.addi %p, %k : i64
        %new = arith.addi %old, %q : i64
        memref.store %new, %box[%zero, %one] : memref<2x3xi64>
      }
    }
    %odds = memref.load %box[%one, %two] : memref<2x3xi64>
    %evens = memref.load %box[%zero, %one] : memref<2x3xi64>"""
    assert evaluate({"odds": "i64", "evens": "i64"}, body) == [40, 90]


def test_memrefs_are_chosen_and_carried(rng: np.random.Generator) -> None:
    """A buffer that rotates through iter_args, one chosen by scf.if, and one of a pointer_cast with two addresses."""
    x = rng.standard_normal((4, 16)).astype(np.float32)
    kind, out = f"memref<16xf32, {texts.UB}>", f"memref<4x16xf32, {texts.GM}>"
    row = f"memref<16xf32, strided<[1], offset: ?>, {texts.GM}>"
    body = f"""    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %at0 = arith.constant 0 : i64
    %at1 = arith.constant 64 : i64
    %at2 = arith.constant 128 : i64
    %a = hivm.hir.pointer_cast(%at0) : {kind}
    %b = hivm.hir.pointer_cast(%at1) : {kind}
    %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %b) -> ({kind}, {kind}) {{
    %two = hivm.hir.pointer_cast(%at1, %at2) : {kind}
    %src = memref.subview %X[%i, 0] [1, 16] [1, 1] : {out} to {row}
    %dst = memref.subview %Y[%i, 0] [1, 16] [1, 1] : {out} to {row}
    hivm.hir.load ins(%src : {row}) outs(%p : {kind})
{texts.sync("MTE2", "V")}
    %odd = arith.remui %i, %c2 : index
    %is = arith.cmpi eq, %odd, %c0 : index
    %t = scf.if %is -> ({kind}) {{
      scf.yield %two : {kind}
    }} else {{
      scf.yield %two : {kind}
    }}
    hivm.hir.vadd ins(%p, %p : {kind}, {kind}) outs(%t : {kind})
{texts.sync("V", "MTE3")}
    hivm.hir.store ins(%t : {kind}) outs(%dst : {row})
{texts.sync("MTE3", "MTE2", 1)}
    scf.yield %q, %p : {kind}, {kind}
    }}
    hivm.hir.pipe_barrier[<PIPE_ALL>]"""
    y = np.zeros_like(x)
    text = texts.module(texts.kernel("AIV", [f"%X: {out}", f"%Y: {out}"], body))
    simulate(parse_module(text), [x, y], blocks=1)
    np.testing.assert_array_equal(y, 2 * x)


def test_who_and_where() -> None:
    counts = np.zeros((6, 4), np.int64)
    kind = f"memref<6x4xi64, {texts.GM}>"
    body = "\n".join(
        [f"    %w{n} = arith.constant {n} : index" for n in range(4)]
        + ["    %b = hivm.hir.get_block_idx -> i64", "    %bi = arith.index_cast %b : i64 to index",
           "    %n = hivm.hir.get_block_num -> i64", "    %s = hivm.hir.get_sub_block_idx -> i64",
           "    %m = hivm.hir.get_sub_block_num -> i64"]
        + [f"    memref.store %{name}, %O[%bi, %w{n}] : {kind}" for n, name in enumerate("bnsm")])
    simulate(parse_module(texts.module(texts.kernel("AIV", [f"%O: {kind}"], body))), [counts], blocks=6)
    assert counts.tolist() == [[block, 6, 0, 1] for block in range(6)]


def test_invariant_arithmetic_runs_once() -> None:
    """Values that depend on arguments only are computed once per launch, values that depend on the block once per block."""
    source = Program(parse_module(texts.gemm(256, 256, 256))).source()
    loop = source[source.index("for i"):]
    assert "bid" not in loop
    assert loop.count(" nd(") == 3  # the two tiles of GM that move, and the result; on-chip arrays are made at the launch
    launch = source[:source.index("def run")]
    assert launch.count(" nd(") == 9


def run_scalar_loop(count: int) -> Launch:
    out = np.zeros(1, np.int64)
    body = f"""    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant {count} : index
    %k = arith.constant 1 : i64
    scf.for %i = %zero to %n step %one {{
      %v = memref.load %O[%zero] : memref<1xi64, {texts.GM}>
      %w = arith.addi %v, %k : i64
      memref.store %w, %O[%zero] : memref<1xi64, {texts.GM}>
    }}"""
    text = texts.module(texts.kernel("AIV", [f"%O: memref<1xi64, {texts.GM}>"], body))
    launch = simulate(parse_module(text), [out], blocks=1)
    assert out[0] == count
    return launch


def test_scalar_work_takes_time() -> None:
    assert run_scalar_loop(200).cycles > 1.9 * run_scalar_loop(100).cycles
