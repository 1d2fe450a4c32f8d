"""Element types by themselves."""

from __future__ import annotations

import copy
import pickle

import pytest

from tilelang_npu.ops import dtype

NAMES = ("float16", "bfloat16", "float32", "int4", "uint8", "bool", "float8_e4m3fn")


@pytest.mark.parametrize("name", NAMES)
def test_a_type_that_comes_back_from_a_pickle_changes_nothing_for_others(name: str) -> None:
    kind = dtype(name)
    before = kind.numpy
    for back in (pickle.loads(pickle.dumps(kind)), copy.deepcopy(kind)):
        assert back is kind
        assert kind.numpy is before
