"""Whole kernels: values compared with NumPy, and the properties of a launch."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator import texts
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.simulator import Launch, Program, simulate
from tilelang_npu.simulator.machine.op_records import replay


def run(text: str, args: list[Any], blocks: int, **options: Any) -> Launch:
    return simulate(parse_module(text), args, blocks=blocks, **options)


def mix_arguments(rng: np.random.Generator, count: int, side: int = 64) -> list[np.ndarray]:
    a, b = (rng.standard_normal((count, side, side)).astype(np.float16) for _ in range(2))
    d = rng.standard_normal((count, side, side)).astype(np.float32)
    return [a, b, d, np.full_like(d, np.nan)]


def mix_expected(a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0) + d


@pytest.mark.parametrize("n", [1, 7, 2047, 2048, 2049, 5000, 6144])
def test_add_with_tails(rng: np.random.Generator, n: int) -> None:
    a, b = rng.standard_normal((2, n)).astype(np.float32)
    c = np.full(n, np.nan, np.float32)
    launch = run(texts.add_tiles(), [a, b, c, n], -(-n // 2048), hazards=True)
    np.testing.assert_array_equal(c, a + b)
    assert launch.writes(2).all()
    assert not launch.writes(0).any()
    assert launch.hazards == []


def test_a_part_that_no_block_writes_shows(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 5000)).astype(np.float32)
    c = np.zeros(5000, np.float32)
    written = run(texts.add_tiles(), [a, b, c, 5000], 2).writes(2)
    assert written[:4096].all()
    assert not written[4096:].any()


@pytest.mark.parametrize("tiles", [1, 3])
def test_softmax(rng: np.random.Generator, tiles: int) -> None:
    x = rng.standard_normal((48, 256)).astype(np.float32)
    y = np.full_like(x, np.nan)
    launch = run(texts.row_softmax(256, 8, tiles), [x, y], 6 // tiles, hazards=True)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-6)
    assert launch.hazards == []
    assert launch.writes(1).all()


@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16])
def test_gemm(rng: np.random.Generator, element: Any) -> None:
    a = rng.standard_normal((256, 192)).astype(element)
    b = rng.standard_normal((192, 256)).astype(element)
    c = np.zeros((256, 256), element)
    name = "f16" if element is np.float16 else "bf16"
    launch = run(texts.gemm(256, 256, 192, element=name), [a, b, c], 4, hazards=True)
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(element)
    np.testing.assert_allclose(c.astype(np.float32), expected.astype(np.float32), rtol=0.01, atol=0.02)
    assert launch.hazards == []
    assert launch.writes(2).all()


@pytest.mark.parametrize("tiles", [0, 1, 2, 5])
def test_mixed_kernel(rng: np.random.Generator, tiles: int) -> None:
    args = mix_arguments(rng, 3 * max(tiles, 1))
    launch = run(texts.scaled_product(), [*args, tiles], 3, hazards=True)
    if tiles:
        np.testing.assert_allclose(args[3], mix_expected(*args[:3]), rtol=1e-5, atol=1e-5)
        assert launch.writes(3).all()
    assert launch.hazards == []


def test_the_order_of_blocks_does_not_matter(rng: np.random.Generator) -> None:
    args = mix_arguments(rng, 8)
    first = run(texts.scaled_product(), [*args, 2], 4)
    for order in (7, [3, 1, 0, 2]):
        again = [*args[:3], np.full_like(args[3], np.nan)]
        launch = run(texts.scaled_product(), [*again, 2], 4, order=order)
        np.testing.assert_array_equal(again[3], args[3])
        assert launch.cycles == first.cycles


@pytest.mark.parametrize("generic", [False, True])
def test_a_printed_module_runs_the_same(rng: np.random.Generator, generic: bool) -> None:
    args = mix_arguments(rng, 4)
    module = parse_module(texts.scaled_product())
    first = simulate(module, [*args, 2], blocks=2)
    again = [*args[:3], np.full_like(args[3], np.nan)]
    second = simulate(parse_module(print_module(module, generic=generic)), [*again, 2], blocks=2)
    np.testing.assert_array_equal(again[3], args[3])
    assert (second.cycles, second.pipes) == (first.cycles, first.pipes)


def test_a_program_runs_again_and_again(rng: np.random.Generator) -> None:
    program = Program(parse_module(texts.add_tiles()), "910B1")
    a, b = rng.standard_normal((2, 3000)).astype(np.float32)
    for n in (3000, 100):
        c = np.zeros(n, np.float32)
        simulate(program, [a[:n], b[:n], c, n], blocks=2 if n > 2048 else 1)
        np.testing.assert_array_equal(c, a[:n] + b[:n])


def test_arguments_may_be_the_same_array(rng: np.random.Generator) -> None:
    a = rng.standard_normal(2048).astype(np.float32)
    expected = a + a
    run(texts.add_tiles(), [a, a, a, 2048], 1)
    np.testing.assert_array_equal(a, expected)


def test_equal_blocks_are_timed_once(rng: np.random.Generator) -> None:
    a = rng.standard_normal((1024, 64)).astype(np.float16)
    b = rng.standard_normal((64, 1024)).astype(np.float16)
    launch = run(texts.gemm(1024, 1024, 64), [a, b, np.zeros((1024, 1024), np.float16)], 64)
    assert (launch.blocks, launch.waves, launch.cores) == (64, 3, 24)
    assert sorted((group.width, group.count, group.lockstep) for group in launch.groups) == [
        (16, 16, False), (24, 48, False)]


def test_summary(rng: np.random.Generator) -> None:
    args = mix_arguments(rng, 4)
    launch = run(texts.scaled_product(), [*args, 4], 1)
    lines = launch.summary("mix").splitlines()
    assert lines[0].startswith("mix  1 block on 1 core")
    assert "Ascend910B2, warm L2, modelled" in lines[0]
    assert "TFLOP/s" in lines[1]
    assert "bound by" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == ["of", "AIC", "AIV", "memory", "next"]
    assert "L1 16 of 512   L0A 16 of 64   L0B 16 of 64   L0C 16 of 128   UB 16 of 192" in lines[5].replace(" KB", "")
    assert re.fullmatch(r"  next      launch overhead is \d+% of the time: give the launch more work, or .*", lines[6])
    assert launch.memory == {"L1": 16384, "L0C": 16384, "L0A": 16384, "L0B": 16384, "UB": 16384}


def test_trace(rng: np.random.Generator) -> None:
    args = mix_arguments(rng, 4)
    launch = run(texts.scaled_product(), [*args, 4], 1)
    events = launch.trace()["traceEvents"]
    named = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {"core 0 AIC", "core 0 AIV0", "core 0 AIV1", "launch"}
    slices = [event for event in events if event["ph"] == "X" and event["cat"] == "pipe"]
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in slices:
        tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        assert all(end <= start + 1e-9 for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert max(end for spans in tracks.values() for _, end in spans) <= launch.chip.microseconds(launch.cycles) + 1e-3
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert processes == {0: "core 0 AIC", 1: "core 0 AIV0", 2: "core 0 AIV1", 3: "launch"}
    assert {pid for pid, _ in tracks} == {0, 1, 2}
    load = next(event for event in slices if event["name"].startswith("nd2nz"))
    assert load["args"]["bytes"] == 64 * 64 * 2
    assert any("waited for" in event["args"] for event in slices)


def test_events_tell_every_access(rng: np.random.Generator) -> None:
    """From the two lists of a core: pipe, memory, bytes, direction, line and iteration of each access."""
    x = rng.standard_normal((24, 256)).astype(np.float32)
    text = texts.row_softmax(256, 8, 3)
    recorded = Program(parse_module(text, "kernel.mlir")).run([x, np.zeros_like(x)], blocks=1)
    (block,), (function,) = recorded.blocks, recorded.program.functions
    executed = list(replay(function.records, block.streams[0], block.gm[0]))
    loads = [one for one in executed if one.record.mnemonic == "load"]
    assert [one.iteration for one in loads] == [0, 1, 2]
    size = 8 * 256 * 4
    for turn, one in enumerate(loads):
        (source, there), (target, here) = one.footprints()
        assert (source.memory, source.buffer, source.reads, source.writes, source.pipe) == ("gm", 0, True, False, "MTE2")
        assert (there.offset, there.sizes, there.strides, there.nbytes) == (turn * size, (8, 256), (1024, 4), size)
        assert (target.memory, target.reads, target.writes, here.offset, here.nbytes) == ("ub", False, True, 0, size)
        assert one.record.location is not None
        assert "hivm.hir.load" in text.splitlines()[one.record.location.line - 1]
    stores = [one for one in executed if one.record.mnemonic == "store"]
    assert [one.footprints()[1][1].offset for one in stores] == [0, size, 2 * size]


def test_next_names_the_line_whose_elements_keep_the_scalar_unit_busy() -> None:
    @T.prim_func
    def counted(X: T.Tensor((512,), "int32"), H: T.Tensor((16,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((512,), "int32")
            h = T.alloc_shared((16,), "int32")
            T.copy(X, x)
            T.clear(h)
            for i in T.serial(512):
                h[x[i]] = h[x[i]] + 1
            T.copy(h, H)

    kernel = tilelang.compile(counted, target="npuir")
    kernel(np.zeros(512, np.int32), np.zeros(16, np.int32))
    (launch,) = kernel.last_launch.parts
    last = launch.summary("counted").splitlines()[-1]
    assert re.match(r"  next      line \d+ `h\[x\[i\]\] = .*` is \d+% of the critical path, and the scalar unit is busy", last)
