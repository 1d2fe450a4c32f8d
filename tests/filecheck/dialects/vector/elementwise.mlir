// RUN: tilelang-npu opt %s | filecheck %s
!m = memref<4x8xf32, #hivm.address_space<ub>>
!r = memref<4x1xf32, #hivm.address_space<ub>>
!t = memref<64xf32, #hivm.address_space<ub>>
// CHECK-LABEL: func.func @elementwise
// CHECK-NEXT:    hivm.hir.vadd ins(%a, %r : memref<4x8xf32, #hivm.address_space<ub>>, memref<4x1xf32, #hivm.address_space<ub>>) outs(%a : memref<4x8xf32, #hivm.address_space<ub>>) temp_buffer(%t : memref<64xf32, #hivm.address_space<ub>>) broadcast = [1]
// CHECK-NEXT:    hivm.hir.vmul ins(%a, %s : memref<4x8xf32, #hivm.address_space<ub>>, f32) outs(%a : memref<4x8xf32, #hivm.address_space<ub>>)
// CHECK-NEXT:    hivm.hir.vdiv ins(%a, %a : memref<4x8xf32, #hivm.address_space<ub>>, memref<4x8xf32, #hivm.address_space<ub>>) outs(%a : memref<4x8xf32, #hivm.address_space<ub>>) isSigned = false isHP = true
// CHECK-NEXT:    hivm.hir.vmax ins(%i, %i : tensor<4xi32>, tensor<4xi32>) outs(%i : tensor<4xi32>) is_signed = false -> tensor<4xi32>
// CHECK-NEXT:    hivm.hir.vcast ins(%a : memref<4x8xf32, #hivm.address_space<ub>>) outs(%h : memref<4x8xf16, #hivm.address_space<ub>>) round_mode = <odd>
// CHECK-NEXT:    hivm.hir.vcast ins(%a : memref<4x8xf32, #hivm.address_space<ub>>) outs(%h : memref<4x8xf16, #hivm.address_space<ub>>){{$}}
// CHECK-NEXT:    hivm.hir.vcmp ins(%a, %a : memref<4x8xf32, #hivm.address_space<ub>>, memref<4x8xf32, #hivm.address_space<ub>>) outs(%p : memref<4x8xi1, #hivm.address_space<ub>>) compare_mode = <lt>
// CHECK-NEXT:    hivm.hir.vsel ins(%p, %a, %a : memref<4x8xi1, #hivm.address_space<ub>>, memref<4x8xf32, #hivm.address_space<ub>>, memref<4x8xf32, #hivm.address_space<ub>>) outs(%a : memref<4x8xf32, #hivm.address_space<ub>>)
// CHECK-NEXT:    hivm.hir.vshr ins(%i, %w : tensor<4xi32>, i32) outs(%i : tensor<4xi32>) round : false -> tensor<4xi32>
func.func @elementwise(%a: !m, %r: !r, %t: !t, %s: f32, %i: tensor<4xi32>, %w: i32,
                       %h: memref<4x8xf16, #hivm.address_space<ub>>, %p: memref<4x8xi1, #hivm.address_space<ub>>) {
  hivm.hir.vadd ins(%a, %r : !m, !r) outs(%a : !m) temp_buffer(%t : !t) broadcast = [1]
  hivm.hir.vmul ins(%a, %s : !m, f32) outs(%a : !m)
  hivm.hir.vdiv ins(%a, %a : !m, !m) outs(%a : !m) isSigned = false isHP = true
  %0 = hivm.hir.vmax ins(%i, %i : tensor<4xi32>, tensor<4xi32>) outs(%i : tensor<4xi32>) is_signed = false -> tensor<4xi32>
  hivm.hir.vcast ins(%a : !m) outs(%h : memref<4x8xf16, #hivm.address_space<ub>>) round_mode = <odd>
  // Defaults are left out.
  hivm.hir.vcast ins(%a : !m) outs(%h : memref<4x8xf16, #hivm.address_space<ub>>) round_mode = <rint>
  hivm.hir.vcmp ins(%a, %a : !m, !m) outs(%p : memref<4x8xi1, #hivm.address_space<ub>>) compare_mode = #hivm.compare_mode<lt>
  hivm.hir.vsel ins(%p, %a, %a : memref<4x8xi1, #hivm.address_space<ub>>, !m, !m) outs(%a : !m)
  %1 = hivm.hir.vshr ins(%i, %w : tensor<4xi32>, i32) outs(%i : tensor<4xi32>) round : false -> tensor<4xi32>
  return
}
