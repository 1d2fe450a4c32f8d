"""Modules for the tests, as text: wrappers around a body, and a few whole kernels in the planned, synchronised form."""

from __future__ import annotations

from collections.abc import Sequence

GM = "#hivm.address_space<gm>"
UB = "#hivm.address_space<ub>"
L1 = "#hivm.address_space<cbuf>"
L0C = "#hivm.address_space<cc>"


def kernel(core: str, args: Sequence[str], body: str, name: str = "k", extra: str = "") -> str:
    """A device function of one core; ``args`` are written as in MLIR."""
    return (f"  func.func @{name}({', '.join(args)}) attributes {{hacc.entry, hacc.function_kind = "
            f"#hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<{core}>{extra}}} {{\n{body}\n"
            "    return\n  }\n")


def module(*functions: str, chip: str = "Ascend910B2") -> str:
    """A module of such functions."""
    return f'module attributes {{hacc.target = #hacc.target<"{chip}">}} {{\n' + "".join(functions) + "}\n"


def gm(name: str, shape: str, element: str) -> str:
    """A GM argument."""
    return f"%{name}: memref<{shape}x{element}, {GM}>"


def view(result: str, source: str, offsets: str, sizes: str, source_type: str, result_type: str) -> str:
    """A subview with unit steps."""
    ones = ", ".join("1" for _ in sizes.split(","))
    return f"    {result} = memref.subview {source}[{offsets}] [{sizes}] [{ones}] : {source_type} to {result_type}"


def flags(kind: str, source: str, target: str, *events: object) -> str:
    """``set_flag`` or ``wait_flag`` for each event: a number, or an SSA name."""
    lines = []
    for event in events:
        spelled = f"<EVENT_ID{event}>" if isinstance(event, int) else event
        lines.append(f"    hivm.hir.{kind}_flag[<PIPE_{source}>, <PIPE_{target}>, {spelled}]")
    return "\n".join(lines)


def sync(source: str, target: str, event: int = 0) -> str:
    """A set and its wait."""
    return flags("set", source, target, event) + "\n" + flags("wait", source, target, event)


SIZES = "i1, index, index, index"
"""Types of the scalar operands of mmadL1."""


def related(values: str) -> str:
    """The clause of the seven events and counters of mmadL1."""
    return f"sync_related_args({values} : {', '.join(['i64'] * 7)})"


def drain(kind: str, mode: str) -> str:
    """The attributes of a fixpipe that writes rows."""
    return f"{{dma_mode = #hivm.dma_mode<nz2nd>, pre_{kind} = #hivm.fixpipe_pre_{kind}_mode<{mode}>}}"


BARRIER = "    hivm.hir.pipe_barrier[<PIPE_V>]"


def tile(name: str, address: int, shape: str, element: str, space: str = UB) -> str:
    """An on-chip buffer at an address."""
    return (f"    %{name}_at = arith.constant {address} : i64\n"
            f"    %{name} = hivm.hir.pointer_cast(%{name}_at) : memref<{shape}x{element}, {space}>")


def add_tiles(length: int = 2048, element: str = "f32") -> str:
    """C = A + B over ``n`` elements, one tile of ``length`` per block, the last one cut."""
    size = length * (2 if element == "f16" else 4)
    dynamic, strided = f"memref<?x{element}, {GM}>", f"memref<?x{element}, strided<[1], offset: ?>, {GM}>"
    cut = f"memref<?x{element}, strided<[1]>, {UB}>"
    lines = [f"""    %bid = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %bid : i64 to index
    %step = arith.constant {length} : index
    %off = arith.muli %bi, %step : index
    %n_index = arith.index_cast %n : i32 to index
    %rest = arith.subi %n_index, %off : index
    %len = arith.minsi %rest, %step : index"""]
    for place, name in enumerate("ABC"):
        lines.append(f"    %g{name} = memref.reinterpret_cast %{name} to offset: [%off], sizes: [%len], strides: [1] : "
                     f"{dynamic} to {strided}")
        lines.append(tile(f"u{name}", place * size, str(length), element))
        lines.append(f"    %s{name} = memref.subview %u{name}[0] [%len] [1] : memref<{length}x{element}, {UB}> to {cut}")
    lines += [f"    hivm.hir.load ins(%g{name} : {strided}) outs(%s{name} : {cut})" for name in "AB"]
    lines += [sync("MTE2", "V"), f"    hivm.hir.vadd ins(%sA, %sB : {cut}, {cut}) outs(%sC : {cut})", sync("V", "MTE3"),
              f"    hivm.hir.store ins(%sC : {cut}) outs(%gC : {strided})", "    hivm.hir.pipe_barrier[<PIPE_ALL>]"]
    args = [gm(name, "?", element) for name in "ABC"] + ["%n: i32", "%gx: i32", "%gy: i32", "%gz: i32"]
    return module(kernel("AIV", args, "\n".join(lines)))


