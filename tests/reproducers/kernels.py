"""Helpers of the reproducers: each runs a kernel in every order that its synchronisation allows, and checks the diagnostic of
a broken variant."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError

HAND: dict[str, bool] = {}
"""Nothing is inserted: the kernel orders its ops by hand."""
AUTO = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
BOTH = {**AUTO, "tl.ascend_auto_cv_combine": True, "tl.ascend_auto_cross_core_sync": True}
ORDERS = ("late", "early", "random:0", "random:1", "random:2")


def compiled(main: Any, switches: dict[str, bool], target: str = "ascendc") -> Any:
    """The kernel."""
    return tilelang.compile(main, target=target, pass_configs=switches)


def holds(kernel: Any, arguments: Sequence[Any], expected: Sequence[Any], **close: float) -> None:
    """Checks that the last arguments have the expected values after a run in every order, and that nothing is reported."""
    for order in (None, *ORDERS):
        given = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
        if order is None:
            kernel(*given)
            assert [str(hazard) for hazard in kernel.last_launch.hazards] == []
        else:
            kernel.program.run(kernel.machine_arguments(kernel.signature.bind(given)), blocks=kernel.last_launch.blocks,
                               schedule=order)
        for value, wanted in zip(given[-len(expected):], expected, strict=True):
            if close:
                np.testing.assert_allclose(value, wanted, err_msg=str(order), **close)
            else:
                np.testing.assert_array_equal(value, wanted, err_msg=str(order))


def reported(kernel: Any, *arguments: Any) -> list[tuple[str, str, str]]:
    """Returns code, kind and buffer of the findings of a run, without duplicates."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # only the findings are tested
        kernel(*[value.copy() if isinstance(value, np.ndarray) else value for value in arguments])
    return list(dict.fromkeys((one.code, one.kind, one.buffer) for one in kernel.last_launch.hazards))


def refused(main: Any, switches: dict[str, bool], target: str = "ascendc") -> TileError:
    """The error that a kernel does not compile with; it names the user's line."""
    with pytest.raises(TileError) as caught:
        compiled(main, switches, target).mlir()
    assert caught.value.location is not None, str(caught.value)
    return caught.value
