"""The front end, which translates the Python source of a kernel to the tile dialect.

``trace`` walks the statements of the kernel's syntax tree, evaluates the expressions with lexical scoping, and emits one
module. The IR framework is only imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred

if TYPE_CHECKING:
    from tilelang_npu.frontend.parameters import Parameter
    from tilelang_npu.frontend.tracing import Traced, trace

__all__ = ["Parameter", "Traced", "trace"]

__getattr__ = deferred(__name__, {"Parameter": "parameters", "Traced": "tracing", "trace": "tracing"})
