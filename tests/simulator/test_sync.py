"""Flags, deadlocks and hazards: every line of synchronisation is needed, and a missing one is reported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, simulate

ADD, GEMM, MIX, SOFTMAX = texts.add_tiles(), texts.gemm(128, 128, 256), texts.scaled_product(), texts.row_softmax(256, 8, 3)


def arguments(text: str) -> tuple[list[Any], int]:
    rng = np.random.default_rng(1)
    if text is ADD:
        a, b = rng.standard_normal((2, 2048)).astype(np.float32)
        return [a, b, np.zeros_like(a), 2048], 1
    if text is GEMM:
        a, b = rng.standard_normal((2, 128 * 256)).astype(np.float16)
        return [a.reshape(128, 256), b.reshape(256, 128), np.zeros((128, 128), np.float16)], 1
    if text is SOFTMAX:
        x = rng.standard_normal((24, 256)).astype(np.float32)
        return [x, np.zeros_like(x)], 1
    a, b = rng.standard_normal((2, 3, 64, 64)).astype(np.float16)
    d = rng.standard_normal((3, 64, 64)).astype(np.float32)
    return [a, b, d, np.zeros_like(d), 3], 1


def launched(text: str, original: str | None = None, **options: Any) -> Launch:
    args, blocks = arguments(original if original is not None else text)
    return simulate(parse_module(text, "kernel.mlir"), args, blocks=blocks, hazards=True, **options)


def sync_lines(text: str) -> list[int]:
    pattern = re.compile(r"set_flag\[|wait_flag\[|sync_block_set|sync_block_wait")
    return [number for number, line in enumerate(text.splitlines()) if pattern.search(line)]


def without(text: str, number: int) -> str:
    lines = text.splitlines()
    return "\n".join([*lines[:number], "", *lines[number + 1:]])


def is_noticed(broken: str, original: str) -> bool:
    """Whether the cores hang or hazards are found."""
    try:
        return bool(launched(broken, original).hazards)
    except TileError as error:
        return error.code in ("S301", "S302", "S303")


def cases() -> list[Any]:
    return [pytest.param(text, number, id=f"{name}:{number}-{text.splitlines()[number].split('hir.')[1][:60]}")
            for name, text in (("add", ADD), ("gemm", GEMM), ("mix", MIX), ("softmax", SOFTMAX)) for number in sync_lines(text)]


@pytest.mark.parametrize("text", [ADD, GEMM, MIX, SOFTMAX], ids=["add", "gemm", "mix", "softmax"])
def test_correct_modules_have_no_hazards(text: str) -> None:
    assert launched(text).hazards == []


@pytest.mark.parametrize(("text", "number"), cases())
def test_no_line_of_synchronisation_may_be_left_out(text: str, number: int) -> None:
    assert is_noticed(without(text, number), text)


def pair_lines(text: str) -> list[tuple[int, int]]:
    """A set followed at once by its wait."""
    lines = text.splitlines()
    return [(n, n + 1) for n in sync_lines(text)
            if "set_flag" in lines[n] and lines[n + 1].strip() == lines[n].strip().replace("set_flag", "wait_flag")]


@pytest.mark.parametrize(("text", "pair"), [(text, pair) for text in (ADD, GEMM, MIX, SOFTMAX) for pair in pair_lines(text)])
def test_a_missing_pair_is_a_race(text: str, pair: tuple[int, int]) -> None:
    hazards = launched(without(without(text, pair[0]), pair[1]), text).hazards
    assert {hazard.kind for hazard in hazards} & {"RAW", "WAR", "WAW"}


def test_a_race_names_both_sides() -> None:
    first = next(n for n, line in enumerate(ADD.splitlines()) if "set_flag[<PIPE_MTE2>, <PIPE_V>" in line)
    (hazard, *_) = launched(without(without(ADD, first), first + 1), ADD).hazards
    assert (hazard.code, hazard.kind, hazard.memory) == ("S201", "RAW", "UB")
    assert hazard.missing.startswith("an event MTE2 -> V between line ")
    assert (hazard.first.op, hazard.first.pipe, hazard.second.op, hazard.second.pipe) == ("load", "MTE2", "vadd", "V")
    lines = ADD.splitlines()
    assert "hivm.hir.load" in lines[hazard.first.location.line - 1]
    assert "hivm.hir.vadd" in lines[hazard.second.location.line - 1]
    assert (hazard.start, hazard.end) == (0, 8192)


def test_vector_ops_need_a_barrier_between_them() -> None:
    lines = SOFTMAX.splitlines()
    barrier = next(n for n, line in enumerate(lines) if line == texts.BARRIER)
    hazards = launched(without(SOFTMAX, barrier), SOFTMAX).hazards
    assert [(h.kind, h.first.op, h.second.op, h.missing.split()[0]) for h in hazards] == [
        ("RAW", "vreduce", "vsub", "pipe_barrier[PIPE_V]")]


def test_a_deadlock_between_cores_names_both() -> None:
    lines = MIX.splitlines()
    free = [n for n, line in enumerate(lines) if "sync_block_set[<VECTOR>" in line]
    with pytest.raises(TileError, match="S302") as raised:
        launched(without(MIX, free[-1]), MIX)
    error = raised.value
    assert error.location is not None
    assert error.message == "block 0: S of AIC waits for flag 1, which AIV0 and AIV1 never set again"
    assert any(re.search(r"AIC S .*flag 1  iteration 2  set twice, this is wait 3", note) for note in error.notes)
    assert any(re.search(r"AIV0 S and 1 more .*S of AIC sets it at line \d+, after the wait at", note) for note in error.notes)


def test_one_vector_core_that_does_not_set_is_named() -> None:
    guarded = MIX.replace(
        "    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts\n"
        + texts.sync("MTE2", "V"),
        "    %first_core = arith.cmpi eq, %si, %c0 : index\n    scf.if %first_core {\n"
        "    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts\n    }\n"
        + texts.sync("MTE2", "V"))
    assert guarded != MIX
    with pytest.raises(TileError, match="flag 1, which AIV1 never sets again"):
        launched(guarded, MIX)


def test_a_hang_inside_a_core_names_pipe_event_and_iteration() -> None:
    lines = GEMM.splitlines()
    setter = next(n for n, line in enumerate(lines) if "set_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID1>]" in line)
    with pytest.raises(TileError, match="S301") as raised:
        launched(without(GEMM, setter), GEMM)
    assert any("waits for EVENT_ID1 from MTE1 to MTE2  iteration 1" in note for note in raised.value.notes)


def test_an_event_set_twice_is_a_fault() -> None:
    lines = ADD.splitlines()
    setter = next(n for n, line in enumerate(lines) if "set_flag" in line)
    twice = "\n".join([*lines[:setter], lines[setter], lines[setter], lines[setter + 1], *lines[setter + 1:]])
    (hazard,) = launched(twice, ADD).hazards
    assert hazard.kind == "flag"
    assert "set again before it was waited for" in hazard.missing


def test_a_flag_left_over_is_a_fault() -> None:
    lines = ADD.splitlines()
    setter = next(n for n, line in enumerate(lines) if "set_flag" in line)
    extra = "    hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID3>]"
    (hazard,) = launched("\n".join([*lines[:setter], extra, *lines[setter:]]), ADD).hazards
    assert hazard.missing == "EVENT_ID3 for MTE2 is set and never waited for"


def test_too_many_outstanding_sets_overflow_the_counter() -> None:
    prime = "    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts\n"
    drain = "    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1\n"
    assert MIX.count(prime) == 3
    assert MIX.count(drain) == 3

    def faults(count: int) -> set[str]:
        text = MIX.replace(prime, prime * count, 1)
        before, last, after = text.rpartition(drain)
        launch = launched(before + last + drain * (count - 1) + after, MIX)
        assert any(hazard.memory == "GM" for hazard in launch.hazards)  # more credits than slots: the ring is overwritten
        return {hazard.missing for hazard in launch.hazards if hazard.kind == "flag"}

    assert faults(14) == set()  # 15 in all: the maximum of the counter
    assert faults(15) == {"flag 1 has more sets outstanding than it can count"}


def test_the_wait_may_stand_before_its_set_on_another_pipe() -> None:
    """V waits for MTE2 first, MTE2 sets later: the scalar unit issues both, nothing hangs."""
    text = ADD.replace(texts.sync("MTE2", "V"), texts.flags("set", "MTE2", "V", 0))
    lines = text.splitlines()
    load = next(n for n, line in enumerate(lines) if "hivm.hir.load" in line)
    early = "\n".join([*lines[:load], texts.flags("wait", "MTE2", "V", 0), *lines[load:]])
    assert launched(early, ADD).hazards == []


def test_a_set_that_was_held_back_is_raised_once() -> None:
    """A set by a pipe that was blocked wakes another blocked pipe, and occurs once in the order."""
    body = "\n".join([texts.flags("wait", "MTE2", "M", 0), texts.flags("set", "M", "MTE3", 0),
                      texts.flags("wait", "M", "MTE3", 0), texts.flags("set", "MTE3", "MTE1", 0),
                      texts.flags("wait", "MTE3", "MTE1", 0), texts.flags("set", "MTE2", "M", 0)])
    launch = simulate(parse_module(texts.module(texts.kernel("AIC", [], body))), [], blocks=1, hazards=True)
    assert launch.hazards == []


def test_interleaved_rows_are_apart() -> None:
    """Even and odd columns of one tile: their bounding ranges overlap, their bytes do not."""
    whole = f"memref<16x64xf32, {texts.UB}>"
    half = f"memref<16x32xf32, strided<[64, 1], offset: ?>, {texts.UB}>"
    still = f"memref<16x32xf32, strided<[64, 1]>, {texts.UB}>"
    out = f"memref<16x32xf32, {texts.GM}>"
    body = "\n".join([
        texts.tile("t", 0, "16x64", "f32"),
        "    %c0 = arith.constant 0.0 : f32", "    %c1 = arith.constant 1.0 : f32", "    %at = arith.constant 32 : index",
        texts.view("%left", "%t", "0, 0", "16, 32", whole, still), texts.view("%right", "%t", "0, %at", "16, 32", whole, half),
        f"    hivm.hir.vbrc ins(%c0 : f32) outs(%left : {still})", texts.sync("V", "MTE3"),
        f"    hivm.hir.vbrc ins(%c1 : f32) outs(%right : {half})",
        f"    hivm.hir.store ins(%left : {still}) outs(%O : {out})", "    hivm.hir.pipe_barrier[<PIPE_ALL>]"])
    text = texts.module(texts.kernel("AIV", [f"%O: {out}"], body))
    result = np.ones((16, 32), np.float32)
    assert simulate(parse_module(text), [result], blocks=1, hazards=True).hazards == []
    assert not result.any()
    clash = text.replace("%at = arith.constant 32", "%at = arith.constant 24")
    hazards = simulate(parse_module(clash), [result], blocks=1, hazards=True).hazards
    assert {hazard.kind for hazard in hazards} == {"WAW", "RAW"}


def test_the_two_vector_cores_of_a_block_meet() -> None:
    """FFTS mode 1: each core stores its number, both synchronise, each reads the other's number."""
    kind = f"memref<?x2xi64, {texts.GM}>"
    mode = "sync_instr_mode = <INTER_SUBBLOCK_SYNCHRONIZATION>"
    body = f"""    %one = arith.constant 1 : index
    %ten = arith.constant 10 : i64
    %b = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %b : i64 to index
    %s = hivm.hir.get_sub_block_idx -> i64
    %si = arith.index_cast %s : i64 to index
    %other = arith.subi %one, %si : index
    %mine = arith.addi %s, %ten : i64
    memref.store %mine, %A[%bi, %si] : {kind}
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_S>, <PIPE_S>] flag = 3 {mode}
    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_S>, <PIPE_S>] flag = 3
    %theirs = memref.load %A[%bi, %other] : {kind}
    memref.store %theirs, %B[%bi, %si] : {kind}"""
    args = [f"%A: {kind}", f"%B: {kind}"]
    text = texts.module(texts.kernel("AIC", args, "", "k_mix_aic"), texts.kernel("AIV", args, body, "k_mix_aiv"))
    a, b = np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64)
    assert simulate(parse_module(text), [a, b], blocks=3, hazards=True).hazards == []
    assert b.tolist() == [[11, 10]] * 3