def row_softmax(columns: int = 1024, rows: int = 8, tiles: int = 1) -> str:
    """softmax over the rows of a matrix in f32; a block takes ``tiles`` tiles of ``rows`` rows, one after another."""
    size = rows * columns * 4
    whole, thin = f"memref<{rows}x{columns}xf32, {UB}>", f"memref<{rows}x1xf32, {UB}>"
    outside = f"memref<?x{columns}xf32, {GM}>"
    part = f"memref<{rows}x{columns}xf32, strided<[{columns}, 1], offset: ?>, {GM}>"
    body = f"""{tile("x", 0, f"{rows}x{columns}", "f32")}
{tile("y", size, f"{rows}x{columns}", "f32")}
{tile("r", 2 * size, f"{rows}x1", "f32")}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %tiles = arith.constant {tiles} : index
    %rows = arith.constant {rows} : index
    %bid = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %bid : i64 to index
    %first = arith.muli %bi, %tiles : index
{flags("set", "V", "MTE2", 0)}
{flags("set", "MTE3", "V", 0)}
    scf.for %i = %c0 to %tiles step %c1 {{
    %t = arith.addi %first, %i : index
    %row = arith.muli %t, %rows : index
{view("%gx_", "%X", "%row, 0", f"{rows}, {columns}", outside, part)}
{view("%gy_", "%Y", "%row, 0", f"{rows}, {columns}", outside, part)}
{flags("wait", "V", "MTE2", 0)}
    hivm.hir.load ins(%gx_ : {part}) outs(%x : {whole})
{sync("MTE2", "V")}
    hivm.hir.vreduce <max> ins(%x : {whole}) outs(%r : {thin}) reduce_dims = [1]
{BARRIER}
{flags("wait", "MTE3", "V", 0)}
    hivm.hir.vsub ins(%x, %r : {whole}, {thin}) outs(%y : {whole}) broadcast = [1]
{flags("set", "V", "MTE2", 0)}
{BARRIER}
    hivm.hir.vexp ins(%y : {whole}) outs(%y : {whole})
{BARRIER}
    hivm.hir.vreduce <sum> ins(%y : {whole}) outs(%r : {thin}) reduce_dims = [1]
{BARRIER}
    hivm.hir.vdiv ins(%y, %r : {whole}, {thin}) outs(%y : {whole}) broadcast = [1]
{sync("V", "MTE3")}
    hivm.hir.store ins(%y : {whole}) outs(%gy_ : {part})
{flags("set", "MTE3", "V", 0)}
    }}
{flags("wait", "V", "MTE2", 0)}
{flags("wait", "MTE3", "V", 0)}
    hivm.hir.pipe_barrier[<PIPE_ALL>]"""
    return module(kernel("AIV", [gm("X", "?x" + str(columns), "f32"), gm("Y", "?x" + str(columns), "f32")], body))


