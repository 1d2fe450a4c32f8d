"""The functions of a module that are its kernel, their cores, and the results of its host functions."""

from __future__ import annotations

import pytest

from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.run.entry_functions import answer_of, kernel_of, kernels_of, vector_cores
from tilelang_npu.target import chip

KERNEL = ("func.func @{name}() attributes {{hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>{core}}} {{\n"
          "  return\n}}\n")
HOST = ("func.func @{name}() -> i8 attributes {{hacc.function_kind = #hacc.function_kind<HOST>}} {{\n"
        "  %0 = arith.constant {value} : i8\n  return %0 : i8\n}}\n")


def kernel(name: str, core: str = "") -> str:
    return KERNEL.format(name=name, core=f", hivm.func_core_type = #hivm.func_core_type<{core}>" if core else "")


def test_halves_are_one_kernel_the_cubes_first() -> None:
    module = parse_module(kernel("k_mix_aiv", "AIV") + kernel("other", "AIV") + kernel("k_mix_aic", "AIC"))
    assert {name: [core for core, _ in found] for name, found in kernels_of(module).items()} == {
        "k": ["AIV", "AIC"], "other": ["AIV"]}
    name, found = kernel_of(module, "k")
    assert (name, [(core, function.sym_name.data) for core, function in found]) == (
        "k", [("AIC", "k_mix_aic"), ("AIV", "k_mix_aiv")])


@pytest.mark.parametrize(("text", "entry", "code", "report"), [
    (kernel("a", "AIV") + kernel("b", "AIV"), None, "T508", "exactly one kernel is needed, but the module has a, b"),
    (kernel("a", "AIV"), "c", "T508", "there is no kernel c; the module has a"),
    (HOST.format(name="h", value=1), None, "T508", "exactly one kernel is needed, but the module has none"),
    (kernel("a"), None, "T508", "a does not say which core it is for"),
    (kernel("a", "MIX"), None, "T508", "Cube and Vector work are not split"),
    (kernel("a_mix_aiv", "AIC"), None, "T512", "a_mix_aiv is a function of the AIV by its name")])
def test_a_module_without_exactly_one_kernel_is_refused(text: str, entry: str | None, code: str, report: str) -> None:
    with pytest.raises(TileError, match=code) as caught:
        kernel_of(parse_module(text), entry)
    assert report in str(caught.value)


def test_a_host_function_answers_and_the_task_type_says_how_many_vector_cores() -> None:
    name = "k_infer_task_type_function"
    one = chip("Ascend910B2")
    for value, cores in ((31, 1), (32, 2)):
        module = parse_module(HOST.format(name=name, value=value) + kernel("k", "AIV"))
        assert answer_of(module, name, one) == value
        assert answer_of(module, "nobody", one) is None
        assert vector_cores(module, "k", one) == cores
    assert vector_cores(parse_module(kernel("k", "AIV")), "k", one) == one.aiv_per_aic == 2
