"""HACC: attributes of functions and modules on an NPU, such as kernel or host code, roles of arguments, the target chip.

AscendNPU-IR defines which functions may carry which of these attributes, but never verifies this: it attaches the check to
``func.func``, where the check does not run. So this module does not verify it either.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilelang_npu import target
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr, MarkerAttr, NumberAttr, SymbolAttr, TextAttr, define_attributes
from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.mlir.dlti import DataLayoutEntryAttr
from tilelang_npu.target import Features


class FunctionKindAttr(EnumAttr, attr_name="hacc.function_kind", cases={"HOST": 1, "DEVICE": 2}):
    """Whether a function runs on the host or on the device. Every kernel must have this attribute."""


class ArgTypeAttr(EnumAttr, attr_name="hacc.arg_type",
                  cases="ffts_base_address input output input_and_output workspace sync_block_lock tiling_key tiling_data "
                        "tiling_struct mesh_arg sanitizer_addr gm_addr sub_workspace"):
    """The role of a kernel argument, such as input, output, workspace or tiling data."""


class HostFuncTypeAttr(EnumAttr, attr_name="hacc.host_func_type", start=1,
                       cases="host_entry tiling_function infer_output_shape_function infer_workspace_shape_function "
                             "infer_sync_block_lock_num_function infer_sync_block_lock_init_function "
                             "get_tiling_struct_size_function infer_task_type_function infer_vf_mode_function"):
    """The purpose of a host function: the entry point, or the value that the function computes for a kernel."""


HOST_FUNCTION_REFERENCES = define_attributes(
    SymbolAttr, "hacc", [case for case in HostFuncTypeAttr.CASES if case != "host_entry"],
    "The symbol of the host function that computes this value for a kernel: ``#{}<@f>``.")
(RenameFuncAttr,) = define_attributes(SymbolAttr, "hacc", ["rename_func"], "The new name for a function: ``#{}<@f>``.")
MARKERS = define_attributes(MarkerAttr, "hacc", (
    "hivmc_compatible_print", "export_as_dag", "dummy_func", "external_function_path", "cached_io", "no_io_alias",
    "block_dim", "simt_module"), "``#{}``: an attribute without contents, of which only the presence counts.")


@irdl_attr_definition
class TargetAttr(TextAttr):
    """The chip that a module is for: ``#hacc.target<"Ascend910B3">``. The name is not verified."""

    name = "hacc.target"


@irdl_attr_definition
class HIVMCVersionAttr(TextAttr):
    """The version of the vendor's back end: ``#hacc.hivmc_version<"0.2.0">``."""

    name = "hacc.hivmc_version"


@irdl_attr_definition
class InputIdxAttr(NumberAttr):
    """The index of a kernel argument among the inputs of the kernel, from 0: ``#hacc.input_idx<0>``."""

    name = "hacc.input_idx"


@irdl_attr_definition
class OutputIdxAttr(NumberAttr):
    """The index of a kernel argument among the outputs of the kernel, from 0: ``#hacc.output_idx<0>``."""

    name = "hacc.output_idx"


DEVICE_SPEC_KEYS: dict[str, int] = {key: number for number, key in enumerate(
    ("AI_CORE_COUNT", "CUBE_CORE_COUNT", "VECTOR_CORE_COUNT", "UB_SIZE", "L1_SIZE", "L0A_SIZE", "L0B_SIZE", "L0C_SIZE",
     "UB_ALIGN_SIZE", "L1_ALIGN_SIZE", "L0C_ALIGN_SIZE", "MINIMAL_D_CACHE_SIZE", "MAXIMUM_D_CACHE_SIZE", "ARCH"))}
"""The keys of a ``#hacc.target_device_spec``, each with its integer in the toolchain. All sizes are in bits."""


@irdl_attr_definition
class TargetDeviceSpecAttr(ParametrizedAttribute):
    """The numbers of cores and the sizes of the memories of a chip, sizes in bits.

    An example is ``#hacc.target_device_spec<#dlti.dl_entry<"UB_SIZE", 1572864 : i32>, ...>``.
    """

    name = "hacc.target_device_spec"
    entries: ArrayAttr[DataLayoutEntryAttr]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        start = parser.pos
        entries = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_attribute)
        fault = _spec_fault(entries)
        if fault:
            parser.raise_error(fault, start, parser.pos)
        return [ArrayAttr(entries)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.entries, printer.print_attribute)

    def verify(self) -> None:
        fault = _spec_fault(list(self.entries))
        if fault:
            fail(fault)


def _spec_fault(entries: list[Attribute]) -> str:
    seen: set[str] = set()
    for entry in entries:
        if not isinstance(entry, DataLayoutEntryAttr):
            return f"expected #dlti.dl_entry<...>, found {entry}"
        if not isinstance(entry.key, StringAttr):
            return f"dlti.target_device_spec does not allow type as a key: {entry.key}"
        key = entry.key.data
        if key in seen:
            return f"repeated layout entry key: {key}"
        if key not in DEVICE_SPEC_KEYS:
            return f'invalid target device spec: "{key}"'
        seen.add(key)
    return ""


def target_of(op: Operation) -> str:
    """Returns the chip's name in the attribute ``hacc.target`` of the module around an op.

    Returns an empty string if the op is in no module or the module has no such attribute.
    """
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    if parent is None:
        return ""
    named = parent.attributes.get("hacc.target")
    return named.data if isinstance(named, (TargetAttr, StringAttr)) else ""


def features_of(op: Operation) -> Features:
    """Returns the features of the chip that the module around an op names; those of A2 if the module names no chip."""
    return target.features_of(target_of(op))


def block_dim_of(kernel: Operation) -> int | None:
    """Returns the number of blocks that a kernel declares with the attribute ``hacc.block_dim``; None if it declares none."""
    count = kernel.attributes.get("hacc.block_dim")
    return count.value.data if isinstance(count, IntegerAttr) else None


ATTRIBUTES: tuple[type[Attribute], ...] = (
    FunctionKindAttr, ArgTypeAttr, HostFuncTypeAttr, *HOST_FUNCTION_REFERENCES, RenameFuncAttr, *MARKERS, TargetAttr,
    HIVMCVersionAttr, InputIdxAttr, OutputIdxAttr, TargetDeviceSpecAttr)

Hacc = Dialect("hacc", [], [*ATTRIBUTES])

__all__ = [
    "ATTRIBUTES", "DEVICE_SPEC_KEYS", "HOST_FUNCTION_REFERENCES", "MARKERS", "ArgTypeAttr", "FunctionKindAttr",
    "HIVMCVersionAttr", "Hacc", "HostFuncTypeAttr", "InputIdxAttr", "OutputIdxAttr", "RenameFuncAttr", "TargetAttr",
    "TargetDeviceSpecAttr", "block_dim_of", "features_of", "target_of",
]
