// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Two matrices use one buffer in each iteration. A second buffer of four slots does not fit in L1, so each gets two of the
// four: the second matrix is loaded while the first one is in use.
// CHECK:      scf.for
// CHECK-DAG:    %k = tile.alloc "k" slots 2
// CHECK-DAG:    %k_1 = tile.alloc "k" slots 2
// CHECK:        tile.copy %X to %k 
// CHECK-NEXT:   tile.copy %k to %a 
// CHECK-NEXT:   tile.copy %X to %k_1 
// CHECK-NEXT:   tile.copy %k_1 to %a 
func.func @k(%X: memref<256x256xf16, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 2 : i64 explicit {
  ^bb0(%block: index, %part: index):
    %k = tile.alloc "k" : memref<256x256xf16, #hivm.address_space<cbuf>>
    %a = tile.alloc "a" : memref<256x256xf16, #hivm.address_space<ca>>
    scf.for %i = %c0 to %c8 step %c1 {
      tile.copy %X to %k : memref<256x256xf16, #hivm.address_space<gm>> to memref<256x256xf16, #hivm.address_space<cbuf>>
      tile.copy %k to %a : memref<256x256xf16, #hivm.address_space<cbuf>> to memref<256x256xf16, #hivm.address_space<ca>>
      tile.copy %X to %k : memref<256x256xf16, #hivm.address_space<gm>> to memref<256x256xf16, #hivm.address_space<cbuf>>
      tile.copy %k to %a : memref<256x256xf16, #hivm.address_space<cbuf>> to memref<256x256xf16, #hivm.address_space<ca>>
    } {tile.num_stages = 4 : i64}
  }
  return
}
