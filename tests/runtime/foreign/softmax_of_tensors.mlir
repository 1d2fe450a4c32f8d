// Rows on tensors, with named ops: what a compiler front end hands over. Sums start from nothing, the maximum from a number.
module {
  func.func @softmax(%x: memref<48x40xf32>, %y: memref<48x40xf32>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %low = arith.constant 0.5 : f32
    scf.for %row = %c0 to %c48 step %c16 {
      %gx = memref.subview %x[%row, 0] [16, 40] [1, 1] : memref<48x40xf32> to memref<16x40xf32, strided<[40, 1], offset: ?>>
      %gy = memref.subview %y[%row, 0] [16, 40] [1, 1] : memref<48x40xf32> to memref<16x40xf32, strided<[40, 1], offset: ?>>
      %buffer = memref.alloc() : memref<16x40xf32>
      memref.copy %gx, %buffer : memref<16x40xf32, strided<[40, 1], offset: ?>> to memref<16x40xf32>
      %t = bufferization.to_tensor %buffer restrict writable : memref<16x40xf32>
      %e = tensor.empty() : tensor<16xf32>
      %full = tensor.empty() : tensor<16x40xf32>
      %start = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %max = linalg.reduce { arith.maximumf } ins(%t : tensor<16x40xf32>) outs(%start : tensor<16xf32>) dimensions = [1]
      %wide = linalg.broadcast ins(%max : tensor<16xf32>) outs(%full : tensor<16x40xf32>) dimensions = [1]
      %less = linalg.elemwise_binary {fun = #linalg.binary_fn<sub>} ins(%t, %wide : tensor<16x40xf32>, tensor<16x40xf32>) outs(%full : tensor<16x40xf32>) -> tensor<16x40xf32>
      %exp = linalg.elemwise_unary {fun = #linalg.unary_fn<exp>} ins(%less : tensor<16x40xf32>) outs(%full : tensor<16x40xf32>) -> tensor<16x40xf32>
      %sum = linalg.reduce { arith.addf } ins(%exp : tensor<16x40xf32>) outs(%e : tensor<16xf32>) dimensions = [1]
      %all = linalg.broadcast ins(%sum : tensor<16xf32>) outs(%full : tensor<16x40xf32>) dimensions = [1]
      %out = linalg.elemwise_binary {fun = #linalg.binary_fn<div>} ins(%exp, %all : tensor<16x40xf32>, tensor<16x40xf32>) outs(%full : tensor<16x40xf32>) -> tensor<16x40xf32>
      bufferization.materialize_in_destination %out in writable %gy : (tensor<16x40xf32>, memref<16x40xf32, strided<[40, 1], offset: ?>>) -> ()
    }
    return
  }
}
