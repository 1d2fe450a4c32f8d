// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A load to L0 and a product have the sizes that only run time knows; the product and the copy pass blocks of L0C on.
// CHECK:      %[[BLOCKS:.*]] = arith.divui
// CHECK:      memref.subview %{{.*}}[0, 0, 0, 0] [%[[BLOCKS]], 2, 16, 16]
// CHECK:      hivm.hir.custom {{.*}} "load_l0b" ins(%{{.*}} : memref<?x2x16x16xf16
// CHECK:      hivm.hir.custom {{.*}}unit_flag_mode = [#hivm.unit_flag<ENABLED_WITHOUT_UPDATE>]} "mma"
// CHECK:      hivm.hir.custom {{.*}}unit_flag_mode = [#hivm.unit_flag<ENABLED_WITH_UPDATE>]} "mma"
// CHECK:      %[[FLAG:.*]] = arith.select %{{.*}}, %c3, %c2 : index
// CHECK:      unit_flag_mode = [#hivm.unit_flag<ENABLED_WITHOUT_UPDATE>, #hivm.unit_flag<ENABLED_WITH_UPDATE>]} "mma" ins({{.*}}, %[[FLAG]] :
// CHECK:      hivm.hir.fixpipe {{.*}}memref<?x2x16x16xf32{{.*}}unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
func.func @k(%C: memref<32x64xf32, #hivm.address_space<gm>>, %n: index, %last: i1) {
  %c1 = arith.constant 1 : index
  %yes = arith.constant true
  %no = arith.constant false
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%blk: index):
    %b = tile.alloc "b" : memref<32x64xf16, #hivm.address_space<cbuf>>
    %x = tile.alloc "x" : memref<32x32xf16, #hivm.address_space<ca>>
    %y = tile.alloc "y" : memref<32x64xf16, #hivm.address_space<cb>>
    %c = tile.alloc "c" : memref<32x64xf32, #hivm.address_space<cc>>
    %bn = tile.region %b[0, 0] [32, %n] keep [0, 1] : memref<32x64xf16, #hivm.address_space<cbuf>> to memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cbuf>>
    %yn = tile.region %y[0, 0] [32, %n] keep [0, 1] : memref<32x64xf16, #hivm.address_space<cb>> to memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cb>>
    %cn = tile.region %c[0, 0] [32, %n] keep [0, 1] : memref<32x64xf32, #hivm.address_space<cc>> to memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<cc>>
    %Cn = tile.region %C[0, 0] [32, %n] keep [0, 1] : memref<32x64xf32, #hivm.address_space<gm>> to memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<gm>>
    tile.copy %bn to %yn : memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cbuf>> to memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cb>>
    tile.gemm %x, %yn into %cn init %yes unit_flag #hivm.unit_flag<ENABLED_WITHOUT_UPDATE> : memref<32x32xf16, #hivm.address_space<ca>>, memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cb>> into memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<cc>>
    tile.gemm %x, %yn into %cn init %no unit_flag #hivm.unit_flag<ENABLED_WITH_UPDATE> : memref<32x32xf16, #hivm.address_space<ca>>, memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cb>> into memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<cc>>
    tile.gemm %x, %yn into %cn init %no unit_flag #hivm.unit_flag<ENABLED_WITHOUT_UPDATE> passes %last : memref<32x32xf16, #hivm.address_space<ca>>, memref<32x?xf16, strided<[64, 1]>, #hivm.address_space<cb>> into memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<cc>>
    tile.copy %cn to %Cn unit_flag #hivm.unit_flag<ENABLED_WITH_UPDATE> : memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<cc>> to memref<32x?xf32, strided<[64, 1]>, #hivm.address_space<gm>>
  }
  return
}
