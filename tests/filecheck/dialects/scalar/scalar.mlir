// RUN: tilelang-npu opt %s | filecheck %s
// CHECK-LABEL: func.func @scalar
// CHECK-NEXT:    hivm.hir.set_ffts_base_addr %a
// CHECK-NEXT:    hivm.hir.set_mask_norm
// CHECK-NEXT:    %{{.*}} = hivm.hir.get_block_idx -> i64
// CHECK-NEXT:    %{{.*}} = hivm.hir.get_block_num -> i64
// CHECK-NEXT:    %{{.*}} = hivm.hir.get_sub_block_idx -> i64
// CHECK-NEXT:    %{{.*}} = hivm.hir.pointer_cast(%a, %a) : memref<8xf32, #hivm.address_space<ub>>
// CHECK-NEXT:    %{{.*}} = hivm.hir.pointer_cast(%a) [%n] : memref<?xf32, #hivm.address_space<ub>>
// CHECK-NEXT:    %{{.*}} = hivm.hir.bitcast %x : memref<8xf32> -> memref<8xi32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.convert_layout %t output_shape [1, 1, 16, 16] {dstLayout = #hivm.data_layout<zN>, srcLayout = #hivm.data_layout<ND>} : (tensor<16x16xf16>) -> tensor<1x1x16x16xf16>
// CHECK-NEXT:    %{{.*}} = hivm.hir.convert_layout %t output_shape [1, 1, 16, 16] {dstLayout = #hivm.data_layout<dotA_ND, transpose = false>, srcLayout = #hivm.data_layout<ND>} : (tensor<16x16xf16>) -> tensor<1x1x16x16xf16>
// CHECK-NEXT:    hivm.hir.debug {debugtype = "print", hex = true, prefix = "x: "} %x : memref<8xf32>
// CHECK-NEXT:    hivm.hir.set_atomic kind = <add>[type = f32]
func.func @scalar(%a: i64, %n: index, %x: memref<8xf32>, %t: tensor<16x16xf16>) {
  hivm.hir.set_ffts_base_addr %a
  hivm.hir.set_mask_norm
  %0 = hivm.hir.get_block_idx -> i64
  %1 = hivm.hir.get_block_num -> i64
  %2 = hivm.hir.get_sub_block_idx -> i64
  %3 = hivm.hir.pointer_cast(%a, %a) : memref<8xf32, #hivm.address_space<ub>>
  %4 = hivm.hir.pointer_cast(%a) [%n] : memref<?xf32, #hivm.address_space<ub>>
  %5 = hivm.hir.bitcast %x : memref<8xf32> -> memref<8xi32>
  %6 = hivm.hir.convert_layout %t output_shape [1, 1, 16, 16] {srcLayout = #hivm.data_layout<ND>, dstLayout = #hivm.data_layout<zN>} : (tensor<16x16xf16>) -> tensor<1x1x16x16xf16>
  // As AscendNPU-IR v1.0.0 writes it.
  %7 = hivm.hir.convert_layout %t {srcLayout = #hivm.data_layout<ND>, dstLayout = #hivm.data_layout<dotA_ND, transpose = false>} : (tensor<16x16xf16>) -> tensor<1x1x16x16xf16>
  hivm.hir.debug {hex = true, prefix = "x: ", debugtype = "print"} %x : memref<8xf32>
  hivm.hir.set_atomic kind = <add>[type = f32]
  return
}
