"""``tilelang.env``: the switches and the directory of the kernel cache; other names of TileLang's are errors."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

import tilelang_npu
from tilelang_npu import compat


@pytest.fixture(autouse=True)
def _alias() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def test_the_environment_is_that_of_the_cache() -> None:
    env = importlib.import_module("tilelang.env")
    env.env.disable_cache()
    assert not tilelang_npu.is_cache_enabled()
    env.enable_cache()  # the variable of the test run may still switch the cache off
    assert env.env.is_cache_enabled() == env.is_cache_enabled() == tilelang_npu.is_cache_enabled()
    assert env.TILELANG_CACHE_DIR == str(tilelang_npu.cache.get_cache_dir()) == env.env.TILELANG_CACHE_DIR
    for holder in (env, env.env):
        with pytest.raises(AttributeError, match="no CUDA_HOME"):
            _ = holder.CUDA_HOME
