"""The interpreter's table: it has every operation of the language, and a test notices when any one of them does nothing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from language import test_block_scaled, test_inventory, test_patch_loads
from ops import surface, test_reductions
from ops.conftest import Batch
from ops.test_perturbations import run_own_tests
from tilelang_npu import ops
from tilelang_npu.interpreter.operation_table import operations

OPERATIONS = operations()
SYNTAX = {"Kernel", "Parallel", "Persistent", "Pipelined", "Serial", "Scope", "SimdVF", "SimtVF", "If", "Then", "Else",
          "grid", "parallel", "rs", "serial", "unroll", "vectorized", "loop_break", "macro", "prim_func"}
"""Names that the rewritten source understands."""
OF_THE_HOST = {"Buffer", "FragmentBuffer", "LocalBuffer", "SharedBuffer", "StridedTensor", "Tensor", "GemmWarpPolicy", "Macro",
               "PrimFunc", "Sym", "dtype", "dynamic", "symbolic", "const", "empty", "infinity", "Layout", "Fragment", "Ref"}
"""Types, annotations and functions that a factory calls."""
NO_VALUE = {
    "set_flag": "it orders the pipes of a core, whose operations are executed one after the other; four more names are it",
    "annotate_compile_flags": "it says nothing of values; so do annotate_layout, func_attr and the hints for GPUs",
    "evaluate": "its argument has the effect, which is executed before the call",
    "meta_var": "it gives its argument back"}
"""Operations without an effect that could be removed."""
ELSEWHERE = {"set_cross_flag", "wait_cross_flag", "sync_block_set", "sync_block_wait", "block_barrier", "subblock_barrier",
             "sync_all", "print", "printf", "dump_tensor", "assert_", "alloc_global", "use_swizzle", "async_copy",
             "device_assert", "get_thread_binding", "get_thread_bindings", "shmem_put_nbi", "shmem_ub_put_nbi", "shmem_get_nbi",
             "shmem_ub_atomic_add_nbi", "shmem_signal_op", "shmem_signal_wait_until", "shmem_quiet", "shmem_barrier",
             "shmem_barrier_all", "barrier_all", "pipe_barrier",
             *(name for name in OPERATIONS if name.startswith("vmi."))}
"""Operations that kernels of test_order.py, test_vector_lanes.py, language/test_gpu_hints.py, test_thread_guards.py,
ops/test_peers.py, test_card_signals.py or test_card_polls.py test."""


def groups() -> Iterator[Any]:
    """The names of each implementation that has an effect."""
    found: dict[int, list[str]] = {}
    for name, function in OPERATIONS.items():
        found.setdefault(id(function), []).append(name)
    for names in found.values():
        if names[0] not in {*NO_VALUE, *ELSEWHERE}:
            yield pytest.param(names, id=names[0])


def test_it_has_every_operation_of_the_language() -> None:
    public = {name for name in (*T.__all__, *T._functions()) if callable(getattr(T, name, None)) or name.startswith("tile.")}
    assert public - set(OPERATIONS) == SYNTAX | OF_THE_HOST


def test_it_takes_the_arguments_of_the_language_by_name() -> None:
    for name, function in OPERATIONS.items():
        report = inspect.signature(reduce(getattr, name.split("."), T))
        keywords = {parameter.name: None for parameter in report.parameters.values()
                    if parameter.kind is parameter.POSITIONAL_OR_KEYWORD or parameter.kind is parameter.KEYWORD_ONLY}
        taken = inspect.signature(function)
        if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken.parameters.values()):
            taken.bind(**keywords)


def users(names: list[str], batch: Callable[[str], Batch], source: Any) -> Iterator[Callable[[], None]]:
    """Tests that execute an operation of these names."""
    for dialect in ("ascendc", "npuir"):
        for form in test_inventory.forms(dialect):
            statements, expression = form.values
            if set(names) & set(re.findall(r"\bT\.((?:tile\.)?\w+)", statements)):
                yield partial(test_inventory.run, source, dialect, statements, expression)
    rng = np.random.default_rng(0)
    if set(names) & set(test_inventory.OTHERS["test_block_scaled"]):
        yield partial(test_block_scaled.test_matrices_in_l0_with_scales_of_plain_copies, rng)
        yield partial(test_block_scaled.test_a_transposed_matrix_extreme_scales_and_nan, rng)
    if set(names) & set(test_inventory.OTHERS["test_patch_loads"]):
        yield partial(test_patch_loads.test_a_matrix_in_pieces_equals_the_whole, 16, 9, False)
    for entry, name in surface.covered():
        if name in names:
            yield partial(run_own_tests, batch, rng, entry, name)
    for mode, name in test_reductions.NAMED.items():
        if name in names:
            yield partial(test_reductions.test_named_forms, mode, name, rng)
    for entry in ops.operations().values():
        if isinstance(entry, ops.Structured) and set(names) & {entry.name, *entry.aliases}:
            yield partial(run_own_tests, batch, rng, entry, entry.name)


@pytest.mark.parametrize("names", list(groups()))
def test_removing_an_effect_is_noticed(names: list[str], batch: Callable[[str], Batch], source: Any,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    if set(names) & set(test_inventory.OTHERS["test_block_scaled"]):
        monkeypatch.setenv("TILELANG_NPU_CHIP", "a5")
    tests = list(users(names, batch, source))
    assert tests, f"no test executes T.{names[0]}"
    for name in names:
        monkeypatch.setitem(OPERATIONS, name, lambda *arguments, **_: arguments[0] if arguments else None)
    noticed = 0
    for test in tests:
        try:
            test()
        except Exception:  # noqa: BLE001  (a wrong value, or an error for want of one)
            noticed += 1
    assert noticed, f"{len(tests)} tests execute T.{names[0]}, and none notices that it does nothing"
