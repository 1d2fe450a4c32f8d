"""How the front end is tested: kernels are traced and their ops are looked at; a mistake must be shown with its exact caret."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from xdsl.ir import Operation

from tilelang_npu import TileError
from tilelang_npu.dialects.text import print_module
from tilelang_npu.frontend import Traced, trace

Source = Callable[..., ModuleType]


class Kernel:
    """A traced kernel, with methods for the tests."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        traced.module.verify()

    @property
    def text(self) -> str:
        return print_module(self.traced.module)

    def ops(self, name: str) -> list[Operation]:
        return [op for op in self.traced.module.walk() if op.name == name]

    def only(self, name: str) -> Operation:
        found = self.ops(name)
        assert len(found) == 1, f"{len(found)} {name} in\n{self.text}"
        return found[0]

    def names(self) -> list[str]:
        """Names of the ops inside the launch, in order, constants left out."""
        launch = self.only("tile.launch")
        return [op.name for op in launch.walk() if op.name not in ("arith.constant", "tile.launch")]

    def has(self, *lines: str) -> None:
        """Whether the lines occur in the text consecutively (ignoring whitespace)."""
        here = [line.strip() for line in self.text.splitlines()]
        position = 0
        for line in lines:
            matches = [number for number, have in enumerate(here[position:], position) if line in have]
            assert matches, f"no {line!r} from line {position} of\n{self.text}"
            position = matches[0] + 1


@pytest.fixture
def traced() -> Callable[..., Kernel]:
    """``traced(prim_func, "npuir")``: the kernel, verified."""

    def make(function: Any, dialect: str = "ascendc") -> Kernel:
        return Kernel(trace(function, dialect=dialect))

    return make


_NUMBER = itertools.count()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """``source(text)``: writes the text to a new file and imports it as a module."""

    def make(text: str, name: str | None = None) -> ModuleType:
        name = name or f"kernel_file_{next(_NUMBER)}"
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        linecache.checkcache(str(path))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


HEAD = """\
import numpy as np
import tilelang_npu.language as T

N = 64
M = T.symbolic("M")
Q = T.symbolic("Q")
table = {"key": 3}


def half(x):
    return x // 2


def decides(x):
    if x > 3:
        return 1
    return 0


def breaks():
    raise ValueError("no such size")


@T.prim_func
def main(A: T.Tensor((N, 128), "float16"), B: T.Tensor((N, 128), "float32"), S: T.Tensor((M, 8), "int32"), n: T.int32):
    with T.Kernel(4, is_npu=True) as (cid, vid):
        a = T.alloc_ub((8, 128), "float16")
        b = T.alloc_ub((8, 128), "float32")
        i32 = T.alloc_ub((32,), "int32")
        var = T.alloc_var("int32", init=0)
"""


@pytest.fixture
def body(source: Source) -> Callable[[str], Any]:
    """``body(statements)``: a kernel with these statements below a few buffers (see ``HEAD``)."""

    def make(statements: str) -> Any:
        return source(HEAD + textwrap.indent(textwrap.dedent(statements), " " * 8)).main

    return make


@contextmanager
def _refused(code: str, at: str, message: str, help_text: str, line: str | None) -> Iterator[None]:
    with pytest.raises(TileError) as caught:
        yield
    error = caught.value
    shown = str(error)
    assert error.code == code, shown
    assert error.location is not None, shown
    text = linecache.getline(error.location.file, error.location.line).rstrip("\n")
    assert (line or at.splitlines()[0]) in text, shown
    first, end = error.location.column - 1, error.location.end_column - 1
    assert text[first:end] == at, f"the caret is under {text[first:end]!r}\n{shown}"
    assert re.search(message, error.message), shown
    assert error.help, f"no help in\n{shown}"
    assert re.search(help_text, error.help), shown


@pytest.fixture
def refused() -> Callable[..., AbstractContextManager[None]]:
    """``with refused("T131", at="T.copy(A, b)", message="..."):`` expects the error with the caret under exactly that text."""

    def make(code: str, *, at: str, message: str = "", help: str = "", line: str | None = None  # noqa: A002
             ) -> AbstractContextManager[None]:
        return _refused(code, at, message, help, line)

    return make
