"""``jit``: forms, caching, laziness, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC, doubled, product
from tilelang_npu import TileError
from tilelang_npu.runtime.jit.factory import Factory


def factory(rows=16):
    @T.prim_func
    def copied(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((rows, 64), "float32")
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return copied


@pytest.mark.parametrize(
    "made",
    [tilelang.jit(factory), tilelang.jit()(factory), tilelang.jit(out_idx=[-1])(factory), tilelang.jit(factory, out_idx=-1)],
    ids=["plain", "empty", "arguments", "call"],
)
def test_forms(made: Factory) -> None:
    assert made.__name__ == "factory"
    assert made(16).name == "copied"


def test_the_same_arguments_give_the_same_kernel() -> None:
    made = tilelang.jit(factory)
    assert made(16) is made(16)
    assert made(16) is not made(rows=16)
    assert made(rows=16) is made(rows=16)
    assert made(16) is not made(8)
    assert made(__tune_params={"rows": 8}) is made(rows=8)


def test_arguments_that_cannot_be_hashed_work() -> None:
    made = tilelang.jit(lambda shape: factory(shape[0]))
    assert made([16]).name == "copied"


def test_nothing_is_read_before_the_factory_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @tilelang.jit(target="no such target", pass_configs={"no such switch": True})
    def late():
        calls.append(1)
        return factory()

    assert calls == []
    with pytest.raises(TileError) as caught:
        late()
    assert caught.value.code == "T703"

    made = tilelang.jit(factory)
    monkeypatch.setenv("TILELANG_NPU_CHIP", "910B4")
    first = made()
    monkeypatch.setenv("TILELANG_NPU_CHIP", "910B3")
    assert (first.chip.name, made().chip.name) == ("Ascend910B4", "Ascend910B3")
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Developer")
    assert made().dialect == "npuir"


def test_arguments_that_change_nothing_are_accepted() -> None:
    tilelang.jit(factory, target_host=None, execution_backend="cython", verbose=False, platform="auto", debug_root_path=None)()


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [({"out_ids": 1}, "out_idx"), ({"pass_config": {}}, "pass_configs"), ({"execution_backend": "nvrtc"}, "cython")],
)
def test_unknown_arguments(wrong: dict, advice: str) -> None:
    with pytest.raises(TileError) as caught:
        tilelang.jit(**wrong)
    assert caught.value.code == "T707"
    assert advice in caught.value.help
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_a_factory_must_return_its_kernel() -> None:
    @tilelang.jit
    def forgot():
        factory()

    with pytest.raises(TileError) as caught:
        forgot()
    assert caught.value.code == "T708"
    assert "returned None" in caught.value.message


def test_what_is_decorated_must_be_a_factory() -> None:
    with pytest.raises(TileError, match="T708"):
        tilelang.jit(factory())
    with pytest.raises(TileError, match="T708"):
        tilelang.compile(factory)
    with pytest.raises(TileError, match="call it with its arguments"):
        tilelang.compile(tilelang.jit(factory))


@pytest.mark.parametrize("settings", [{"out_idx": [2]}, {"out_idx": [1], "workspace_idx": [1]}, {"workspace_idx": [-3]}])
def test_positions_that_do_not_exist(settings: dict) -> None:
    with pytest.raises(TileError) as caught:
        tilelang.compile(factory(), **settings)
    assert caught.value.code == "T709"


def test_both_dialects_agree(rng: np.random.Generator) -> None:
    a = rng.standard_normal((32, 64)).astype(np.float32)
    np.testing.assert_array_equal(doubled(32, 64)(a), a * 2)
    np.testing.assert_array_equal(tilelang.compile(doubled.function(32, 64), out_idx=[1], target="npuir")(a), a * 2)


def test_lower_gives_the_text_for_the_toolchain() -> None:
    from tilelang_npu.runtime.jit.factory import lower

    text = lower(product(), target="npuir")
    assert "hivm.hir.mmadL1" in text
    assert "set_flag" not in text
    assert text.kernel_source == text


def test_verbose_tells_what_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "tilelang_npu"):
        tilelang.compile(factory(), verbose=True, pass_configs=SYNC)
    assert "copied: dialect ascendc, Ascend910B2, switches {'tl.ascend_auto_sync': True}" in caplog.text


def test_verbose_is_of_one_kernel(caplog: pytest.LogCaptureFixture) -> None:
    tilelang.compile(factory(), verbose=True, pass_configs=SYNC)
    assert "copied: dialect" in caplog.text
    caplog.clear()
    tilelang.compile(factory(), pass_configs=SYNC)
    assert not caplog.text


def test_an_output_that_is_only_read_is_refused() -> None:
    @tilelang.jit(out_idx=[0], target="ascendc")
    def factory():
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_ub((64,), "float32")
                T.copy(A, a)
                T.copy(a, B)

        return main

    with pytest.raises(TileError, match="A, which the kernel reads and never writes") as caught:
        factory()
    assert caught.value.code == "T709"


def test_a_factory_tells_its_target() -> None:
    assert tilelang.jit(target="pto")(lambda: None).__jit_impl__.target == "pto"


class Members:
    """Factories as methods of each kind, and one that holds its kernel itself."""

    rows = 16

    @tilelang.jit
    def method(self, rows: int = 8) -> Any:
        return factory(rows)

    @tilelang.jit
    @staticmethod
    def inner_static(rows: int) -> Any:
        return factory(rows)

    @staticmethod
    @tilelang.jit
    def outer_static(rows: int) -> Any:
        return factory(rows)

    @tilelang.jit
    @classmethod
    def inner_class(cls) -> Any:
        return factory(cls.rows)

    @classmethod
    @tilelang.jit
    def outer_class(cls) -> Any:
        return factory(cls.rows)

    @tilelang.autotune(configs=[{"rows": 8}, {"rows": 16}])
    @tilelang.jit
    def tuned(self, rows: int = 1) -> Any:
        return factory(rows)

    @tilelang.jit(target="npuir")
    def held(self, A):
        n = T.const("n")
        A: T.Tensor[[n], T.float32]
        B = T.empty([n], T.float32)
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((n,), "float32")
            T.copy(A, a)
            T.copy(a, B)
        return B


def test_a_factory_may_be_a_method(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    members = Members()
    rows = {
        members.method(16): 16, members.method(): 8, Members.method(members, 16): 16, members.method.compile(rows=24): 24,
        members.inner_static(16): 16, Members.inner_static(8): 8, members.outer_static(16): 16, Members.outer_static(8): 8,
        members.inner_class(): 16, Members.inner_class(): 16, members.outer_class(): 16, Members.outer_class(): 16,
    }
    assert {kernel.params[0].shape[0] - rows for kernel, rows in rows.items()} == {0}
    assert members.method(16) is Members().method(16)
    assert members.tuned().params[0].shape[0] in (8, 16)
    assert "func" in members.method.get_kernel_source(16)
    given = np.ones(32, np.float32)
    assert (members.held(given) == given).all()
    assert isinstance(Members.method, Factory)


def test_several_kernels_are_compiled_by_one_call(caplog: pytest.LogCaptureFixture) -> None:
    given = np.arange(24 * 64, dtype=np.float32).reshape(24, 64)
    made = tilelang.jit(out_idx=[-1])(factory)
    for kernels in (made.par_compile([{"rows": 8}, (24,)], num_workers=2),
                    tilelang.par_compile([factory(8), factory(24)], out_idx=[-1])):
        for kernel, rows in zip(kernels, (8, 24), strict=True):
            assert kernel is not None
            np.testing.assert_array_equal(kernel(given[:rows]), given[:rows])
    assert made.par_compile([(8,)])[0] is made(8)
    with pytest.raises(TileError, match="T104"):
        made.par_compile([(8,), (2000,)])
    first, second = made.par_compile([(8,), (2000,)], ignore_error=True)
    assert first is made(8)
    assert second is None
    assert "T104" in caplog.text


def test_scripts_read_the_parameters_of_a_factory() -> None:
    """TileOPs keeps the entries of a configuration that are parameters of the factory."""
    @tilelang.jit
    def factory(block_m: int, threads: int = 128) -> None:
        raise NotImplementedError

    assert list(factory.signature.parameters) == ["block_m", "threads"]
    assert factory.signature.parameters["threads"].default == 128
