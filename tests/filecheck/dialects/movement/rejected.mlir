// RUN: tilelang-npu opt %s --split-input-file --verify-diagnostics | filecheck %s
// CHECK: 'hivm.hir.load' op only support src == gm and dst != gm currently!
func.func @f(%x: memref<8xf32, #hivm.address_space<ub>>, %y: memref<8xf32, #hivm.address_space<ub>>) {
  hivm.hir.load ins(%x : memref<8xf32, #hivm.address_space<ub>>) outs(%y : memref<8xf32, #hivm.address_space<ub>>)
  return
}
// -----
// CHECK: 'hivm.hir.load' op if padmode is PadValue, pad_value is required!
func.func @f(%x: memref<7xf32>, %y: memref<8xf32>) {
  hivm.hir.load ins(%x : memref<7xf32>) outs(%y : memref<8xf32>) pad_mode = <PadValue>
  return
}
// -----
// CHECK: 'hivm.hir.store' op only support store ub to gm currently!
func.func @f(%x: memref<8xf32, #hivm.address_space<cc>>, %y: memref<8xf32, #hivm.address_space<gm>>) {
  hivm.hir.store ins(%x : memref<8xf32, #hivm.address_space<cc>>) outs(%y : memref<8xf32, #hivm.address_space<gm>>)
  return
}
// -----
// CHECK: 'hivm.hir.copy' op Unsupported copy from cbuf to ub!
func.func @f(%x: memref<8xf32, #hivm.address_space<cbuf>>, %y: memref<8xf32, #hivm.address_space<ub>>) {
  hivm.hir.copy ins(%x : memref<8xf32, #hivm.address_space<cbuf>>) outs(%y : memref<8xf32, #hivm.address_space<ub>>)
  return
}
// -----
// CHECK: 'hivm.hir.load' op Current hardware doesn't support fp8 type
module attributes {hacc.target = #hacc.target<"Ascend910B3">} {
  func.func @f(%x: memref<8xf8E5M2>, %y: memref<8xf8E5M2>) {
    hivm.hir.load ins(%x : memref<8xf8E5M2>) outs(%y : memref<8xf8E5M2>)
    return
  }
}
