"""Keys of ``pass_configs`` that neither branch of TileLang-Ascend has: they are reported, without an error."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import PassConfigKey
from tilelang_npu.runtime.settings.log import TileWarning
from tilelang_npu.runtime.settings.pass_config_keys import _ASCEND_KEYS, _GPU_KEYS, known_key, unknown_keys


def reported(configs: dict[Any, object]) -> list[str]:
    """The advice on each key."""
    found = list(unknown_keys(configs, None, "A, B"))
    assert all(error.code == "T704" and "has no effect" in error.message for error in found)
    return [error.help for error in found]


@pytest.mark.parametrize("name", [
    "TL_LAYOUT_VISUALIZATION_ENABLE", "TL_SOMETHING_NEW", "TL_ASCEND_AUTO_SYNK", "TIR_OTHER", "NPUIR_NEXT_KEY"])
def test_a_member_is_made_for_every_key(name: str) -> None:
    key = getattr(PassConfigKey, name)
    assert isinstance(key, PassConfigKey)
    assert key.name == name
    assert key is PassConfigKey[name] is PassConfigKey(key.value) is getattr(PassConfigKey, name)
    assert pickle.loads(pickle.dumps(key)) is key is copy.deepcopy(key)
    assert key == key.value
    assert known_key(key) is None is known_key(key.value)
    assert name not in PassConfigKey.__members__
    assert key not in list(PassConfigKey)


@pytest.mark.parametrize("name", ["tl_simplify", "Simplify", "TL", "__wrapped__", "_TL_KEY"])
def test_names_that_no_key_can_have(name: str) -> None:
    assert not hasattr(PassConfigKey, name)
    with pytest.raises(KeyError):
        PassConfigKey[name]


def test_a_key_is_a_string() -> None:
    with pytest.raises(ValueError, match="3 is not a valid PassConfigKey"):
        PassConfigKey(3)


@pytest.mark.parametrize("key", PassConfigKey.__members__)
def test_members_are_found_by_name_and_by_value(key: str) -> None:
    member = PassConfigKey.__members__[key]
    assert member is PassConfigKey[key] is PassConfigKey(member.value) is known_key(member) is known_key(member.value)
    assert reported({member: True, member.value: True}) == []


@pytest.mark.parametrize(("where", "name"), [
    *(("TileLang for GPUs", name) for name in _GPU_KEYS), *(("TileLang-Ascend", name) for name in _ASCEND_KEYS)])
def test_keys_of_others_say_what_they_do_there(where: str, name: str) -> None:
    value, purpose = {**_GPU_KEYS, **_ASCEND_KEYS}[name]
    assert reported({value: 1}) == reported({getattr(PassConfigKey, name): 1}) == [f"in {where} it {purpose}"]
    assert re.fullmatch(r"[a-z].*[a-z0-9]", purpose)


@pytest.mark.parametrize(("written", "advice"), [
    ("tl.ascend_auto_synk", "did you mean 'tl.ascend_auto_sync'?"),
    ("TL_ASCEND_AUTO_SYNC", "did you mean 'tl.ascend_auto_sync'?"),
    ("tirx.disable_vectorize",
     "it is the name of 'tir.disable_vectorize' in newer versions of TVM, which has no effect on an Ascend chip either"),
    ("nothing like it", "the keys with an effect are A, B"),
    (7, "the keys with an effect are A, B"),
])
def test_advice_on_strings(written: object, advice: str) -> None:
    assert reported({written: True}) == [advice]


def test_advice_on_members() -> None:
    assert reported({PassConfigKey.TL_ASCEND_AUTO_SYNK: True}) == ["did you mean TL_ASCEND_AUTO_SYNC?"]
    assert reported({PassConfigKey.OTHER_XYZ: True}) == ["the keys with an effect are A, B"]
    assert reported({}) == []


def factory(key: Any) -> Any:
    @tilelang.jit(out_idx=[-1], target="ascendc", pass_configs={
        tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
        key: {"any": "value"}})
    def made(n: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((n,), "float32")
                T.copy(A, a)
                T.tile.add(a, a, a)
                T.copy(a, B)

        return main

    return made


@pytest.mark.parametrize(("key", "text"), [
    ("tl.layout_visualization_enable", "T704: unknown key 'tl.layout_visualization_enable' in pass_configs has no effect; in "
     "TileLang for GPUs it draws the inferred layouts"),
    (PassConfigKey.TL_ENABLE_DUMP_IR, "T704: unknown key TL_ENABLE_DUMP_IR in pass_configs has no effect; in TileLang for GPUs "
     "it writes the program after each pass to a file"),
    (PassConfigKey.TL_ASCEND_AUTO_SYNK, "T704: unknown key TL_ASCEND_AUTO_SYNK in pass_configs has no effect; did you mean "
     "TL_ASCEND_AUTO_SYNC?")])
@pytest.mark.parametrize("n", [64, 40])
def test_a_kernel_with_an_unknown_key_runs(key: Any, text: str, n: int) -> None:
    a = np.arange(n, dtype=np.float32)
    for _ in range(2):  # compiled, and found in the cache
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            kernel = factory(key)(n)
            np.testing.assert_array_equal(kernel(a), a + a)
        assert [str(one.message) for one in heard] == [text]
        assert heard[0].category is TileWarning
        assert Path(heard[0].filename) == Path(__file__)
