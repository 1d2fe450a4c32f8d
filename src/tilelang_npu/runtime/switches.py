"""Compiler switches: the keys of ``pass_configs``, and the one place where their values are checked.

A switch takes effect, or is a documented no-op of TileLang-Ascend (the GPU and TIR keys that its examples carry along), or is
refused because it could not take effect. Keys that are no switch of either branch are warned of and otherwise ignored. The pass
that reads a switch decides what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime import environment
from tilelang_npu.runtime.log import warn_at
from tilelang_npu.runtime.pass_config_keys import PassConfigKey, known_key, unknown_keys
from tilelang_npu.runtime.pointing import find

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["PassConfigKey", "check_kernel", "disabled", "resolve", "warn_without_effect"]


_Key = PassConfigKey
_COMBINE, _CV_SYNC = _Key.TL_ASCEND_AUTO_CV_COMBINE, _Key.TL_ASCEND_AUTO_CV_SYNC
# The switches of each dialect, with what holds in the other one, where nobody can switch it.
_EFFECTIVE = {
    "ascendc": {_COMBINE: True, _CV_SYNC: True, _Key.TL_ASCEND_AUTO_SYNC: True, _Key.TL_ASCEND_MEMORY_PLANNING: True},
    "npuir": {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER: True, _Key.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: False},
}
_HOME = {key: dialect for dialect, keys in _EFFECTIVE.items() for key in keys}


def resolve(
    pass_configs: Mapping[PassConfigKey | str, object] | None, dialect: str, at: Location | None
) -> dict[str, bool]:
    """The switches that the compiler is to see, by their string keys; what has no effect anywhere is left out.

    Args:
        pass_configs: what the user wrote.
        dialect: the dialect of the kernel; each has its own switches.
        at: the decorator or call that carries it, for the errors.

    Raises:
        TileError: T705 a value of the wrong type, T720 a switch that could not take effect.
    """
    if pass_configs is None:
        return {}
    if not isinstance(pass_configs, Mapping):
        msg = f"pass_configs is a {type(pass_configs).__name__}, not a dict"
        raise TileError(msg, code="T705", location=find("pass_configs", at),
                        help="write pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}")
    switches: dict[str, bool] = {}
    for spelled, value in pass_configs.items():
        key = known_key(spelled)
        if key is None or key not in _HOME:  # without an effect, or for ``disabled``
            continue
        if not isinstance(value, bool) and value not in (0, 1):
            msg = f"{key.name} is a switch; {value!r} is neither True nor False"
            raise TileError(msg, code="T705", location=find(key.name, at), help="set it to True or False")
        switches[key.value] = bool(value)
    _check(switches, dialect, at)
    return switches


def warn_without_effect(
    pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None
) -> tuple[TileError, ...]:
    """Warn of the keys that no version of TileLang for Ascend has; returns the warnings. ``at`` is as for ``resolve``."""
    found = tuple(unknown_keys(pass_configs if isinstance(pass_configs, Mapping) else None, at, _listed()))
    for remark in found:
        warn_at(remark)
    return found


def disabled(pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None) -> tuple[str, ...]:
    """The optimisations that are off: those that ``tl.disable`` names and those that ``TILELANG_NPU_WITHOUT`` does.

    Args:
        pass_configs: what the user wrote, as ``resolve`` has checked it.
        at: the decorator or call that carries it, for the errors.

    Raises:
        TileError: T705 no list of names, T712 a name of no optimisation, T720 slots that are asked for and switched off.
    """
    from tilelang_npu.transforms.ir.optimisations import checked

    names: list[str] = [name.strip() for name in environment.WITHOUT.text().split(",") if name.strip()]
    keys = {known_key(spelled): value for spelled, value in (pass_configs or {}).items()}
    value = keys.get(_Key.TL_DISABLE, [])
    where = find(_Key.TL_DISABLE.value, at)
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in listed):
        msg = f"{_Key.TL_DISABLE.value} takes names of optimisations; {value!r} is no list of them"
        raise TileError(msg, code="T705", location=where, help='write "tl.disable": ["banks"]')
    if "multi-buffer" in listed and keys.get(_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER):
        msg = f"{_Key.TL_DISABLE.value} switches off what {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER.name} switches on"
        raise TileError(msg, code="T720", location=where, help="remove one of them")
    for name in listed:
        checked([name], find(name, at))
    return checked([*names, *listed], where)


def check_kernel(switches: Mapping[str, bool], module: ModuleOp, at: Location | None) -> TileError | None:
    """What a kernel makes of the switches: flags between the cores, where the compiler does not split the kernel, need cores
    that the author named.

    Returns:
        What the author should know of a switch that changes nothing because the kernel does the same by hand.

    Raises:
        TileError: T720, a switch could not take effect.
    """
    if not switches.get(_CV_SYNC.value) or switches.get(_COMBINE.value):
        return None
    from tilelang_npu.dialects import hivm, tile

    ops = list(module.walk())
    if not any(isinstance(op, tile.OnCoreOp) for op in ops):
        raise TileError(
            f"{_CV_SYNC.name} has no effect without {_COMBINE.name} in a kernel without T.Scope", code="T720",
            location=find(_CV_SYNC.name, at),
            notes=["flags are inserted where Cube and Vector meet; nothing here says which work is whose"],
            help=f"add {_COMBINE.name}: True, or remove {_CV_SYNC.name}")
    if any(isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)) for op in ops):
        return TileError(f"{_CV_SYNC.name} changes nothing: the kernel sets the flags between its cores by hand", code="T720",
                         location=find(_CV_SYNC.name, at), help="remove the switch, or the flags")
    return None


def _listed() -> str:
    return ", ".join(sorted(key.name for key in _HOME))


def _check(switches: Mapping[str, bool], dialect: str, at: Location | None) -> None:
    """Refuse what does nothing: a switch of the other dialect that asks for another thing than holds here, and a clash."""
    for value, wanted in switches.items():
        key = PassConfigKey(value)
        home = _HOME[key]
        if home != dialect and _EFFECTIVE[home][key] != wanted:
            msg = f"{key.name}: {wanted} has no effect in the {dialect} dialect"
            raise TileError(msg, code="T720", location=find(key.name, at),
                            help=f"remove it, or write the kernel for target={home!r}, whose switch it is")
