"""The cyclic garbage collector is off while any thread compiles, and is restored afterwards."""

from __future__ import annotations

import gc
import threading

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.infra.garbage_collection import paused_garbage_collection


def test_it_waits_for_the_last_of_several_threads() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with paused_garbage_collection():
            entered.set()
            go_on.wait()

    assert gc.isenabled()
    thread = threading.Thread(target=other)
    with paused_garbage_collection():
        thread.start()
        entered.wait()
        assert not gc.isenabled()
    assert not gc.isenabled()
    go_on.set()
    thread.join()
    assert gc.isenabled()


def test_it_stays_off_after_a_compilation_if_it_was_off() -> None:
    gc.disable()
    try:
        with paused_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_waits_while_passes_run_and_not_when_one_has_failed() -> None:
    seen: list[bool] = []

    def observe(stage: str, module: ModuleOp) -> None:
        if stage != "tile":
            seen.append(gc.isenabled())
            raise KeyError(stage)

    with pytest.raises(KeyError):
        pipeline.lower(ModuleOp([]), pipeline.Options(), observe)
    assert seen == [False]
    assert gc.isenabled()
