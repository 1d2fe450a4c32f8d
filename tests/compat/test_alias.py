"""``import tilelang`` means this package where, and only where, the alias is installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import tilelang_npu
import tilelang_npu.language
from tilelang_npu import compat
from tilelang_npu.compat.tvm import tir


def test_nothing_is_installed_by_importing(python: str) -> None:
    program = "import sys, tilelang_npu, tilelang_npu.compat; sys.exit('tilelang' in sys.modules or len(sys.meta_path) > 6)"
    assert subprocess.run([python, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("alias", "real"),
    [("tilelang", "tilelang_npu"), ("tilelang.language", "tilelang_npu.language"),
     ("tilelang.ascend.language", "tilelang_npu.language"), ("tilelang.ascend.language.vmi", "tilelang_npu.language.vmi"),
     ("tilelang.math", "tilelang_npu.math"),
     ("tilelang.cache", "tilelang_npu.runtime.cache.entries"), ("tilelang.profiler", "tilelang_npu.runtime.reports.profiler")],
)
def test_an_alias_is_the_module_itself(alias: str, real: str) -> None:
    compat.install()
    module = importlib.import_module(alias)
    assert module is importlib.import_module(real)
    assert module.__name__ == real
    assert module.__spec__ is not None
    assert module.__spec__.name == real


@pytest.mark.parametrize(
    "statement",
    ["from tilelang import language as T", "from tilelang import DataType, language as T", "import tilelang.language as T",
     "from tilelang.utils.target import determine_platform", "from tilelang.utils.tensor import TensorSupplyType",
     "from tilelang.profiler import do_bench", "from tilelang.cache import clear_cache", "from tilelang.engine import lower",
     "from tilelang.transform import PassConfigKey", "from tilelang import carver; import tilelang.testing",
     "from tilelang.carver.arch.ascend import Ascend", "from tilelang.utils.npu_arch import AscendArch",
     "from tilelang.carver.anneal.policy import AnnealTemplate, Annealparam", "import tvm; tvm.TVMError",
     "from tilelang.autotuner import AutoTuner, autotune",
     "from tilelang.language.fp8 import determine_fp8_type, determine_torch_fp8_type",
     "from tilelang.utils import NPUUtils", "from tilelang.intrinsics import make_zn_layout, make_nz_layout",
     "from tilelang.layout import make_swizzled_layout", "import tilelang.layout as layout; layout.make_swizzled_layout",
     "import tilelang; tilelang.tvm.tir; tilelang.autotune; tilelang.lower; tilelang.engine", "import tilelang.engine",
     "import tilelang.ascend.language as T; T.vmi.vload", "from tilelang.ascend import language as T",
     "from tilelang.ascend.language import vmi; vmi.vadd",
     "from tilelang.jit import JITKernel, compile, jit; from tilelang.jit.kernel import JITKernel as K; assert JITKernel is K"
     " and jit.JITKernel is K and compile is jit.compile",
     "import tilelang, tilelang.jit; from tilelang import jit; assert tilelang.jit is jit and callable(jit.compile)",
     "from tilelang.autotuner.capture import set_autotune_inputs; from tilelang.autotuner.param import AutotuneResult",
     "from tilelang.autotuner.tuner import AutoTuner, autotune", "from tilelang.transform.pass_config import PassConfigKey",
     "from tilelang.transform.simplify import apply_simplify; assert apply_simplify(3) == 3",
     "from tilelang import env; env.env.is_cache_enabled()",
     "from tilelang.env import env, is_cache_enabled, TILELANG_CACHE_DIR",
     "import tilelang as tl; tl.cache.clear_cache(); tl.jit; tl.cdiv(3, 2)"],
)
def test_imports_that_scripts_use(statement: str) -> None:
    compat.install()
    exec(statement, {})


def test_a_part_that_is_not_here_says_so() -> None:
    compat.install()
    with pytest.raises(ModuleNotFoundError, match=r"tilelang\.rocm.*tilelang_npu does not have this part"):
        importlib.import_module("tilelang.rocm")


def test_a_package_that_is_a_function_here_says_what_is_missing_below_it() -> None:
    compat.install()
    with pytest.raises(ModuleNotFoundError, match=r"tilelang\.jit\.adapter\.libgen.*generates no AscendC or PTO text"):
        patch("tilelang.jit.adapter.libgen.LibraryGenerator.compile_lib").start()
    assert callable(importlib.import_module("tilelang").jit)
    with pytest.raises(ModuleNotFoundError, match=r"tilelang\.jit\.adapter'.*generates no AscendC or PTO text"):
        importlib.import_module("tilelang.jit.adapter")


def test_uninstalling_takes_the_name_back() -> None:
    compat.install()
    compat.install()
    importlib.import_module("tilelang")
    compat.uninstall()
    assert "tilelang" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilelang")


def test_a_real_tilelang_is_hidden_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tilelang").mkdir()
    (tmp_path / "tilelang" / "__init__.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert compat.installed_elsewhere() == str(tmp_path / "tilelang" / "__init__.py")
    assert importlib.import_module("tilelang").real
    compat.install()
    assert importlib.import_module("tilelang") is tilelang_npu


@pytest.mark.parametrize("mode", ["sum", "max", "min"])
@pytest.mark.parametrize(("dim", "axis"), [(-1, -1), (1, -1), (0, 0), (-2, 0)])
def test_reductions_of_declared_buffers_are_calls(mode: str, dim: int, axis: int) -> None:
    reduce = getattr(tilelang_npu.language, f"reduce_{mode}")
    shape = (4,) if axis == -1 else (8,)
    made = reduce(tir.decl_buffer((4, 8), "float16"), tir.decl_buffer(shape, "float16"), dim=dim)
    assert isinstance(made, tir.Call)
    assert made.op.same_as(tir.op.Op.get("tl.ascend_reduce"))
    assert not made.op.same_as(tir.op.Op.get("tl.ascend_add"))
    assert made.args[2:4] == (f"reduce_{mode}", axis)
    with pytest.raises(tilelang_npu.TileError, match="destination has shape"):
        reduce(tir.decl_buffer((4, 8), "float16"), tir.decl_buffer((7,), "float16"), dim=dim)
    with pytest.raises(ValueError, match="valid are -2 to 1"):
        reduce(tir.decl_buffer((4, 8)), tir.decl_buffer((8,)), dim=2)


def test_other_parts_of_tvm_are_refused_by_name() -> None:
    with pytest.raises(tilelang_npu.TileError, match=r"tvm\.tir\.Var: this package does not contain TVM"):
        tir.Var("x", "int32")


PLACES = """
import importlib, sys
import tilelang_npu
from tilelang_npu.autotuner import AutoTuner
pairs = {"autotuner": "runtime.tuning.autotune", "profiler": "runtime.reports.profiler", "carver": "compat.carver",
         "testing": "compat.testing",
         "carver.arch": "compat.carver.arch", "cache": "runtime.cache.entries", "intrinsics": "language.layouts",
         "layout": "language.layouts"}
for name, place in pairs.items():
    module = importlib.import_module("tilelang_npu." + name)
    assert module is importlib.import_module("tilelang_npu." + place), name
    assert module.__spec__.name == "tilelang_npu." + place
    if "." not in name:
        assert getattr(tilelang_npu, name) is module
import tilelang_npu.compat
tilelang_npu.compat.install()
for name in set(pairs) - {"carver.arch"}:  # which TileLang has more in
    assert importlib.import_module("tilelang." + name) is sys.modules["tilelang_npu." + name], name
try:
    import tilelang_npu.profiler.nothing
except ModuleNotFoundError:
    print("done")
"""


def test_modules_are_found_under_the_names_of_tilelang() -> None:
    done = subprocess.run([sys.executable, "-c", PLACES], capture_output=True, text=True, check=False, env=os.environ)
    assert (done.stdout, done.stderr) == ("done\n", "")
