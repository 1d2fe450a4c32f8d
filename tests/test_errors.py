"""The visible error: the message after the user's own frames, and no frames of this package."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import tilelang_npu
from tilelang_npu import language
from tilelang_npu.errors import Location, TileError, render

PACKAGE = str(Path(tilelang_npu.__file__).parent)
SCRIPT = '''
import json, sys, traceback
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

def broken():
    return {}["mine"]

@tilelang.jit(target="npuir", out_idx=[-1])
def rows(n, wrong=0):
    if wrong == 1:
        broken()
    if wrong == 2:
        try:
            broken()
        except KeyError:
            T.copy(1, 2)
    @T.prim_func
    def rows(X: T.Tensor((n, 64), "float32"), Y: T.Tensor((n, 64), "float32")):
        with T.Kernel(n, is_npu=True) as (block, half):
            x = T.alloc_shared((1 << 20 if wrong == 3 else 1, 64), "float32")
            if wrong == 4:
                broken()
            if wrong == 5:
                T.exp(X[block, 0], 3, 4)
            T.copy(X[block, 0], x)
            T.copy(x, Y[block, 0])
    return rows

kernel = rows(4)
x = np.zeros((3, 64), np.float32)
'''
MISTAKES = {  # the call, and the last line of the output, or a part of it
    "kernel(x)": "help: pass an array of the declared shape",
    "kernel()": "help: call it with X",
    "kernel.mlir('no')": "kernel.stages() lists the stages",
    "kernel.get_profiler('no')": "one of TensorSupplyType",
    "rows(4, 1)": "KeyError: 'mine'",
    "rows(4, 2)": "help: move it into the kernel's body",
    "rows(4, 3)": "help: shrink the tiles",
    "rows(4, 4)": "which runs once, while the kernel is compiled",
    "rows(4, 5)": "help: ",
    "rows(4, 5, 6)": "help: its parameters are n, wrong",
    "rows('no')": "help: use //",
    "tilelang.compile(rows)": "help: pass the function under @T.prim_func",
    "tilelang.jit(no=1)": "help: its arguments are",
    "tilelang.jit(rows, 2, 3)": "TypeError: jit() takes from 0 to 1 positional arguments but 3 were given",
    "tilelang.autotune(rows, configs=3)(4)": "help: configs must be a list",
    "kernel.get_profiler().assert_allclose(lambda x: x + 1)": "AssertionError: ",
    "tilelang.testing.torch_assert_close(x, x + 1)": "AssertionError: ",
    "tilelang.testing.torch_assert_close(x, x[1:])": "AssertionError: result 0 has shape",
    "tilelang.jitt": "AttributeError: module 'tilelang_npu' has no attribute 'jitt'",
    "T.copi": "help: did you mean T.copy?",
    "T.tile.addd": "help: did you mean T.tile.add?",
    "T.symbolic('1x')": "help: letters, digits",
    "T.copy(1, 2)": "help: move it into",
    "T.prim_func(int)": "help: put the decorator on a `def`",
    "bool(T.symbolic('n') > 3)": "help: only a call of the kernel knows it",
}


def ran(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(text)
    given = {**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent), **variables}
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=given, check=False)


def ours(shown: str) -> list[str]:
    """The lines of a traceback that are of this package's frames."""
    return [line for line in shown.splitlines() if re.search(r'File ".*[/\\]tilelang_npu[/\\]', line)]


def caught(statement: str) -> str:
    return f"\ntry:\n    {statement}\nexcept Exception:\n    shown.append(traceback.format_exc())\n"


def test_a_traceback_has_no_frame_of_this_package(tmp_path: Path) -> None:
    done = ran(SCRIPT + "shown = []\n" + "".join(map(caught, MISTAKES)) + "\nprint(json.dumps(shown))\nkernel(x)\n", tmp_path)
    shown = json.loads(done.stdout)
    assert len(shown) == len(MISTAKES)
    allowed = 0 if sys.version_info >= (3, 11) else 1  # 3.10 raises again what it had noted: one line of this package stays
    for (statement, end), text in zip(MISTAKES.items(), shown, strict=True):
        assert len(ours(text)) <= allowed, f"{statement}\n{text}"
        assert end in text.splitlines()[-1], f"{statement}\n{text}"
        assert f"    {statement}\n" in text
    assert ours(done.stderr) == [] or sys.version_info < (3, 11)
    assert done.stderr.startswith("Traceback (most recent call last):\n") and "error[T403]" in done.stderr
    own = shown[list(MISTAKES).index("rows(4, 1)")]
    assert [re.search(r"in (\S+)$", line)[1] for line in own.splitlines() if "File " in line] == ["<module>", "rows", "broken"]
    both = shown[list(MISTAKES).index("rows(4, 2)")]
    assert "KeyError: 'mine'" in both and "During handling" in both, "what the user was handling is the user's"


