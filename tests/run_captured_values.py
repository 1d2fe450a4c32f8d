"""A script: compiles and runs the kernels of ``captured_values`` in the current directory, and writes the values that they
read.

Arguments: the value, the value that it is changed to afterwards (nothing for no change), the file for the results.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import tilelang_npu as tilelang


def _read(factory: Any) -> tuple[float | str, Any]:
    """The value that the kernel of a factory has read, and the kernel."""
    try:
        kernel = factory()
        return float(kernel()[0]), kernel
    except Exception as error:  # noqa: BLE001  (the test shows it)
        return f"{type(error).__name__}: {error}", None


def _results(name: str, changed: float | None) -> dict[str, Any]:
    for module in ("conf", "folder", "folder.conf2"):
        sys.modules.pop(module, None)
    module = importlib.import_module(name)
    factory = tilelang.jit(module.make, out_idx=[-1], target="npuir")
    value, kernel = _read(factory)
    found: dict[str, Any] = {"value": value}
    if kernel is not None:
        found["whole"] = isinstance(kernel._lowering._traced, bytes)
    if changed is not None:
        module.change(changed)
        found["after"] = _read(factory)[0]
    return found


def main() -> None:
    changed = float(sys.argv[2]) if sys.argv[2] else None
    target = Path(sys.argv[3])
    sys.path.insert(0, str(Path.cwd()))
    found = {}
    kept = dict(vars(builtins)), random.random, list(sys.argv), dict(os.environ)
    for file in sorted(Path.cwd().glob("way_*.py")):
        if changed is None and file.stem.endswith("_factory"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[file.stem] = _results(file.stem, changed)
        vars(builtins).update(kept[0])
        random.random, sys.argv[:] = kept[1], kept[2]
        os.environ.clear()
        os.environ.update(kept[3])
    target.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