def gemm(m: int, n: int, k: int, bm: int = 128, bn: int = 128, bk: int = 64, element: str = "f16",
         chip: str = "Ascend910B2") -> str:
    """C = A B in f16 with f32 accumulation, a bm x bn tile per block, both operands in two slots of L1."""
    a_nz, b_nz = f"{bk // 16}x{bm // 16}x16x16", f"{bn // 16}x{bk // 16}x16x16"
    c_nz = f"{bn // 16}x{bm // 16}x16x16"
    l1a, l1b = f"memref<{a_nz}x{element}, {L1}>", f"memref<{b_nz}x{element}, {L1}>"
    acc = f"memref<{c_nz}xf32, {L0C}>"
    whole = {"A": f"memref<{m}x{k}x{element}, {GM}>", "B": f"memref<{k}x{n}x{element}, {GM}>",
             "C": f"memref<{m}x{n}x{element}, {GM}>"}
    part = {"A": f"memref<{bm}x{bk}x{element}, strided<[{k}, 1], offset: ?>, {GM}>",
            "B": f"memref<{bk}x{bn}x{element}, strided<[{n}, 1], offset: ?>, {GM}>",
            "C": f"memref<{bm}x{bn}x{element}, strided<[{n}, 1], offset: ?>, {GM}>"}
    size_a, size_b = 2 * bm * bk, 2 * bn * bk
    loop_events = related("%e0, %e1, %ea, %eb, %turn, %e0, %e1")
    quant = {"f16": "F322F16", "bf16": "F322BF16"}[element]
    body = f"""    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %e0 = arith.constant 0 : i64
    %e1 = arith.constant 1 : i64
    %e2 = arith.constant 2 : i64
    %e3 = arith.constant 3 : i64
    %bm = arith.constant {bm} : index
    %bn = arith.constant {bn} : index
    %bk = arith.constant {bk} : index
    %k = arith.constant {k} : index
    %across = arith.constant {n // bn} : index
    %bid = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %bid : i64 to index
    %by = arith.divui %bi, %across : index
    %bx = arith.remui %bi, %across : index
    %row = arith.muli %by, %bm : index
    %col = arith.muli %bx, %bn : index
{tile("a0", 0, a_nz, element, L1)}
{tile("a1", size_a, a_nz, element, L1)}
{tile("b0", 2 * size_a, b_nz, element, L1)}
{tile("b1", 2 * size_a + size_b, b_nz, element, L1)}
{tile("acc", 0, c_nz, "f32", L0C)}
{flags("set", "MTE1", "MTE2", 0, 1, 2, 3)}
{flags("set", "M", "MTE1", 0, 1)}
    scf.for %kk = %c0 to %k step %bk {{
    %it = arith.divui %kk, %bk : index
    %turn = arith.index_cast %it : index to i64
    %odd = arith.remui %it, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %ea = arith.select %even, %e0, %e1 : i64
    %eb = arith.select %even, %e2, %e3 : i64
    %l1a = arith.select %even, %a0, %a1 : {l1a}
    %l1b = arith.select %even, %b0, %b1 : {l1b}
{view("%ga", "%A", "%row, %kk", f"{bm}, {bk}", whole["A"], part["A"])}
{view("%gb", "%B", "%kk, %col", f"{bk}, {bn}", whole["B"], part["B"])}
{flags("wait", "MTE1", "MTE2", "%ea")}
    hivm.hir.nd2nz {{dst_continuous}} ins(%ga : {part["A"]}) outs(%l1a : {l1a})
{flags("set", "MTE2", "MTE1", 0)}
{flags("wait", "MTE1", "MTE2", "%eb")}
    hivm.hir.nd2nz {{dst_continuous}} ins(%gb : {part["B"]}) outs(%l1b : {l1b})
{flags("set", "MTE2", "MTE1", 1)}
    %init = arith.cmpi eq, %kk, %c0 : index
    hivm.hir.mmadL1 ins(%l1a, %l1b, %init, %bm, %bk, %bn : {l1a}, {l1b}, {SIZES}) outs(%acc : {acc}) {loop_events}
    }}
{flags("wait", "M", "MTE1", 0, 1)}
{flags("wait", "MTE1", "MTE2", 0, 1, 2, 3)}
{sync("M", "FIX")}
{view("%gc", "%C", "%row, %col", f"{bm}, {bn}", whole["C"], part["C"])}
    hivm.hir.fixpipe {drain("quant", quant)} ins(%acc : {acc}) outs(%gc : {part["C"]})
    hivm.hir.pipe_barrier[<PIPE_ALL>]"""
    args = [f"%{name}: {whole[name]}" for name in "ABC"]
    return module(kernel("AIC", args, body), chip=chip)


