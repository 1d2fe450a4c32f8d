// RUN: tilelang-npu opt %s -p order-hand-overs | filecheck %s
// A scratch tensor is a channel, too. The statements of each core stay in order: the second load of the Cube core does not
// move before the one that waits.
// CHECK:      scf.for
// CHECK-NEXT:   tile.copy %h to %p
// CHECK-NEXT:   tile.copy %p to %a
// CHECK-NEXT:   tile.copy %x to %b
// CHECK-NEXT: }
func.func @k(%x: memref<32x32xf16, #hivm.address_space<gm>>, %p: memref<32x32xf16, #hivm.address_space<gm>> {tile.scratch}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x32xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<32x32xf16, #hivm.address_space<cbuf>>
  %h = tile.alloc "h" : memref<32x32xf16, #hivm.address_space<ub>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.copy %p to %a : memref<32x32xf16, #hivm.address_space<gm>> to memref<32x32xf16, #hivm.address_space<cbuf>>
    tile.copy %x to %b : memref<32x32xf16, #hivm.address_space<gm>> to memref<32x32xf16, #hivm.address_space<cbuf>>
    tile.copy %h to %p : memref<32x32xf16, #hivm.address_space<ub>> to memref<32x32xf16, #hivm.address_space<gm>>
  }
  return
}
