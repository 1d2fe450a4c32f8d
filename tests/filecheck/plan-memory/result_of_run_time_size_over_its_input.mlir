// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} --split-input-file --verify-diagnostics | filecheck %s
// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} --split-input-file --verify-diagnostics | filecheck %s --check-prefix MOVED
// Rows of run-time length start at the first bytes of their buffers, so the elements of the result overwrite the same
// elements of the input.
// CHECK: %x = hivm.hir.pointer_cast(%[[AT:.*]]) : memref<120000xi8
// CHECK: %y = hivm.hir.pointer_cast(%[[AT]]) : memref<120000xi8
func.func @k(%a: memref<4x?xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %c0 = arith.constant 0 : index
  %x = memref.alloc() : memref<120000xi8, #hivm.address_space<ub>>
  %y = memref.alloc() : memref<120000xi8, #hivm.address_space<ub>>
  %vx = memref.view %x[%c0][%n] : memref<120000xi8, #hivm.address_space<ub>> to memref<4x?xf32, #hivm.address_space<ub>>
  %vy = memref.view %y[%c0][%n] : memref<120000xi8, #hivm.address_space<ub>> to memref<4x?xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%a : memref<4x?xf32, #hivm.address_space<gm>>) outs(%vx : memref<4x?xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%vx : memref<4x?xf32, #hivm.address_space<ub>>) outs(%vy : memref<4x?xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%vy : memref<4x?xf32, #hivm.address_space<ub>>) outs(%a : memref<4x?xf32, #hivm.address_space<gm>>)
  return
}
// -----
// The bytes are not shared if the rows start at another offset.
// MOVED: error[T104]: the tile does not fit: UB needs 240 000 bytes
func.func @moved(%a: memref<4x?xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %x = memref.alloc() : memref<120000xi8, #hivm.address_space<ub>>
  %y = memref.alloc() : memref<120000xi8, #hivm.address_space<ub>>
  %vx = memref.view %x[%c512][%n] : memref<120000xi8, #hivm.address_space<ub>> to memref<4x?xf32, #hivm.address_space<ub>>
  %vy = memref.view %y[%c0][%n] : memref<120000xi8, #hivm.address_space<ub>> to memref<4x?xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%a : memref<4x?xf32, #hivm.address_space<gm>>) outs(%vx : memref<4x?xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%vx : memref<4x?xf32, #hivm.address_space<ub>>) outs(%vy : memref<4x?xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%vy : memref<4x?xf32, #hivm.address_space<ub>>) outs(%a : memref<4x?xf32, #hivm.address_space<gm>>)
  return
}
