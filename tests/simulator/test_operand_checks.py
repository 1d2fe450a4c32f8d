"""The memories that the operands of an op may be in, and its core: written independently, from the manuals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.target import chip

SPACES = ("gm", "ub", "cbuf", "ca", "cb", "cc")
WORDS = {"gm": "GM", "ub": "UB", "cbuf": "L1", "ca": "L0A", "cb": "L0B", "cc": "L0C"}
SHAPE = {"gm": "16x16", "ub": "16x16"}
NUMBERS = """    %p = arith.constant true
    %n = arith.constant 16 : index
    %one = arith.constant 1.0 : f16
    %zero = arith.constant 0 : i64
"""

# Per op: its text, with {operand}s and {operand:type}s; its core; the memories of its operands, in each row one that it can do.
OPS: dict[str, tuple[str, str, dict[str, str], list[tuple[str, ...]]]] = {
    "vadd": ("hivm.hir.vadd ins({x}, {y} : {x!t}, {y!t}) outs({z} : {z!t})", "AIV",
             {"x": "f16", "y": "f16", "z": "f16"}, [("ub", "ub", "ub")]),
    "vexp": ("hivm.hir.vexp ins({x} : {x!t}) outs({z} : {z!t})", "AIV", {"x": "f16", "z": "f16"}, [("ub", "ub")]),
    "vtranspose": ("hivm.hir.vtranspose ins({x} : {x!t}) outs({z} : {z!t}) permutation = [1, 0]", "AIV",
                   {"x": "f16", "z": "f16"}, [("ub", "ub")]),
    "load": ("hivm.hir.load ins({x} : {x!t}) outs({z} : {z!t})", "", {"x": "f16", "z": "f16"},
             [("gm", "ub"), ("gm", "cbuf"), ("gm", "ca"), ("gm", "cb")]),
    "store": ("hivm.hir.store ins({x} : {x!t}) outs({z} : {z!t})", "AIV", {"x": "f16", "z": "f16"}, [("ub", "gm")]),
    "copy": ("hivm.hir.copy ins({x} : {x!t}) outs({z} : {z!t})", "", {"x": "f16", "z": "f16"},
             [("gm", "ub"), ("gm", "cbuf"), ("ub", "gm"), ("ub", "ub")]),
    "nd2nz": ("hivm.hir.nd2nz {{dst_continuous}} ins({x} : {x!t}) outs({z} : {z!t})", "AIC", {"x": "f16", "z": "f16"},
              [("gm", "cbuf")]),
    "nz2nd": ("hivm.hir.nz2nd ins({x} : {x!t}) outs({z} : {z!t})", "AIC", {"x": "f16", "z": "f16"}, [("cbuf", "gm")]),
    "fixpipe": ("hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>}} ins({x} : {x!t}) outs({z} : {z!t})", "AIC",
                {"x": "f32", "z": "f32"}, [("cc", "gm"), ("cc", "cbuf")]),
    "mmadL1": ("hivm.hir.mmadL1 ins({a}, {b}, %p, %n, %n, %n : {a!t}, {b!t}, i1, index, index, index) outs({c} : {c!t})",
               "AIC", {"a": "f16", "b": "f16", "c": "f32"}, [("cbuf", "cbuf", "cc")]),
    "load_l0a": ('hivm.hir.custom {{hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = #hivm.tcore_type<CUBE>, '
                 'symbol = "load_l0a"}} "load_l0a" ins({x} : {x!t}) outs({z} : {z!t})', "AIC", {"x": "f16", "z": "f16"},
                 [("cbuf", "ca")]),
    "mma": ('hivm.hir.custom {{hivm.pipe = #hivm.pipe<PIPE_M>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "mma"}} '
            '"mma" ins({a}, {b}, %p, %n, %n, %n : {a!t}, {b!t}, i1, index, index, index) outs({c} : {c!t})', "AIC",
            {"a": "f16", "b": "f16", "c": "f32"}, [("ca", "cb", "cc")]),
    "vbrc": ("hivm.hir.vbrc ins(%one : f16) outs({z} : {z!t})", "", {"z": "f16"}, [("ub",), ("cbuf",)]),
}
OWNER = {"ub": "AIV", "cbuf": "AIC", "ca": "AIC", "cb": "AIC", "cc": "AIC"}


class _Operand:
    """An operand in the text: its name, or with ``!t`` its type."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def __format__(self, spec: str) -> str:
        return f"%{self.name}"

    def __repr__(self) -> str:
        return self.kind


