"""The card of a kernel in a notebook: its signature, chip, modelled time, memories, generated text, and reports to ask for."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tilelang_npu.display import Mlir

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.reports.memory_report import MemoryReport
    from tilelang_npu.simulator import AnyLaunch

MAX_OPS = 200_000
"""The number of ops, estimated for all blocks, up to which a card models the time of a kernel that was not called."""
_CARD = ('<div style="border:1px solid #8a8f98;border-radius:6px;padding:8px 12px;max-width:46em;font-size:0.9em;'
         'line-height:1.5">{}</div>')
_BAR = ('<span style="display:inline-block;width:10em;max-width:30%;height:0.7em;border:1px solid #8a8f98;'
        'background:linear-gradient(to right,#3b7dd8 {share:.1f}%,transparent {share:.1f}%)"></span>')
_REPORTS = (("profile()", "where the time goes, and edits that were tried"), ("explain()", "decisions of the compiler"),
            ("sync_report()", "reasons of waits and barriers"), ("memory_report()", "addresses and live ranges of buffers"),
            ("mlir(\"tile\")", "the text of a stage"))
"""Methods of a kernel with what they return."""


def card(kernel: CompiledKernel, memory: MemoryReport, text: str) -> str:
    """Returns the card of a kernel as HTML, which a notebook shows.

    The time is that of the last call in this thread. If there was none, the time is modelled unless that takes long or the time
    depends on a call's arguments.

    Args:
        kernel: the kernel.
        memory: its memory report.
        text: its HIVM text.
    """
    from tilelang_npu.simulator.result.report import kib_text, time_text

    rows = [f"<b>{escape(kernel.name)}</b> for {escape(kernel.chip.name)}",
            f"<code>{escape(signature_text(kernel))}</code>"]
    launch = _launch(kernel)
    if launch is None:
        rows.append("not called yet: the time depends on a call's arguments, or takes long to model")
    else:
        bounds = dict.fromkeys(part.bound_by for part in launch.parts)
        rows.append(f"{escape(time_text(launch.time_us, launch.error))} modelled, {launch.blocks} "
                    f"block{'s' * (launch.blocks != 1)}; bound by {escape('; '.join(bounds))}")
    rows += [f"{escape(one.name)} of {one.core} {_BAR.format(share=100 * one.used / one.room)} "
             f"{kib_text(one.used)} of {one.room // 1024} KB" for one in memory.memories]
    rows.append(f"<details><summary>HIVM</summary>{Mlir(text)._repr_html_()}</details>")
    asked = "".join(f"<div><code>.{escape(call)}</code> {escape(about)}</div>" for call, about in _REPORTS)
    rows.append(f"<details><summary>reports</summary>{asked}</details>")
    return _CARD.format("".join(f"<div>{row}</div>" for row in rows))


def signature_text(kernel: CompiledKernel) -> str:
    """Returns the parameters that a caller passes and the results, such as ``(A: float16[256, 64], n: int32) -> C: ...``."""
    signature = kernel.signature
    passed = ", ".join(_typed(kernel.params[position]) for position in signature.inputs)
    results = ", ".join(_typed(kernel.params[position]) for position in signature.outputs)
    return f"({passed})" + (f" -> {results}" if results else "")


def _typed(parameter: Parameter) -> str:
    if parameter.shape is None:
        return f"{parameter.name}: {parameter.dtype}"
    return f"{parameter.name}: {parameter.dtype}[{', '.join(map(str, parameter.shape))}]"


def _launch(kernel: CompiledKernel) -> AnyLaunch | None:
    """Returns the last launch of a kernel, or a trace if it is short; None if neither exists."""
    if kernel.last_launch is not None:
        return kernel.last_launch
    return kernel.trace() if kernel._least_ops() <= MAX_OPS else None