def test_a_nearly_matching_set_is_reported() -> None:
    """The wait is for another event than the one that is set."""
    lines = ADD.splitlines()
    setter = next(n for n, line in enumerate(lines) if "set_flag[<PIPE_MTE2>, <PIPE_V>" in line)
    other = "    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID5>]"
    (hazard, *_) = launched("\n".join([*lines[:setter], other, lines[setter], *lines[setter + 2:]]), ADD).hazards
    assert hazard.near.startswith("EVENT_ID5 is set at line ")
    assert "race[S201]: UB bytes 0..8191" in str(hazard)


def test_two_stores_of_one_pipe_to_the_same_bytes_need_a_barrier() -> None:
    lines = ADD.splitlines()
    (store,) = [number for number, line in enumerate(lines) if "hir.store" in line]
    barrier = "hivm.hir.pipe_barrier[<PIPE_MTE3>]"
    twice = [*lines[:store + 1], lines[store], *lines[store + 1:]]
    (hazard,) = launched("\n".join(twice), ADD).hazards
    assert (hazard.kind, hazard.memory, hazard.missing.split()[0]) == ("WAW", "GM", "pipe_barrier[PIPE_MTE3]")
    assert launched("\n".join([*twice[:store + 1], barrier, *twice[store + 1:]]), ADD).hazards == []


