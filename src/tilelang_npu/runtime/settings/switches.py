"""Compiler switches: the keys of ``pass_configs``, and the one place where their values are checked.

A switch takes effect, or is a documented no-op of TileLang-Ascend (the GPU and TIR keys in its examples), or is refused because
it cannot take effect. A key that is a switch of neither branch of TileLang-Ascend is ignored with a warning. The effect of a
switch is decided by the pass that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.log import warn_at
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey, known_key, unknown_keys

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


_Key = PassConfigKey
_COMBINE, _CV_SYNC = _Key.TL_ASCEND_AUTO_CV_COMBINE, _Key.TL_ASCEND_AUTO_CV_SYNC
# The switches of each dialect, with the behaviour of the other dialect, in which the switch does not exist.
_EFFECTIVE = {
    "ascendc": {_COMBINE: True, _CV_SYNC: True, _Key.TL_ASCEND_AUTO_SYNC: True, _Key.TL_ASCEND_MEMORY_PLANNING: True},
    "npuir": {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER: True, _Key.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: False},
}
_HOME = {key: dialect for dialect, keys in _EFFECTIVE.items() for key in keys}


def resolve(
    pass_configs: Mapping[PassConfigKey | str, object] | None, dialect: str, at: Location | None
) -> dict[str, bool]:
    """Returns the switches that have an effect, by their string keys.

    Args:
        pass_configs: what the user wrote.
        dialect: the dialect of the kernel; each has its own switches.
        at: location of the decorator or call that has them.

    Raises:
        TileError: T705 a value of the wrong type, T720 a switch that cannot take effect.
    """
    if pass_configs is None:
        return {}
    if not isinstance(pass_configs, Mapping):
        msg = f"pass_configs is a {type(pass_configs).__name__}, not a dict"
        raise TileError(msg, code="T705", location=location_of_word("pass_configs", at),
                        help="write pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}")
    switches: dict[str, bool] = {}
    for spelled, value in pass_configs.items():
        key = known_key(spelled)
        if key is None or key not in _HOME:  # it has no effect, or is read by disabled_optimisations
            continue
        if not isinstance(value, bool) and value not in (0, 1):
            msg = f"{key.name} is a switch; {value!r} is neither True nor False"
            raise TileError(msg, code="T705", location=location_of_word(key.name, at), help="set it to True or False")
        switches[key.value] = bool(value)
    for value, wanted in switches.items():
        key = PassConfigKey(value)
        home = _HOME[key]
        if home != dialect and _EFFECTIVE[home][key] != wanted:  # the dialect does not behave as asked for
            msg = f"{key.name}: {wanted} has no effect in the {dialect} dialect"
            raise TileError(msg, code="T720", location=location_of_word(key.name, at),
                            help=f"remove it, or write the kernel for target={home!r}, whose switch it is")
    return switches


def warn_of_unknown_keys(
    pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None
) -> tuple[TileError, ...]:
    """Warns of the keys that no version of TileLang for Ascend has; returns the warnings. ``at`` is as for ``resolve``."""
    effective = ", ".join(sorted(key.name for key in _HOME))
    found = tuple(unknown_keys(pass_configs if isinstance(pass_configs, Mapping) else None, at, effective))
    for remark in found:
        warn_at(remark)
    return found


def disabled_optimisations(pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None) -> tuple[str, ...]:
    """Returns the optimisations that are off: those in ``tl.disable`` and in ``TILELANG_NPU_WITHOUT``.

    Args:
        pass_configs: what the user wrote, after :func:`resolve` has checked it.
        at: location of the decorator or call that has them.

    Raises:
        TileError: T705 ``tl.disable`` is not a list of names, T712 there is no optimisation of a name, T720 multi-buffering is
            both switched on and off.
    """
    from tilelang_npu.transforms.ir.optimisations import checked

    names: list[str] = [name.strip() for name in environment.WITHOUT.text().split(",") if name.strip()]
    keys = {known_key(spelled): value for spelled, value in (pass_configs or {}).items()}
    value = keys.get(_Key.TL_DISABLE, [])
    where = location_of_word(_Key.TL_DISABLE.value, at)
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in listed):
        msg = f"{_Key.TL_DISABLE.value} takes a list of names of optimisations, not {value!r}"
        raise TileError(msg, code="T705", location=where, help='write "tl.disable": ["banks"]')
    if "multi-buffer" in listed and keys.get(_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER):
        msg = f"multi-buffer is switched on by {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER.name} and off by {_Key.TL_DISABLE.value}"
        raise TileError(msg, code="T720", location=where, help="remove one of them")
    for name in listed:
        checked([name], location_of_word(name, at))
    return checked([*names, *listed], where)


def check_switches(switches: Mapping[str, bool], module: ModuleOp, at: Location | None) -> TileError | None:
    """Checks the switches against a traced kernel: flags between cores can only be inserted if the compiler splits the kernel,
    or if the author named the core of each statement.

    Returns:
        A warning of a switch that changes nothing, as the kernel sets its flags by hand; else None.

    Raises:
        TileError: T720, a switch cannot take effect.
    """
    if not switches.get(_CV_SYNC.value) or switches.get(_COMBINE.value):
        return None
    from tilelang_npu.dialects import hivm, tile

    ops = list(module.walk())
    if not any(isinstance(op, tile.OnCoreOp) for op in ops):
        raise TileError(
            f"{_CV_SYNC.name} has no effect without {_COMBINE.name} in a kernel without T.Scope", code="T720",
            location=location_of_word(_CV_SYNC.name, at),
            notes=["flags are inserted between work of the Cube and the Vector core; this kernel names no core"],
            help=f"add {_COMBINE.name}: True, or remove {_CV_SYNC.name}")
    if any(isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)) for op in ops):
        return TileError(f"{_CV_SYNC.name} changes nothing: the kernel sets the flags between its cores by hand", code="T720",
                         location=location_of_word(_CV_SYNC.name, at), help="remove the switch, or the flags")
    return None

