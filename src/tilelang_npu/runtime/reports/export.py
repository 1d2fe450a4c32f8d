"""Exports a kernel for the vendor's toolchain: its HIVM text, a description of its arguments, and the compiler's command lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tilelang_npu.runtime.settings.file_writing import file_name, write_whole

if TYPE_CHECKING:
    from tilelang_npu.runtime.checks.unwritten_results import ParameterEffect
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.kernel.lowering import Lowering

_README = """\
# {name} for {chip}

Written by tilelang_npu {version}.

- `{name}.mlir`: HIVM with addresses, waits and one function per core. The simulator ran this text.
- `{name}.auto.mlir`: the same kernel at an earlier stage: one function with memory spaces; the compiler plans and synchronises
  it.
- `{name}.json`: the launches in order, the arguments that a launcher passes, in order, and the memory that it allocates.

## Compiling

With CANN's environment set (`source set_env.sh`), either let the compiler plan and synchronise,

```sh
bishengir-compile {name}.auto.mlir -enable-hivm-compile=true -o {name}.o
```

or keep the plan and the waits of this file, and switch off the passes that would make their own:

```sh
bishengir-compile {name}.mlir -enable-hivm-compile=true --disable-hivm-auto-inject-sync \\
  --disable-auto-inject-block-sync --disable-auto-cv-work-space-manage --disable-hivm-tensor-compile -o {name}.o
```

## Launching

{launches}
The arguments are those of `{name}.json` in their order. `ffts` is the address that the runtime gives for flags between cores;
the lock and the workspace are device memory.
"""
_LAUNCH = """\
{number}. Register `{symbol}` of the binary ({magic}), and launch {blocks}. Each block has {workspace} bytes of workspace.
"""
_MAGIC = {"AIV": "RT_DEV_BINARY_MAGIC_ELF_AIVEC", "AIC": "RT_DEV_BINARY_MAGIC_ELF_AICUBE", "MIX": "RT_DEV_BINARY_MAGIC_ELF"}


class _LaunchFacts(TypedDict):
    symbol: str
    cores: str
    functions: list[str]
    blocks: int | None
    workspace_bytes_per_block: int


class _Manifest(TypedDict):
    name: str
    chip: str
    launches: list[_LaunchFacts]
    arguments: list[dict[str, object]]


def export(kernel: CompiledKernel, lowering: Lowering, directory: Path, effects: Mapping[int, ParameterEffect],
           blocks: Sequence[int | None]) -> list[Path]:
    """Writes a kernel's HIVM text and the data for a launcher to a directory, and returns the files; see ``JITKernel.export``.

    Args:
        kernel: the kernel.
        lowering: the kernel's modules after each stage.
        directory: the directory to write to, which is created.
        effects: the kernel's accesses to its parameters, by position.
        blocks: the number of blocks of each launch; None for a launch whose number depends on the call.
    """
    from tilelang_npu import __version__
    from tilelang_npu.dialects.text import print_module

    facts = _manifest(kernel, effects, blocks)
    launched = [_LAUNCH.format(
        number=number, symbol=one["symbol"], magic=_MAGIC[one["cores"]], workspace=one["workspace_bytes_per_block"],
        blocks=f"{one['blocks']} blocks" if one["blocks"] is not None else "as many blocks as the grid has points")
        for number, one in enumerate(facts["launches"], 1)]
    name = file_name(kernel.name)
    readme = _README.format(name=name, chip=kernel.chip.name, version=__version__, launches="".join(launched))
    files = {f"{name}.mlir": print_module(lowering.final), f"{name}.auto.mlir": print_module(lowering.module("hivm-auto")),
             f"{name}.json": json.dumps(facts, indent=2) + "\n", "README.md": readme}
    for file, text in files.items():
        write_whole(directory / file, text)
    return [directory / file for file in files]


def _manifest(kernel: CompiledKernel, effects: Mapping[int, ParameterEffect], blocks: Sequence[int | None]) -> _Manifest:
    """Returns the data that a launcher of the kernel needs, such as the parameters, the grid and the workspace.

    Sizes are in elements, and symbolic dimensions are given by name; the workspace is in bytes.
    """
    from tilelang_npu.simulator.run.arguments import GRID
    from tilelang_npu.simulator.run.compile_functions import has_grid, parameters

    entry = kernel.programs[0].device_functions[0]  # all launches take the same arguments
    declared = parameters(entry)
    grid = declared[-GRID:] if has_grid(entry, declared) else []
    directions = {position: ("in" if not effect.writes else "in and out" if effect.reads else "out")
                  for position, effect in effects.items()}
    arguments = []
    position = 0
    for parameter in declared:
        role = "grid" if parameter in grid else parameter.role
        fact: dict[str, object] = {"name": parameter.name, "role": role, "type": parameter.element.mlir}
        if parameter.shape is not None:
            fact["shape"] = ["?" if size < 0 else size for size in parameter.shape]
        if role == "user":
            own = kernel.params[position].shape if position < len(kernel.params) else None
            if own is not None:
                fact["shape"] = [size if isinstance(size, int) else str(size) for size in own]
            fact["direction"] = "in" if own is None else directions.get(position, "unused")
            position += 1
        arguments.append(fact)
    launches: list[_LaunchFacts] = [{"symbol": program.name, "cores": "MIX" if program.mixed else program.functions[0].core,
                 "functions": [function.sym_name.data for function in program.device_functions], "blocks": count,
                 "workspace_bytes_per_block": program.workspace if program.mixed else 0}
                for program, count in zip(kernel.programs, blocks, strict=True)]
    return {"name": kernel.name, "chip": kernel.chip.hivm_target or kernel.chip.name, "launches": launches,
            "arguments": arguments}