def test_the_frames_of_this_package_are_there_on_request(tmp_path: Path) -> None:
    done = ran(SCRIPT + "kernel(x)\n", tmp_path, TILELANG_NPU_TRACEBACK="full")
    assert any("binding.py" in line for line in ours(done.stderr))
    assert "error[T403]" in done.stderr


def test_a_fault_of_this_package_keeps_its_frames(tmp_path: Path) -> None:
    fault = "from tilelang_npu.runtime.arguments import binding\nbinding._in_declared_shape = None\nkernel(x)\n"
    done = ran(SCRIPT + fault, tmp_path)
    assert "TypeError: 'NoneType' object is not callable" in done.stderr
    assert any("binding.py" in line for line in ours(done.stderr))


def test_a_thread_shows_no_frame_of_this_package(tmp_path: Path) -> None:
    done = ran(SCRIPT + "import threading\nt = threading.Thread(target=lambda: kernel(x))\nt.start()\nt.join()\n", tmp_path)
    assert "error[T403]" in done.stderr
    assert ours(done.stderr) == [] or sys.version_info < (3, 11)


def test_a_notebook_shows_the_cells_alone() -> None:
    pytest.importorskip("IPython")
    program = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_cell({SCRIPT!r})
shell.run_cell("kernel(x)")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent)})
    assert "error[T403]" in done.stdout
    assert "tilelang_npu/" not in done.stdout


def closed(value: object) -> bool:
    return hasattr(value, "__tilelang_npu_door__")


def methods(kind: type) -> dict[str, object]:
    """Returns the public methods and properties of a class, except those from Python or NumPy."""
    found: dict[str, object] = {}
    for name, value in vars(kind).items():
        function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
        if isinstance(function, FunctionType) and not name.startswith("_"):
            found[f"{kind.__name__}.{name}"] = function
    return found


@pytest.mark.parametrize("module", [tilelang_npu, language], ids=["tilelang_npu", "T"])
def test_every_public_function_and_class_is_a_door(module: object) -> None:
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.tuning.autotune import Tuned
    from tilelang_npu.simulator import Launch, Launches

    kinds = [CompiledKernel, Factory, Tuned, Launch, Launches] if module is tilelang_npu else []
    found: dict[str, object] = {}
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("tilelang_npu."):
            continue
        if isinstance(value, type) and value.__module__.startswith(("tilelang_npu.runtime", "tilelang_npu.language")):
            kinds.append(value)
        elif isinstance(value, FunctionType):
            found[name] = value
    for kind in kinds:
        if not issubclass(kind, BaseException):
            found.update(methods(kind))
    assert len(found) > 30
    assert sorted(name for name, value in found.items() if not closed(value)) == []


def test_a_door_keeps_what_is_known_of_a_function() -> None:
    assert list(inspect.signature(tilelang_npu.jit).parameters) == ["func", "settings"]
    assert isinstance(inspect.unwrap(language.copy), FunctionType)
    assert (language.copy.__name__, language.copy.__module__) == ("copy", "tilelang_npu.language.movement")


def test_a_position_in_a_macro_names_the_calls_and_equals_the_position_without_them() -> None:
    call, kernel = Location("a/macros.py", 9), Location("kernel.py", 20)
    place = Location("a/macros.py", 4, 5, callers=(call, kernel))
    assert place.line_with_calls == "line 4, called at line 9, called at kernel.py:20"
    assert place == Location("a/macros.py", 4, 5)
    assert Location("kernel.py", 4).line_with_calls == "line 4"
    endless = Location("a.py", 1, callers=tuple(Location("a.py", line) for line in range(2, 12)))
    assert endless.calls == ", called at line 2, called at 8 more macros, called at line 11"
    told = TileError("a tile is too large", code="T104", location=place)
    assert "   = in a macro, called at line 9, called at kernel.py:20" in render(told)
    notes = ["in the macro 'm', called at kernel.py:20"]
    by_frontend = TileError("a tile is too large", code="T104", location=place, notes=notes)
    assert render(by_frontend).count("called at") == 1
