"""Checks compiler switches, which are the entries of ``pass_configs``.

A switch takes effect, or has no effect in TileLang-Ascend either (the GPU and TIR keys in its examples), or raises an error
because it cannot take effect in the kernel. A key that neither branch of TileLang-Ascend knows is ignored with a warning. The
passes implement the effects of the switches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.log import warn_at
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey, known_key, unknown_keys
from tilelang_npu.source_dialects import RequestedDialect
from tilelang_npu.transforms.infra.options import UPSTREAM

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


_Key = PassConfigKey
_COMBINE, _CV_SYNC = _Key.TL_ASCEND_AUTO_CV_COMBINE, _Key.TL_ASCEND_AUTO_CV_SYNC
# The switches of each dialect, with the behaviour of the other dialect, in which the switch does not exist.
_EFFECTIVE = {
    "ascendc": {_COMBINE: True, _CV_SYNC: True, _Key.TL_ASCEND_AUTO_SYNC: True, _Key.TL_ASCEND_MEMORY_PLANNING: True,
                 _Key.TL_ASCEND_TAIL_MASK: False},
    "npuir": {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER: True, _Key.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: False},
}
_HOME = {key: dialect for dialect, keys in _EFFECTIVE.items() for key in keys}


def resolve(
    pass_configs: Mapping[PassConfigKey | str, object] | None, dialect: RequestedDialect, at: Location | None
) -> dict[str, bool]:
    """Checks the user's ``pass_configs``, and returns the values of the switches that have an effect, by their string keys.

    ``TILELANG_NPU_AS=upstream`` adds a switch to the result.

    Args:
        pass_configs: the ``pass_configs`` that the user wrote; None for none.
        dialect: the dialect of the kernel, ``"ascendc"`` or ``"npuir"``, which has its own switches; ``"auto"`` has none.
        at: the source location of the decorator or call with these ``pass_configs``.

    Raises:
        TileError: T705 a value has the wrong type, T720 a switch of the other dialect cannot take effect.
    """
    switches: dict[str, bool] = {UPSTREAM: True} if environment.as_upstream() else {}
    if pass_configs is None:
        return switches
    if not isinstance(pass_configs, Mapping):
        msg = f"pass_configs must be a dict, not a {type(pass_configs).__name__}"
        raise TileError(msg, code="T705", location=location_of_word("pass_configs", at),
                        help="write pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}")
    for spelled, value in pass_configs.items():
        key = known_key(spelled)
        if key is None or key not in _HOME:  # it has no effect, or is read by disabled_optimisations
            continue
        if not isinstance(value, bool) and value not in (0, 1):
            msg = f"{key.name} is a switch; {value!r} is neither True nor False"
            raise TileError(msg, code="T705", location=location_of_word(key.name, at), help="set the switch to True or False")
        switches[key.value] = bool(value)
    for value, wanted in switches.items():
        if value == UPSTREAM:
            continue
        key = PassConfigKey(value)
        home = _HOME[key]
        if home != dialect and _EFFECTIVE[home][key] != wanted:  # the dialect does not behave as asked for
            msg = f"{key.name}: {wanted} has no effect in the {dialect} dialect"
            raise TileError(msg, code="T720", location=location_of_word(key.name, at),
                            help=f"remove {key.name}, which is a switch of the {home} dialect, or compile the kernel with "
                                 f"target={home!r}")
    return switches


def warn_of_unknown_keys(
    pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None
) -> tuple[TileError, ...]:
    """Issues a warning (T704) for each key that neither branch of TileLang-Ascend knows, and returns the warnings.

    Args:
        pass_configs: the ``pass_configs`` that the user wrote; None for none.
        at: the source location of the decorator or call with these ``pass_configs``.
    """
    effective = ", ".join(sorted(key.name for key in _HOME))
    found = tuple(unknown_keys(pass_configs if isinstance(pass_configs, Mapping) else None, at, effective))
    for remark in found:
        warn_at(remark)
    return found


def disabled_optimisations(pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None) -> tuple[str, ...]:
    """Returns the names of the optimisations that are switched off.

    These are the optimisations in ``tl.disable`` and those in ``TILELANG_NPU_WITHOUT``. With ``TILELANG_NPU_AS=upstream``, the
    optimisations that TileLang-Ascend's own compilers lack are added.

    Args:
        pass_configs: the ``pass_configs`` that the user wrote, after :func:`resolve` has checked them.
        at: the source location of the decorator or call with these ``pass_configs``.

    Raises:
        TileError: T705 ``tl.disable`` is not a list of names, T712 a name is not that of an optimisation, T720 multi-buffering
            is both switched on and off.
    """
    from tilelang_npu.transforms.infra.optimisations import UPSTREAM_LACKS, validate_optimisations

    names: list[str] = [name.strip() for name in environment.WITHOUT.text().split(",") if name.strip()]
    keys = {known_key(spelled): value for spelled, value in (pass_configs or {}).items()}
    value = keys.get(_Key.TL_DISABLE, [])
    where = location_of_word(_Key.TL_DISABLE.value, at)
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in listed):
        msg = f"{_Key.TL_DISABLE.value} must be a list of names of optimisations, not {value!r}"
        raise TileError(msg, code="T705", location=where, help='write "tl.disable": ["banks"]')
    if "multi-buffer" in listed and keys.get(_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER):
        msg = f"multi-buffer is switched on by {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER.name} and off by {_Key.TL_DISABLE.value}"
        raise TileError(msg, code="T720", location=where, help="remove one of them")
    for name in listed:
        validate_optimisations([name], location_of_word(name, at))
    return validate_optimisations([*names, *listed, *(UPSTREAM_LACKS if environment.as_upstream() else ())], where)


def complete_switches(switches: Mapping[str, bool], module: ModuleOp, at: Location | None
                      ) -> tuple[Mapping[str, bool], TileError | None]:
    """Completes the switches of a traced kernel of the ascendc dialect, and checks the one for automatic flags between the
    cores.

    Such flags can be inserted only if the compiler splits the kernel into a Cube and a Vector part (another switch), or if the
    author assigns statements to cores with ``T.Scope``. Without such statements, the kernel is split if the author has not
    switched this off; TileLang-Ascend splits since August 2026.

    Args:
        switches: the switches from :func:`resolve`.
        module: the traced kernel.
        at: the source location of the decorator or call with these switches.

    Returns:
        The switches; and a warning if the switch changes nothing because the kernel sets the flags by hand, else None.

    Raises:
        TileError: T720, the switch cannot take effect.
    """
    if not switches.get(_CV_SYNC.value) or switches.get(_COMBINE.value):
        return switches, None
    from tilelang_npu.dialects import hivm, tile

    ops = list(module.walk())
    if not any(isinstance(op, tile.OnCoreOp) for op in ops):
        if _COMBINE.value not in switches:
            return {**switches, _COMBINE.value: True}, None
        raise TileError(
            f"{_CV_SYNC.name} has no effect without {_COMBINE.name} in a kernel without T.Scope", code="T720",
            location=location_of_word(_CV_SYNC.name, at),
            notes=["flags are inserted between the statements of the Cube core and those of the Vector cores; this kernel "
                   "assigns no statement to a core"],
            help=f"remove {_COMBINE.name}: False, or {_CV_SYNC.name}")
    if any(isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)) for op in ops):
        return switches, TileError(
            f"{_CV_SYNC.name} changes nothing: the kernel sets the flags between its cores by hand", code="T720",
            location=location_of_word(_CV_SYNC.name, at), help="remove the switch, or the flags")
    return switches, None

