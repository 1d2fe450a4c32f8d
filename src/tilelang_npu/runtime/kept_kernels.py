"""Kernels kept whole, for a process that calls the same one again: it neither traces, nor loads the IR framework.

What is kept is the compiled Python and what was found out of the kernel when it ran first; the IR is in
there as text, and read when somebody asks for it. The key is a digest of all that tracing and lowering read: the text of the
files that the kernel and what it calls stand in, the values of its closure and of the globals that it names, its annotations,
the settings, chip and environment, and the versions of this package, xDSL, NumPy and Python. Of what a kernel could read
besides (a library that is not known here, a file, the time) nobody can tell whether it is the same: such a kernel is traced
each time, and the cache of :mod:`tilelang_npu.runtime.cache` saves its passes.

An entry holds pickled objects and compiled code, both of which can make a process do anything. So it is decoded only after
:mod:`tilelang_npu.runtime.cache_authentication` has found that this user wrote it under this name and nobody changed it since.
Where that fails, the kernel is compiled again.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import cache as cached
from functools import partial
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError
from tilelang_npu.ops.recipes import made, recipe_of
from tilelang_npu.runtime import cache, cache_authentication, environment
from tilelang_npu.runtime.disk_key import disk_key
from tilelang_npu.runtime.log import logger, told, warn_at
from tilelang_npu.runtime.targets import dialect_of, select_chip

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.factory import Settings
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.runtime.lowering import Lowering
    from tilelang_npu.simulator import Program

__all__ = ["keep", "kept", "key_of"]

_LEVEL = 1  # of compression: what is written is read often
_OF_RUNS = {environment.CACHE_DIR.name, environment.CACHE_KEY.name, environment.JOBS.name, environment.MAX_OPS.name,
            environment.SCHEDULE.name, environment.NUMBERS.name, environment.SANITIZE.name, environment.TRACEBACK.name}
"""Variables that decide nothing of what is compiled."""


def key_of(func: PrimFunc, settings: Settings) -> str:
    """Equal where the same kernel would come out; empty where nobody can tell, or nothing is to be kept."""
    if (not cache.is_cache_enabled() or environment.CLEAR_CACHE.is_on() or settings.debug_root_path is not None
            or cache_authentication.secret() is None):
        return ""
    import numpy as np

    try:
        read = disk_key(func)
    except (TypeError, RecursionError) as reason:
        logger.info("%s is not kept for other processes: %s", func.__name__, reason)
        return ""
    chip = select_chip(settings.chip, settings.platform, settings.at)
    variables = sorted((name, value) for name, value in os.environ.items()
                       if name.startswith(("TILELANG_", "TL_")) and name not in _OF_RUNS)
    configs = sorted(map(repr, settings.pass_configs.items())) if isinstance(settings.pass_configs, Mapping) else None
    known = (cache.versions(), sys.version, np.__version__, read, dialect_of(settings.target, settings.at), repr(chip),
             repr(settings.out_idx), repr(settings.workspace_idx), repr(configs), repr(settings.at), variables)
    return hashlib.sha256(repr(known).encode()).hexdigest()


def kept(key: str, func: PrimFunc, settings: Settings) -> JITKernel | None:
    """The kernel of that key; None where none is kept that can be read."""
    try:
        content = cache.read_entry(key, cache.KEPT)
        data: dict[str, Any] = pickle.loads(zlib.decompress(content))
        found = _restored(data, func, settings)
        found.keep = _keeps_more(key, found)
        return found
    except FileNotFoundError:
        return None
    except TileError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever is wrong with it, the kernel is compiled again)
        logger.info("kept kernel %s cannot be read and is made again: %s", key, error)
        return None


_FACTS = ("name", "dialect", "remarks", "idle", "switches", "without", "signature", "_lowering", "_effects",
          "_effects_of_launches", "_blocks_per_point")


def _data(kernel: JITKernel) -> dict[str, Any]:
    """All that running a kernel takes, and what has been found out of it; no IR but as text.

    Raises:
        TypeError: a kernel of this kind is not to be had without its IR.
    """
    return {name: getattr(kernel, name) for name in _FACTS} | {
        "programs": [program.as_data() for program in kernel.programs], "forms": list(map(_dumped_forms, kernel.programs))}


def _dumped_forms(program: Program) -> bytes | None:
    """The forms that many blocks of a program run in, which are read when many are to run; None where nobody has made them, or
    this process alone can have them."""
    try:
        return _dumped(program.forms()) if program.has_forms else None
    except (TypeError, AttributeError, pickle.PicklingError):
        return None


def _restored(data: Mapping[str, Any], func: PrimFunc, settings: Settings) -> JITKernel:
    """The kernel of such data; its IR is read when somebody asks for it."""
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.simulator import Program

    chip = select_chip(settings.chip, settings.platform, settings.at)
    lowering: Lowering = data["_lowering"]
    forms = (None if one is None else cached(partial(pickle.loads, one)) for one in data["forms"])
    programs = tuple(Program.restored(one, chip, lambda: lowering.final, form)
                     for one, form in zip(data["programs"], forms, strict=True))
    made = JITKernel.__new__(JITKernel)
    vars(made).update({name: data[name] for name in _FACTS}, programs=programs, chip=chip)
    made.begin(func, settings)
    for remark in (*made.remarks, *([made.idle] if made.idle is not None else ())):
        warn_at(remark)
    with told(settings.verbose):
        lowering.log(0.0)
    return made


class _Pickler(pickle.Pickler):
    """Names the functions of generated code that functions made by what they were made from."""

    def reducer_override(self, thing: Any) -> Any:
        found = recipe_of(thing)
        return NotImplemented if found is None else (made, (found[0], *found[1]))


def _dumped(thing: object) -> bytes:
    whole = io.BytesIO()
    _Pickler(whole).dump(thing)
    return whole.getvalue()


def keep(key: str, kernel: JITKernel) -> None:
    """Keep a kernel that has run, where that is possible; and once more when many of its blocks have."""
    kernel.keep = _keeps_more(key, kernel)
    try:
        packed = zlib.compress(_dumped(_data(kernel)), _LEVEL)
    except (TypeError, AttributeError, pickle.PicklingError) as error:  # its code has what only this process has
        logger.info("%s is not kept for other processes: %s", kernel.name, error)
        kernel.keep = None
        return
    try:
        cache.write_entry(key, cache.KEPT, packed)
    except OSError as error:
        logger.info("the kernel is not kept on disk: %s", error)
        kernel.keep = None


def _keeps_more(key: str, kernel: JITKernel) -> Callable[[JITKernel], None] | None:
    """What keeps a kernel again when there are more forms of it than now; None where all are there."""
    missing = [program for program in kernel.programs if not program.has_forms]

    def keep_more(kernel: JITKernel) -> None:
        if any(program.has_forms for program in missing):
            keep(key, kernel)

    return keep_more if missing else None
