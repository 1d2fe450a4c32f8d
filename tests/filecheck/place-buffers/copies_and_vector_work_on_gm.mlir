// RUN: tilelang-npu opt %s -p place-buffers | filecheck %s
// Arguments are in GM, other buffers in UB, and views in the memory of their source; copies become loads and stores, and
// vector work on GM is staged in UB.
// CHECK-LABEL: func.func @k(%x: memref<64xf32, #hivm.address_space<gm>>, %y: memref<16xf32, #hivm.address_space<gm>>)
// CHECK:      %u = memref.alloc() : memref<16xf32, #hivm.address_space<ub>>
// CHECK-NEXT: %part = memref.subview %x[32] [16] [1] : memref<64xf32, #hivm.address_space<gm>> to memref<16xf32, strided<[1], offset: 32>, #hivm.address_space<gm>>
// CHECK-NEXT: hivm.hir.load ins(%part : {{.*}}) outs(%u : memref<16xf32, #hivm.address_space<ub>>)
// CHECK-NEXT: %[[ROOM:.*]] = memref.alloc() : memref<16xf32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.vabs ins(%u : memref<16xf32, #hivm.address_space<ub>>) outs(%[[ROOM]] : memref<16xf32, #hivm.address_space<ub>>)
// CHECK-NEXT: hivm.hir.store ins(%[[ROOM]] : memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<gm>>)
func.func @k(%x: memref<64xf32>, %y: memref<16xf32>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %u = memref.alloc() : memref<16xf32>
  %part = memref.subview %x[32] [16] [1] : memref<64xf32> to memref<16xf32, strided<[1], offset: 32>>
  memref.copy %part, %u : memref<16xf32, strided<[1], offset: 32>> to memref<16xf32>
  hivm.hir.vabs ins(%u : memref<16xf32>) outs(%y : memref<16xf32>)
  return
}