def _module(core: str, op: str, spaces: tuple[str, ...]) -> str:
    text, _, operands, _ = OPS[op]
    lines, parts = [NUMBERS], {}
    for place, ((name, element), space) in enumerate(zip(operands.items(), spaces, strict=True)):
        shape = SHAPE.get(space, "1x1x16x16")
        if op in ("vadd", "vexp", "vtranspose", "load", "store", "copy", "vbrc", "load_l0a"):
            shape = "16x16"
        kind = f"memref<{shape}x{element}, #hivm.address_space<{space}>>"
        parts[name] = _Operand(name, kind)
        if space != "gm":
            lines.append(texts.tile(name, 2048 * place, shape, element, f"#hivm.address_space<{space}>") + "\n")
        else:
            lines.append(f"    %{name} = memref.cast %g{name} : {kind} to {kind}\n")
    lines.append("    " + text.replace("!t", "!r").format(**parts))
    args = [texts.gm(f"g{name}", "16x16", element) if space == "gm" else texts.gm(f"g{name}", "16", element)
            for (name, element), space in zip(operands.items(), spaces, strict=True)]
    return texts.module(texts.kernel(core, args, "".join(lines)))


def _every(op: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields both cores, and memories of the operands: valid ones with one changed, and all in the same memory."""
    _, _, operands, right = OPS[op]
    near = {(*row[:place], space, *row[place + 1:]) for row in right for place in range(len(operands)) for space in SPACES}
    alike = {(space,) * len(operands) for space in SPACES}
    return itertools.product(("AIC", "AIV"), sorted(near | alike))


def _refused(text: str) -> TileError | None:
    """Returns the error of a module; None if it is a valid program."""
    try:
        Program(parse_module(text, "kernel.mlir"))
    except TileError as error:
        return error
    return None


@pytest.mark.parametrize("op", OPS)
def test_an_op_runs_exactly_where_its_core_and_its_paths_are(op: str) -> None:
    _, owner, _, right = OPS[op]
    tried = list(_every(op))
    possible = {(core, spaces) for core, spaces in tried
                if spaces in right and owner in ("", core) and all(OWNER.get(space, core) == core for space in spaces)}
    assert len(possible) == len(right)
    output = {case: _refused(_module(case[0], op, case[1])) for case in tried}
    assert {case for case, error in output.items() if error is None} == possible
    for (core, spaces), error in output.items():
        if error is not None:
            report = f"{core} {spaces}: {error}"
            assert error.code in ("T503", "T504", "T602"), report  # T602 if the toolchain's verifier also rejects it
            assert error.location is not None and "hivm.hir." in error.message, report
            if error.code == "T503":
                assert any(WORDS[space] in report for space in spaces), report
                lacks = re.search(r"an (AI[CV]) has no (\w+)", error.help or "")
                if lacks is not None:  # only for a memory of the other core
                    assert (lacks[1], lacks[2]) in {(core, WORDS[space]) for space in spaces
                                                    if OWNER.get(space, core) != core}, report


def _faults(text: str) -> tuple[str, str, int]:
    """Returns the common errors of a run and a check: code, message, line."""
    report = []
    args = [np.zeros((128, 128), np.float16) for _ in range(3)]
    for work in (lambda program: program.run(args, blocks=1), lambda program: check(program, args, 1)):
        with pytest.raises(TileError) as raised:
            work(Program(parse_module(text, "kernel.mlir")))
        error = raised.value
        assert error.location is not None
        report.append((error.code, error.message, error.location.line))
    assert report[0] == report[1]
    return report[0]


@pytest.mark.parametrize(("space", "code", "words"), [
    ("cbuf", "T503", "no path from GM to UB for hivm.hir.nd2nz of an AIC"),
    ("cc", "T503", "of hivm.hir.mmadL1 is in UB: pipe M of Ascend910B2 needs it in L0C")])
def test_a_product_out_of_ub_is_refused_and_was_computed(space: str, code: str, words: str) -> None:
    text = texts.gemm(128, 128, 128)
    Program(parse_module(text))
    wrong = text.replace(f"#hivm.address_space<{space}>", "#hivm.address_space<ub>")
    found, message, line = _faults(wrong)
    assert found == code
    assert words in message
    assert ("nd2nz" if space == "cbuf" else "mmadL1") in wrong.splitlines()[line - 1]


def test_vector_work_in_a_function_of_the_cube_core_is_refused_and_ran() -> None:
    text = texts.add_tiles().replace("func_core_type<AIV>", "func_core_type<AIC>")
    assert _faults(text)[:2] == ("T503", "Ascend910B2 has no path from GM to UB for hivm.hir.load of an AIC")
    lines = [line for line in text.splitlines() if "hivm.hir.load" not in line and "_flag" not in line]
    assert _faults("\n".join(lines))[:2] == ("T504", "hivm.hir.vadd runs on pipe V, which an AIC does not have")
    error = _refused("\n".join(lines))
    assert error is not None
    assert error.help == ("an AIC has S, M, MTE1, MTE2, MTE3, FIX; an AIV has V: put the op in a function of "
                          "hivm.func_core_type<AIV>")


def test_a_function_of_one_core_by_its_name_and_of_the_other_by_its_attribute() -> None:
    text = texts.add_tiles().replace("func.func @k(", "func.func @k_mix_aiv(")
    Program(parse_module(text))
    code, message, line = _faults(text.replace("func_core_type<AIV>", "func_core_type<AIC>"))
    assert (code, line) == ("T512", 2)
    assert "k_mix_aiv is a function of the AIV by its name" in message


def test_an_argument_on_chip_is_refused_and_was_taken_for_one_in_gm() -> None:
    kind = f"memref<64xf32, {texts.UB}>"
    body = f"    hivm.hir.vadd ins(%x, %x : {kind}, {kind}) outs(%x : {kind})"
    error = _refused(texts.module(texts.kernel("AIV", [f"%x: {kind}"], body)))
    assert error is not None
    assert (error.code, error.message) == ("T503", "argument x of k is in UB: tensor arguments must be in GM")


def test_a_path_to_the_memory_of_another_core_is_no_run_that_loses_data() -> None:
    """On the 950 there is a path from L0C to UB, which a kernel of the Cube core alone does not have."""
    text = _module("AIC", "fixpipe", ("cc", "ub")).replace("Ascend910B2", "Ascend910_9589")
    with pytest.raises(TileError, match="fixpipe accesses UB of an AIV") as raised:
        Program(parse_module(text))
    assert raised.value.code == "T503"


def test_a_chip_with_one_path_more_is_one_row_more() -> None:
    """A5 has no way from GM to L0A, as A2 has; a row in its table is all that it lacks."""
    module = parse_module(_module("AIC", "load", ("gm", "ca")).replace("Ascend910B2", "Ascend910_9589"))
    a2, a5 = chip("910B2"), chip("910_95")
    with pytest.raises(TileError, match=r"Ascend910_95 has no path from GM to L0A for hivm\.hir\.load of an AIC"):
        Program(module, a5)
    program = Program(module, replace(a5, paths={**a5.paths, "gm_l0a": a2.paths["gm_l0a"]}))
    x = np.arange(256, dtype=np.float16).reshape(16, 16)
    recorded = program.run([x, np.zeros(16, np.float16)], blocks=1)
    assert Launch(recorded).cycles == pytest.approx(a2.moves["gm_l0a"].fixed + 512 / a2.moves["gm_l0a"].rate, rel=0.2)
