"""Our generic form read by the C++ parser of MLIR, which knows nothing of HIVM and checks all that is common to MLIR.

Two distributions of its Python bindings are asked: they are builds of different versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Operation

from captured import KERNELS, captured
from dialects.helpers import Kernel
from dialects.test_round_trip import CASES
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.ops import elementwise
from tilelang_npu.runtime.reports.mlir_bindings import new_context

MODULES = sorted((Path(__file__).parent / "modules").glob("*.mlir"))
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def _numbered(text: str) -> str:
    """Memory spaces as numbers, as MLIR takes no attribute of an unknown dialect there; the newer name of to_memref."""
    text = text.replace("bufferization.to_memref", "bufferization.to_buffer")
    return re.sub(r"#hivm\.address_space<(\w+)>", lambda match: f"{hivm.address_space(match[1]).value} : i64", text)


DISTRIBUTIONS = ["iree.compiler", "jaxlib.mlir"]


@contextmanager
def _in_context(distribution: str) -> Iterator[Any]:
    """The ``ir`` module of a distribution, in a context."""
    pytest.importorskip(f"{distribution}.ir", reason=f"{distribution} is not installed")
    with new_context(distribution):
        yield import_module(f"{distribution}.ir")


@pytest.fixture(params=DISTRIBUTIONS)
def mlir(request: pytest.FixtureRequest) -> Iterator[Any]:
    with _in_context(request.param) as ir:
        yield ir


def _upstream(mlir: Any, text: str) -> Any:
    module = mlir.Module.parse(text)
    assert module.operation.verify()
    return module, module.operation.get_asm(print_generic_op_form=True)


def _agree(mlir: Any, module: Operation) -> None:
    generic = _numbered(print_module(module, generic=True))
    parsed, written = _upstream(mlir, generic)
    assert [op.name for op in module.walk()] == _names(mlir, parsed)
    assert _facts(written) == _facts(generic)


def _names(ir: Any, module: Any) -> list[str]:
    names: list[str] = []

    def visit(op: Any) -> Any:
        names.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return names


@lru_cache(maxsize=4)  # both distributions parse the same text, and usually print the same
def _facts(text: str) -> list[tuple[Any, ...]]:
    """All that a text says of each op, its properties among its attributes (MLIR keeps those of unknown ops there)."""
    return [
        (op.name, [str(operand.type) for operand in op.operands], [str(result.type) for result in op.results],
         sorted((name, str(value)) for name, value in {**op.properties, **op.attributes}.items()
                if str(value) != "#arith.overflow<none>"))  # a default that MLIR spells out, on more ops than LLVM 19 had
        for op in parse_module(text, verify=False).walk()]


@pytest.mark.parametrize("make", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_every_op(mlir: Any, k: Kernel, make: Any) -> None:
    module = k.module(make(k))
    if any(op.name == "bufferization.to_memref" for op in module.walk()):
        _upstream(mlir, _numbered(print_module(module, generic=True)))  # there by its newer name
    else:
        _agree(mlir, module)


@pytest.mark.parametrize("entry", list(elementwise()), ids=lambda entry: entry.hivm)
def test_every_elementwise_op(mlir: Any, k: Kernel, entry: Any) -> None:
    inputs = [k("4x8xf32") for _ in range(entry.inputs)]
    _agree(mlir, k.module(hivm.elementwise_op(entry.hivm)(inputs, [k("4x8xf32") for _ in range(entry.outputs)], broadcast=[0])))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_whole_kernels(mlir: Any, path: Path) -> None:
    _agree(mlir, parse_module(path.read_text(), str(path)))


def test_our_spelling_of_the_common_dialects(mlir: Any) -> None:
    """The custom form too: MLIR parses our text, and we parse MLIR's text."""
    module = parse_module((Path(__file__).parent / "modules" / "common.mlir").read_text())
    written = str(mlir.Module.parse(print_module(module)))
    again = parse_module(written)
    assert [op.name for op in again.walk()] == [op.name for op in module.walk()]
    assert print_module(again, generic=True) == print_module(parse_module(written), generic=True)


@pytest.mark.shared
@pytest.mark.parametrize("script", [*EXAMPLES, *KERNELS], ids=lambda file: file.stem)
def test_what_is_emitted_comes_back_unchanged_and_mlir_reads_it(script: Path) -> None:
    """The kernels of a script, in both forms that are handed out; in the last, if the author has set the waits."""
    kernels = {run.text: run.kernel for run in captured(script)}.values()
    stages = ("hivm",) if script.stem.endswith("_expert") else ("hivm-auto", "hivm")
    modules = []
    for text in (kernel.mlir(stage) for kernel in kernels for stage in stages):
        module = parse_module(text)
        assert print_module(module) == text
        generic = print_module(module, generic=True)
        again = parse_module(generic)
        assert print_module(again, generic=True) == generic
        assert print_module(again) == text
        modules.append(module)
    with ExitStack() as stack:
        readers = [stack.enter_context(_in_context(distribution)) for distribution in DISTRIBUTIONS]
        for module in modules:
            for ir in readers:
                _agree(ir, module)
