"""``sim``: a dumped kernel runs from its file alone and gives the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def dumped(tool, script: Path, tmp_path: Path) -> Path:
    assert tool("run", script, "--mlir", tmp_path / "out").code == 0
    return tmp_path / "out" / "twice.mlir"


def test_arrays_from_files(tool, dumped: Path, tmp_path: Path) -> None:
    a = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.zeros_like(a))
    done = tool("sim", dumped, "--args", tmp_path / "a.npy", tmp_path / "b.npy", "--save", tmp_path / "after")
    assert done.code == 0, done.err
    assert done.out.startswith("twice ")
    np.testing.assert_array_equal(np.load(tmp_path / "after" / "B.npy"), a + a)


@pytest.mark.parametrize("names", [("A", "B"), ("arr_0", "arr_1")])
def test_arrays_from_an_archive(tool, dumped: Path, tmp_path: Path, names: tuple[str, str]) -> None:
    a = np.ones((32, 64), np.float32)
    np.savez(tmp_path / "all.npz", **dict(zip(names, (a, np.zeros_like(a)), strict=True)))
    assert tool("sim", dumped, "--npz", tmp_path / "all.npz", "--save", tmp_path).code == 0
    assert (np.load(tmp_path / "B.npy") == 2).all()


def test_made_up_arrays_depend_on_the_seed_alone(tool, dumped: Path, tmp_path: Path) -> None:
    for seed, place in ((1, "x"), (1, "y"), (2, "z")):
        assert tool("sim", dumped, "--seed", seed, "--save", tmp_path / place).code == 0
    x, y, z = (np.load(tmp_path / place / "B.npy") for place in "xyz")
    np.testing.assert_array_equal(x, y)
    assert (x != z).any()
    np.testing.assert_array_equal(np.load(tmp_path / "x" / "A.npy") * 2, x)


def test_fewer_blocks(tool, dumped: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32))
    assert tool("sim", dumped, "--npz", tmp_path / "all.npz", "--blocks", 1, "--save", tmp_path).code == 0
    assert 0 < (np.load(tmp_path / "B.npy") == 2).sum() < 32 * 64


def test_mistakes(tool, dumped: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((32, 64)))
    wrong = tool("sim", dumped, "--args", tmp_path / "wide.npy", tmp_path / "wide.npy")
    assert wrong.code == 1
    assert "error[T808]: A has elements of float32; the file has float64" in wrong.err
    assert "takes 2 arguments and got 1" in tool("sim", dumped, "--args", tmp_path / "wide.npy").err
    (tmp_path / "text.npy").write_text("no array")
    assert "text.npy holds no array" in tool("sim", dumped, "--args", tmp_path / "text.npy", tmp_path / "text.npy").err
    text = dumped.read_text()
    dumped.write_text("\n".join(line.replace("hacc.block_dim", "hacc.other") for line in text.splitlines()))
    assert tool("sim", dumped).code == 1


def test_another_order_shows_the_wait_that_is_missing(tool, dumped: Path, tmp_path: Path) -> None:
    text = dumped.read_text()
    waits = [line for line in text.split("\n") if "wait_flag[<PIPE_MTE2>, <PIPE_V>" in line]
    (tmp_path / "without.mlir").write_text(text.replace(waits[0] + "\n", "", 1))
    for file, right in ((dumped, True), (tmp_path / "without.mlir", False)):
        assert tool("sim", file, "--schedule", "late", "--save", tmp_path).code == 0
        a, b = (np.load(tmp_path / f"{name}.npy") for name in "AB")
        assert np.array_equal(b, a + a) == right
    assert "T413" in tool("sim", dumped, "--schedule", "sometimes").err


def test_a_kernel_without_a_grid_among_its_arguments(tool, tmp_path: Path) -> None:
    """Foreign files need not end in the three sizes of the grid."""
    gm = "memref<8xi32, #hivm.address_space<gm>>"
    (tmp_path / "plain.mlir").write_text(
        f"func.func @k(%A: {gm}) attributes {{hacc.entry, hacc.block_dim = 1 : i64, hacc.function_kind = "
        "#hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {\n"
        "  %c0 = arith.constant 0 : index\n  %seven = arith.constant 7 : i32\n"
        f"  memref.store %seven, %A[%c0] : {gm}\n  return\n}}\n")
    done = tool("sim", tmp_path / "plain.mlir", "--save", tmp_path)
    assert done.code == 0, done.err
    assert np.load(tmp_path / "A.npy")[0] == 7


COPY = """\
func.func @{name}(%A: memref<64xf32, #hivm.address_space<gm>>, %B: memref<64xf32, #hivm.address_space<gm>>)
    attributes {{{marks}hivm.func_core_type = #hivm.func_core_type<AIV>}} {{
  %zero = arith.constant 0 : i64
  %x = hivm.hir.pointer_cast(%zero) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%A : memref<64xf32, #hivm.address_space<gm>>) outs(%x : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
  hivm.hir.store ins(%x : memref<64xf32, #hivm.address_space<ub>>) outs(%B : memref<64xf32, #hivm.address_space<gm>>)
  return
}}
"""


def copy(name: str, marks: str = "hacc.entry, ") -> str:
    return COPY.format(name=name, marks=marks)


def test_each_module_of_a_split_file_runs_by_itself(tool, tmp_path: Path) -> None:
    file = tmp_path / "parts.mlir"
    file.write_text("// a comment\n// -----\n" + copy("first") + "// -----\n\n// -----\n" + copy("second"))
    assert tool("sim", file).code == 0, "without the option, the parts are one module of two kernels"
    done = tool("sim", file, "--split-input-file", "--sanitize")
    assert done.code == 0, done.err
    first, second = done.out.split("\n// -----\n")
    assert "1 block" in first
    assert "1 block" in second

    racy = copy("second").replace("  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]\n", "")
    file.write_text(copy("first") + "// -----\n" + racy)
    done = tool("sim", file, "--split-input-file", "--sanitize", "--report", tmp_path / "findings.json")
    assert done.code == 1
    first, second = done.out.split("\n// -----\n")
    assert "S201" not in first
    assert "S201" in second
    lines = file.read_text().splitlines()
    store = max(number for number, line in enumerate(lines, 1) if "hivm.hir.store" in line)
    assert f"parts.mlir:{store}" in second, "lines are those of the file"
    assert '"S201"' in (tmp_path / "findings.json").read_text()

    refused = tool("sim", file, "--split-input-file", "--save", tmp_path / "out")
    assert "error[T417]: --save writes the results of one module" in refused.err


def test_a_function_that_is_not_marked_is_chosen_by_its_name(tool, tmp_path: Path) -> None:
    file = tmp_path / "unmarked.mlir"
    file.write_text(copy("one", "") + copy("two", ""))
    for command in ("sim", "check"):
        refused = tool(command, file)
        assert refused.code == 1
        assert "error[T508]: no function of the module is marked as a kernel (hacc.entry)" in refused.err
        assert "its device functions: one, two" in refused.err
        assert "choose one with --kernel one" in refused.err
        assert tool(command, file, "--kernel", "two").code == 0
    assert "error[T508]: there is no kernel three" in tool("sim", file, "--kernel", "three").err
    a = np.arange(64, dtype=np.float32)
    np.savez(tmp_path / "all.npz", a, np.zeros(64, np.float32))
    assert tool("sim", file, "--kernel", "two", "--npz", tmp_path / "all.npz", "--save", tmp_path).code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "B.npy"), a)
