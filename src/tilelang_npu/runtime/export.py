"""A kernel as files for the vendor's toolchain: its HIVM, a manifest of its arguments, and how the compiler is called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_npu.runtime.log import logger
from tilelang_npu.runtime.lowering import FINAL
from tilelang_npu.runtime.writing import file_name, replaced, write_whole

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from tilelang_npu.runtime.coverage import ParameterEffect
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["dump", "export"]

_README = """\
# {name} for {chip}

Written by tilelang_npu {version}.

- `{name}.mlir`: HIVM with addresses, waits and one function per core. It is what the simulator ran.
- `{name}.auto.mlir`: the same kernel before that: one function, memories known, the rest left to the compiler.
- `{name}.json`: the launches in order, what a launcher passes, in order, and what it allocates.

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


def export(kernel: JITKernel, directory: Path, effects: Mapping[int, ParameterEffect],
           blocks: Sequence[int | None]) -> list[Path]:
    """Write the files; see ``JITKernel.export``.

    Args:
        kernel: the kernel.
        directory: where to.
        effects: what it does to its arguments, by position.
        blocks: how many each launch of a call has; None where the call decides.
    """
    from tilelang_npu import __version__

    facts = _manifest(kernel, effects, blocks)
    launched = [_LAUNCH.format(
        number=number, symbol=one["symbol"], magic=_MAGIC[one["cores"]], workspace=one["workspace_bytes_per_block"],
        blocks=f"{one['blocks']} blocks" if one["blocks"] is not None else "as many blocks as the grid has points")
        for number, one in enumerate(facts["launches"], 1)]
    name = file_name(kernel.name)
    readme = _README.format(name=name, chip=kernel.chip.name, version=__version__, launches="".join(launched))
    files = {f"{name}.mlir": kernel.mlir(), f"{name}.auto.mlir": kernel.mlir("hivm-auto"),
             f"{name}.json": json.dumps(facts, indent=2) + "\n", "README.md": readme}
    for file, text in files.items():
        write_whole(directory / file, text)
    return [directory / file for file in files]


def _manifest(kernel: JITKernel, effects: Mapping[int, ParameterEffect], blocks: Sequence[int | None]) -> dict[str, Any]:
    """What a launcher must know: sizes in elements (those that a call decides by name), workspace in bytes."""
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
        fact: dict[str, Any] = {"name": parameter.name, "role": role, "type": parameter.element.mlir}
        if parameter.shape is not None:
            fact["shape"] = ["?" if size < 0 else size for size in parameter.shape]
        if role == "user":
            own = kernel.params[position].shape if position < len(kernel.params) else None
            if own is not None:
                fact["shape"] = [size if isinstance(size, int) else str(size) for size in own]
            fact["direction"] = "in" if own is None else directions.get(position, "unused")
            position += 1
        arguments.append(fact)
    launches = [{"symbol": program.name, "cores": "MIX" if program.mixed else program.functions[0].core,
                 "functions": [_name(function) for function in program.device_functions], "blocks": count,
                 "workspace_bytes_per_block": program.workspace if program.mixed else 0}
                for program, count in zip(kernel.programs, blocks, strict=True)]
    return {"name": kernel.name, "chip": kernel.chip.hivm_target or kernel.chip.name, "launches": launches,
            "arguments": arguments}


def _name(function: FuncOp) -> str:
    return function.sym_name.data


def dump(kernel: JITKernel, directory: Path) -> None:
    """Write a kernel's first and last stage into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for stage, suffix in (("tile", "tile.mlir"), (FINAL, "mlir")):
        with replaced(directory / f"{file_name(kernel.name)}.{suffix}") as file:
            file.write(kernel.mlir(stage).encode())
    logger.info("%s: texts written to %s", kernel.name, directory)
