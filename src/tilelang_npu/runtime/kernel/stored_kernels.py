"""Stores whole compiled kernels on disk, so that a later process neither traces the kernel nor loads the IR framework.

An entry contains the compiled Python code and the properties of the kernel that the first run computed. It contains the IR as
text, which is parsed only if it is needed. The key is a digest of everything that tracing and lowering read: the text of the
files of the kernel and of the functions that it calls, the values of its closure and of the globals that it names, its
annotations, the settings, chip and environment, the source of registered plug-ins, and the versions of this package, xDSL,
NumPy and Python. A kernel that reads something else (a library that is not known here, a file, the time) has no key. Such a
kernel is traced in each process, and only its lowered module is cached, by :mod:`tilelang_npu.runtime.cache.entries`.

An entry holds pickled objects and compiled code, both of which can make a process do anything. So it is decoded only after
:mod:`tilelang_npu.runtime.cache.authentication` has found that this user wrote it under this name, and that it was not changed
since. If that check fails, the kernel is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tilelang_npu.errors import TileError
from tilelang_npu.ops.recipes import made, recipe_of
from tilelang_npu.plugins.registry import plugin_key
from tilelang_npu.runtime.cache import authentication, entries
from tilelang_npu.runtime.cache.disk_key import disk_key
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import logger, verbose_log, warn_at
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.settings.jit_settings import Settings
    from tilelang_npu.simulator import Program

KernelT = TypeVar("KernelT", bound="CompiledKernel")

_COMPRESSION = 1  # the fastest level: entries are read more often than written
_WITHOUT_EFFECT_ON_CODE = {
    environment.CACHE_DIR.name, environment.CACHE_KEY.name, environment.JOBS.name, environment.MAX_OPS.name,
    environment.SCHEDULE.name, environment.NUMBERS.name, environment.L2.name, environment.SANITIZE.name,
    environment.TRACEBACK.name,
    environment.LOAD.name, environment.PLUGINS.name}
"""Environment variables on which the compiled kernel does not depend, or of which the key has the effect."""
_FACTS = ("name", "dialect", "remarks", "strips", "idle", "switches", "without", "signature", "_lowering", "_effects",
          "_effects_of_launches", "_blocks_per_point")
"""The attributes of a kernel that an entry contains."""


def key_of(func: PrimFunc, settings: Settings) -> str:
    """Returns the key of a kernel in the cache on disk; kernels with equal keys compile to the same code.

    The key is empty if the kernel is not to be stored: if it depends on something that the key cannot contain, the cache is
    disabled, the cache is to be cleared, or ``debug_root_path`` asks for the kernel's texts.
    """
    if (not entries.is_cache_enabled() or environment.CLEAR_CACHE.is_on() or settings.debug_root_path is not None
            or authentication.secret() is None):
        return ""
    import numpy as np

    try:
        read = disk_key(func)
    except (TypeError, RecursionError) as reason:
        logger.info("%s is not stored for other processes: %s", func.__name__, reason)
        return ""
    chip = select_chip(settings.chip, settings.platform, settings.at)
    variables = sorted((name, value) for name, value in os.environ.items()
                       if name.startswith(("TILELANG_", "TL_")) and name not in _WITHOUT_EFFECT_ON_CODE)
    configs = sorted(map(repr, settings.pass_configs.items())) if isinstance(settings.pass_configs, Mapping) else None
    known = (entries.versions(), plugin_key(), sys.version, np.__version__, read, dialect_of(settings.target, settings.at),
             repr(chip), repr(settings.out_idx), repr(settings.workspace_idx), repr(configs), repr(settings.at), variables)
    return hashlib.sha256(repr(known).encode()).hexdigest()


def load(kind: type[KernelT], key: str, func: PrimFunc, settings: Settings) -> KernelT | None:
    """Returns the kernel that is stored under a key; None if there is none, or if the entry cannot be read.

    Args:
        kind: the class of the returned kernel.
        key: the key from :func:`key_of`.
        func: the function under ``@T.prim_func``.
        settings: the arguments of ``jit``.
    """
    try:
        data: dict[str, Any] = pickle.loads(zlib.decompress(entries.read_entry(key, entries.WHOLE_KERNEL)))
        return _restored(kind, data, key, func, settings)
    except FileNotFoundError:
        return None
    except TileError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever is wrong with the entry, the kernel is compiled again)
        logger.info("stored kernel %s cannot be read and is compiled again: %s", key, error)
        return None


def _restored(kind: type[KernelT], data: Mapping[str, Any], key: str, func: PrimFunc, settings: Settings) -> KernelT:
    from tilelang_npu.simulator import Program

    chip = select_chip(settings.chip, settings.platform, settings.at)
    lowering = data["_lowering"]
    forms = (None if one is None else functools.cache(functools.partial(pickle.loads, one)) for one in data["forms"])
    programs = tuple(Program.restored(one, chip, lambda: lowering.final, form)
                     for one, form in zip(data["programs"], forms, strict=True))
    kernel = kind.__new__(kind)
    vars(kernel).update({name: data[name] for name in _FACTS}, programs=programs, chip=chip)
    kernel._begin(func, settings)
    kernel._store = _storer_of_forms(key, kernel)
    for remark in (*kernel.remarks, *([kernel.idle] if kernel.idle is not None else ())):
        warn_at(remark)
    with verbose_log(settings.verbose):
        lowering.log(0.0)
    return kernel


def store(key: str, kernel: CompiledKernel) -> None:
    """Stores a kernel that has run on disk. A kernel that cannot be pickled is not stored, which is logged.

    The kernel is stored again after a later run in which the simulator generates the code that runs many blocks at once.
    """
    kernel._store = _storer_of_forms(key, kernel)
    try:
        data = {name: getattr(kernel, name) for name in _FACTS} | {
            "programs": [program.as_data() for program in kernel.programs], "forms": list(map(_pickled_forms, kernel.programs))}
        packed = zlib.compress(_pickled(data), _COMPRESSION)
    except (TypeError, AttributeError, pickle.PicklingError) as error:  # its code refers to objects of this process
        logger.info("%s is not stored for other processes: %s", kernel.name, error)
        kernel._store = None
        return
    try:
        entries.write_entry(key, entries.WHOLE_KERNEL, packed)
    except OSError as error:
        logger.info("the kernel is not stored on disk: %s", error)
        kernel._store = None


def _storer_of_forms(key: str, kernel: CompiledKernel) -> Callable[[CompiledKernel], None] | None:
    """Returns a function that stores the kernel again after a run for which code that runs many blocks at once was generated.

    The function stores the kernel only if the stored kernel lacks this code. Returns None if no program lacks it.
    """
    missing = [program for program in kernel.programs if not program.has_forms]

    def store_forms(kernel: CompiledKernel) -> None:
        if any(program.has_forms for program in missing):
            store(key, kernel)

    return store_forms if missing else None


def _pickled_forms(program: Program) -> bytes | None:
    """Returns the code of a program that runs many blocks at once (:meth:`Program.forms`), as a separate pickle.

    A separate pickle is decoded only when many blocks run. Returns None if the code was not generated yet, or cannot be
    pickled.
    """
    try:
        return _pickled(program.forms()) if program.has_forms else None
    except (TypeError, AttributeError, pickle.PicklingError):
        return None


class _Pickler(pickle.Pickler):
    """A pickler for generated code. It pickles a function that another function returned as this other function's name and
    arguments, from which the function is made again.
    """

    def reducer_override(self, value: object) -> tuple[Callable[..., object], tuple[object, ...]]:
        recipe = recipe_of(value)
        return NotImplemented if recipe is None else (made, (recipe[0], *recipe[1]))


def _pickled(value: object) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()