def flags_only(*lines: str) -> str:
    """A Vector kernel of ``set MTE2 V 0`` and ``wait MTE2 V 0``; the first is at line 3."""
    words = [line.split() for line in lines]
    return texts.module(texts.kernel("AIV", [], "\n".join(texts.flags(*names, int(event)) for *names, event in words)))


def test_a_second_set_after_the_wait_for_the_first_is_valid() -> None:
    """In program order the event is set twice in a row, but MTE2 continues only when V has waited for the first set."""
    text = flags_only("set MTE2 V 0", "wait V MTE2 1", "set MTE2 V 0", "wait MTE2 V 0", "set V MTE2 1", "wait MTE2 V 0")
    assert simulate(parse_module(text), [], blocks=1, hazards=True).hazards == []
    unordered = flags_only("set MTE2 V 0", "set MTE2 V 0", "wait MTE2 V 0", "wait MTE2 V 0")
    (hazard,) = simulate(parse_module(unordered), [], blocks=1, hazards=True).hazards
    assert hazard.code == "S212"
    assert hazard.second is not None
    assert hazard.near == "AIV0 waits for EVENT_ID0 2 times, the last at line 6"


def test_the_wait_that_consumes_a_left_over_event_is_named() -> None:
    text = flags_only("set MTE2 V 0", "set MTE2 V 1", "wait MTE2 V 1")
    (hazard,) = simulate(parse_module(text), [], blocks=1, hazards=True).hazards
    assert hazard.code == "S211"
    assert hazard.near == ("it stays set after the block; AIV0 never waits for EVENT_ID0; "
                           "it waits for another event of these pipes at line 5")


