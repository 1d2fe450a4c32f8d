// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Nine tiles, eight events to MTE3: the smallest two share one, set after the later sum and waited for before the earlier
// store.
// CHECK-COUNT-8: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID{{[0-7]}}>]
// CHECK-NOT:     set_flag
// CHECK-COUNT-8: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID{{[0-7]}}>]
// CHECK-NOT:     wait_flag
// CHECK-NOT:     barrier
func.func @k(%Y0: memref<32xf32, #hivm.address_space<gm>>, %Y1: memref<32xf32, #hivm.address_space<gm>>, %Y2: memref<32xf32, #hivm.address_space<gm>>, %Y3: memref<32xf32, #hivm.address_space<gm>>, %Y4: memref<16xf32, #hivm.address_space<gm>>, %Y5: memref<16xf32, #hivm.address_space<gm>>, %Y6: memref<32xf32, #hivm.address_space<gm>>, %Y7: memref<32xf32, #hivm.address_space<gm>>, %Y8: memref<32xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %i0 = arith.constant 0 : i64
  %x0 = hivm.hir.pointer_cast(%i0) : memref<32xf32, #hivm.address_space<ub>>
  %i128 = arith.constant 128 : i64
  %x1 = hivm.hir.pointer_cast(%i128) : memref<32xf32, #hivm.address_space<ub>>
  %i256 = arith.constant 256 : i64
  %x2 = hivm.hir.pointer_cast(%i256) : memref<32xf32, #hivm.address_space<ub>>
  %i384 = arith.constant 384 : i64
  %x3 = hivm.hir.pointer_cast(%i384) : memref<32xf32, #hivm.address_space<ub>>
  %i512 = arith.constant 512 : i64
  %x4 = hivm.hir.pointer_cast(%i512) : memref<16xf32, #hivm.address_space<ub>>
  %i640 = arith.constant 640 : i64
  %x5 = hivm.hir.pointer_cast(%i640) : memref<16xf32, #hivm.address_space<ub>>
  %i768 = arith.constant 768 : i64
  %x6 = hivm.hir.pointer_cast(%i768) : memref<32xf32, #hivm.address_space<ub>>
  %i896 = arith.constant 896 : i64
  %x7 = hivm.hir.pointer_cast(%i896) : memref<32xf32, #hivm.address_space<ub>>
  %i1024 = arith.constant 1024 : i64
  %x8 = hivm.hir.pointer_cast(%i1024) : memref<32xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%Y0 : memref<32xf32, #hivm.address_space<gm>>) outs(%x0 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y1 : memref<32xf32, #hivm.address_space<gm>>) outs(%x1 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y2 : memref<32xf32, #hivm.address_space<gm>>) outs(%x2 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y3 : memref<32xf32, #hivm.address_space<gm>>) outs(%x3 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y4 : memref<16xf32, #hivm.address_space<gm>>) outs(%x4 : memref<16xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y5 : memref<16xf32, #hivm.address_space<gm>>) outs(%x5 : memref<16xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y6 : memref<32xf32, #hivm.address_space<gm>>) outs(%x6 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y7 : memref<32xf32, #hivm.address_space<gm>>) outs(%x7 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y8 : memref<32xf32, #hivm.address_space<gm>>) outs(%x8 : memref<32xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%x0 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y0 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x1 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y1 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x2 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y2 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x3 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y3 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x4 : memref<16xf32, #hivm.address_space<ub>>) outs(%Y4 : memref<16xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x5 : memref<16xf32, #hivm.address_space<ub>>) outs(%Y5 : memref<16xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x6 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y6 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x7 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y7 : memref<32xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%x8 : memref<32xf32, #hivm.address_space<ub>>) outs(%Y8 : memref<32xf32, #hivm.address_space<gm>>)
  return
}