def scaled_product(side: int = 64) -> str:
    """O[i] = relu(A[i] B[i]) + D[i] over ``nt`` matrices a block: the Cube core hands products to both Vector cores.

    The products go through a ring of two slots in the workspace; flag 0 says "full", flag 1 "free".
    """
    half = side // 2
    nz, l1 = f"{side // 16}x{side // 16}x16x16", f"memref<{side // 16}x{side // 16}x16x16xf16, {L1}>"
    acc = f"memref<{nz}xf32, {L0C}>"
    three = {name: f"memref<?x{side}x{side}x{element}, {GM}>"
             for name, element in (("A", "f16"), ("B", "f16"), ("D", "f32"), ("O", "f32"))}
    one = {name: f"memref<{side}x{side}x{element}, strided<[{side}, 1], offset: ?>, {GM}>"
           for name, element in (("A", "f16"), ("W", "f32"))}
    rows = f"memref<{half}x{side}xf32, strided<[{side}, 1], offset: ?>, {GM}>"
    ring = f"memref<2x{side}x{side}xf32, {GM}>"
    ub = f"memref<{half}x{side}xf32, {UB}>"
    slot = side * side * 4
    loop_events = related("%e0, %e1, %e0, %e1, %turn, %e0, %e1")
    shared = f"""    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %bytes = arith.constant {2 * slot} : index
    %bid = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %bid : i64 to index
    %n = arith.index_cast %nt : i32 to index
    %first = arith.muli %bi, %n : index
    %at = arith.muli %bi, %bytes : index
    %ring = memref.view %ws[%at][] : memref<?xi8, {GM}> to {ring}"""
    cube = f"""{shared}
    %side = arith.constant {side} : index
    %true = arith.constant true
    %e0 = arith.constant 0 : i64
    %e1 = arith.constant 1 : i64
{tile("l1a", 0, nz, "f16", L1)}
{tile("l1b", 2 * side * side, nz, "f16", L1)}
{tile("acc", 0, nz, "f32", L0C)}
{flags("set", "MTE1", "MTE2", 0, 1)}
{flags("set", "FIX", "M", 0)}
{flags("set", "M", "MTE1", 0, 1)}
    scf.for %i = %c0 to %n step %c1 {{
    %t = arith.addi %first, %i : index
    %s = arith.remui %i, %c2 : index
    %turn = arith.index_cast %i : index to i64
{view("%ga", "%A", "%t, 0, 0", f"1, {side}, {side}", three["A"], one["A"])}
{view("%gb", "%B", "%t, 0, 0", f"1, {side}, {side}", three["B"], one["A"])}
{flags("wait", "MTE1", "MTE2", 0)}
    hivm.hir.nd2nz {{dst_continuous}} ins(%ga : {one["A"]}) outs(%l1a : {l1})
{flags("set", "MTE2", "MTE1", 0)}
{flags("wait", "MTE1", "MTE2", 1)}
    hivm.hir.nd2nz {{dst_continuous}} ins(%gb : {one["A"]}) outs(%l1b : {l1})
{flags("set", "MTE2", "MTE1", 1)}
{flags("wait", "FIX", "M", 0)}
    hivm.hir.mmadL1 ins(%l1a, %l1b, %true, %side, %side, %side : {l1}, {l1}, {SIZES}) outs(%acc : {acc}) {loop_events}
{sync("M", "FIX")}
{view("%w", "%ring", "%s, 0, 0", f"1, {side}, {side}", ring, one["W"])}
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
    hivm.hir.fixpipe {drain("relu", "NORMAL_RELU")} ins(%acc : {acc}) outs(%w : {one["W"]})
    hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
{flags("set", "FIX", "M", 0)}
    }}
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
{flags("wait", "FIX", "M", 0)}
{flags("wait", "M", "MTE1", 0, 1)}
{flags("wait", "MTE1", "MTE2", 0, 1)}
    hivm.hir.pipe_barrier[<PIPE_ALL>]"""
    vector = f"""{shared}
    %half = arith.constant {half} : index
    %sb = hivm.hir.get_sub_block_idx -> i64
    %si = arith.index_cast %sb : i64 to index
    %row = arith.muli %si, %half : index
{tile("x", 0, f"{half}x{side}", "f32")}
{tile("d", half * side * 4, f"{half}x{side}", "f32")}
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
{flags("set", "MTE3", "MTE2", 0)}
    scf.for %i = %c0 to %n step %c1 {{
    %t = arith.addi %first, %i : index
    %s = arith.remui %i, %c2 : index
{view("%w", "%ring", "%s, %row, 0", f"1, {half}, {side}", ring, rows)}
{view("%gd", "%D", "%t, %row, 0", f"1, {half}, {side}", three["D"], rows)}
{view("%go", "%O", "%t, %row, 0", f"1, {half}, {side}", three["O"], rows)}
{flags("wait", "MTE3", "MTE2", 0)}
    hivm.hir.load ins(%gd : {rows}) outs(%d : {ub})
    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 0
    hivm.hir.load ins(%w : {rows}) outs(%x : {ub})
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
{sync("MTE2", "V")}
    hivm.hir.vadd ins(%x, %d : {ub}, {ub}) outs(%x : {ub})
{sync("V", "MTE3")}
    hivm.hir.store ins(%x : {ub}) outs(%go : {rows})
{flags("set", "MTE3", "MTE2", 0)}
    }}
{flags("wait", "MTE3", "MTE2", 0)}
    hivm.hir.pipe_barrier[<PIPE_ALL>]"""
    args = ["%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}",
            f"%lock: memref<?xi8, {GM}> {{hacc.arg_type = #hacc.arg_type<sync_block_lock>}}",
            f"%ws: memref<?xi8, {GM}> {{hacc.arg_type = #hacc.arg_type<workspace>}}",
            *(f"%{name}: {three[name]}" for name in "ABDO"), "%nt: i32", "%gx: i32", "%gy: i32", "%gz: i32"]
    workspace = (f"  func.func @mix_infer_workspace_shape_function() -> index attributes {{hacc.function_kind = "
                 "#hacc.function_kind<HOST>, hacc.host_func_type = "
                 "#hacc.host_func_type<infer_workspace_shape_function>} {\n"
                 f"    %c = arith.constant {2 * slot} : index\n    return %c : index\n  }}\n")
    return module(workspace, kernel("AIC", args, cube, "mix_mix_aic"), kernel("AIV", args, vector, "mix_mix_aiv"))