@pytest.mark.parametrize(("line", "message"), [
    ("    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %e]", "event 8 does not exist: a pair of pipes has 8 events"),
    ("    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = %e",
     "cross-core flag 99 does not exist: there are 16 flags"),
])
def test_a_number_that_only_the_run_knows_is_in_range(line: str, message: str) -> None:
    text = texts.module(texts.kernel("AIV", ["%e: i64"], line))
    number = 8 if message.startswith("event") else 99
    with pytest.raises(TileError, match=re.escape(message)) as raised:
        simulate(parse_module(text), [number], blocks=1)
    assert raised.value.code == "T505"
    assert raised.value.location is not None


@pytest.mark.parametrize(("mode", "orders"), [("BARRIER_VECTOR", True), ("BARRIER_CUBE", False)])
def test_a_barrier_of_a_core_orders_its_own_pipes_where_the_core_is_of_its_kind(mode: str, *, orders: bool) -> None:
    inside, outside = f"memref<256xf32, {texts.UB}>", f"memref<256xf32, {texts.GM}>"
    barrier = f"    hivm.hir.sync_block[<{mode}>]"
    body = "\n".join([texts.tile("t", 0, "256", "f32"), f"    hivm.hir.load ins(%X : {outside}) outs(%t : {inside})", barrier,
                      f"    hivm.hir.vadd ins(%t, %t : {inside}, {inside}) outs(%t : {inside})", barrier,
                      f"    hivm.hir.store ins(%t : {inside}) outs(%Y : {outside})"])
    text = texts.module(texts.kernel("AIV", [f"%X: {outside}", f"%Y: {outside}"], body))
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    launch = simulate(parse_module(text), [x, y], blocks=1, hazards=True)
    assert np.array_equal(y, 2 * x)
    assert bool(launch.hazards) != orders
