"""The parts of an HIVM op by its row of the table: the types of each part, and the properties that rules read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, TypeAttribute

from dialects.verdicts.hivm_table import Rules
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr

SHAPED = (TensorType, MemRefType, VectorType)
UNRANKED = (UnrankedMemRefType, UnrankedTensorType)

TYPES: dict[str, Callable[[Attribute], bool]] = {
    "any": lambda type_: True,
    "data": lambda type_: not isinstance(type_, UNRANKED),
    "shaped": lambda type_: isinstance(type_, SHAPED),
    "tm": lambda type_: isinstance(type_, (TensorType, MemRefType)),
    "memref": lambda type_: isinstance(type_, MemRefType),
    "tensor": lambda type_: isinstance(type_, TensorType),
    "index": lambda type_: str(type_) == "index",
    "i64": lambda type_: type_ == i64,
    "i1": lambda type_: type_ == i1,
    "float": lambda type_: isinstance(type_, AnyFloat),
    "lock": lambda type_: isinstance(type_, MemRefType) and type_.element_type == i64 and type_.get_num_dims() == 1,
    "number": lambda type_: isinstance(type_, (IntegerType, AnyFloat)),
    "i32i64": lambda type_: type_ in (i32, i64),
    "indices": lambda type_: isinstance(type_, TensorType) and type_.element_type in (i32, i64),
    "bits": lambda type_: isinstance(type_, TensorType) and type_.element_type == i1,
    "mx": lambda type_: isinstance(type_, SHAPED) and element_of(type_) in ("f8E4M3FN", "f8E5M2", "ui8", "i8"),
    "scale": lambda type_: isinstance(type_, SHAPED) and element_of(type_) in ("ui8", "i8"),
    "floats": lambda type_: isinstance(type_, SHAPED) and isinstance(type_.element_type, AnyFloat),
    "gm_pointer": lambda type_: str(type_) == "!llvm.ptr<1>",
    "shown": lambda type_: isinstance(type_, (IntegerType, AnyFloat, TensorType, MemRefType)),
}
KINDS: dict[str, Callable[[Attribute], bool]] = {
    "i64": lambda value: isinstance(value, IntegerAttr) and value.type == i64,
    "bool": lambda value: isinstance(value, IntegerAttr) and value.type == i1,
    "int": lambda value: isinstance(value, IntegerAttr),
    "axes": lambda value: isinstance(value, DenseArrayBase) and value.elt_type == i64,
    "unit": lambda value: isinstance(value, UnitAttr),
    "text": lambda value: isinstance(value, StringAttr),
    "i32": lambda value: isinstance(value, IntegerAttr) and value.type == i32,
    "format": lambda value: value in [IntegerAttr(number, i32) for number in (1, 2, 3)],
    "type": lambda value: isinstance(value, TypeAttribute),
    "enum": lambda value: isinstance(value, EnumAttr),
    "layout": lambda value: isinstance(value, hivm.DataLayoutAttr),
    "flags": lambda value: isinstance(value, ArrayAttr) and all(isinstance(each, hivm.UnitFlagAttr) for each in value),
    "numbers": lambda value: isinstance(value, ArrayAttr) and all(map(KINDS["i64"], value)),
    "groups": lambda value: isinstance(value, ArrayAttr) and all(map(KINDS["numbers"], value)),
    "any": lambda value: True,
}


def element_of(type_: Attribute) -> str:
    return str(type_.element_type if isinstance(type_, (*SHAPED, *UNRANKED)) else type_)


def shape_of(type_: Attribute) -> tuple[int, ...]:
    return tuple(type_.get_shape()) if isinstance(type_, SHAPED) else ()


def fitting(*sizes: int) -> bool:
    return len({size for size in sizes if size != DYNAMIC_INDEX}) <= 1


def alike(shapes: Sequence[tuple[int, ...]]) -> bool:
    return len({len(shape) for shape in shapes}) <= 1 and all(fitting(*sizes) for sizes in zip(*shapes, strict=True))


class Broken(Exception):
    """A rule is; its name."""


def need(holds: bool, rule: str) -> None:
    if not holds:
        raise Broken(rule)


class Judged:
    """An op taken apart by the table."""

    def __init__(self, op: Operation, rules: Rules) -> None:
        self.op = op
        self.rules = rules
        self.types = list(op.operand_types)
        self.held = self._groups()
        self.inits = [type_ for field_, types in self.held.items() if f"{field_}!" in self._written for type_ in types]
        self.inputs = [type_ for field_, types in self.held.items()
                       if f"{field_}!" not in self._written and field_ != "temp_buffer" for type_ in types]
        self.tensors = (any(isinstance(type_, TensorType) for type_ in self.types)
                        and not any(isinstance(type_, (MemRefType, UnrankedMemRefType)) for type_ in self.types))
        self.buffers = (any(isinstance(type_, MemRefType) for type_ in self.types)
                        and not any(isinstance(type_, (TensorType, UnrankedTensorType)) for type_ in self.types))

    @property
    def _written(self) -> set[str]:
        return {text.partition(":")[0] for text in self.rules.operands if "!" in text}

    def _groups(self) -> dict[str, list[Attribute]]:
        declared = [text.partition(":")[::2] for text in self.rules.operands]
        sizes = self.op.properties.get("operandSegmentSizes")
        if isinstance(sizes, DenseArrayBase):
            counts = list(sizes.get_values())
            need(len(counts) == len(declared) and sum(counts) == len(self.types), "operand groups")
        else:
            open_ = sum(type_[-1] in "?*" for _, type_ in declared)
            rest = len(self.types) - (len(declared) - open_)
            need(rest >= 0 and rest % max(open_, 1) == 0, "number of operands")
            counts = [rest // open_ if type_[-1] in "?*" else 1 for _, type_ in declared]
            need(sum(counts) == len(self.types), "number of operands")
        held: dict[str, list[Attribute]] = {}
        place = 0
        for (name, type_), count in zip(declared, counts, strict=True):
            need(type_[-1] == "*" or count == 1 or (count == 0 and type_[-1] == "?"), f"number of {name}")
            mine = self.types[place:place + count]
            need(all(TYPES[type_.rstrip("?*")](each) for each in mine), f"type of {name}")
            held[name.rstrip("!")] = mine
            place += count
        return held

    def one(self, name: str) -> Attribute | None:
        types = self.op.result_types if name == "result" else self.held.get(name)
        return types[0] if types else None

    def shape(self, name: str) -> tuple[int, ...]:
        type_ = self.one(name)
        return () if type_ is None else shape_of(type_)

    def axes(self, name: str) -> list[int]:
        value = self.op.properties.get(name)
        return list(value.get_values()) if isinstance(value, DenseArrayBase) else []

    def number(self, name: str, default: int) -> int:
        value = self.op.properties.get(name)
        return int(value.value.data) if isinstance(value, IntegerAttr) else default

    def word(self, name: str, default: str = "") -> str:
        value = self.op.properties.get(name)
        found = re.search(r"<(?:reduce_op = |mode = )?<?(\w+)", str(value)) if value is not None else None
        return found[1] if found else default

    def space(self, name: str) -> str:
        type_ = self.one(name)
        found = re.search(r"address_space<(\w+)>", str(type_.memory_space)) if isinstance(type_, MemRefType) else None
        return found[1] if found else ""
