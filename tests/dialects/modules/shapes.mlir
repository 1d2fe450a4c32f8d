// Views and shapes of which the type says more, or less, than the op, in the spelling of LLVM 19.
module {
  func.func @buffers(%a: memref<16xf16>, %b: memref<512xi8, strided<[1]>>, %n: index) {
    %view = memref.reinterpret_cast %a to offset: [%n], sizes: [8], strides: [1] : memref<16xf16> to memref<8xf16, strided<[1], offset: ?>>
    %0 = memref.view %b[%n][] : memref<512xi8, strided<[1]>> to memref<16x16xf16>
    return
  }
  func.func @tensors(%a: tensor<f32>, %b: tensor<5x6xf32>, %c: tensor<?x64xf32>, %n: index, %x: f32) -> tensor<f32> {
    %0 = tensor.expand_shape %a [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
    %1 = tensor.collapse_shape %0 [] : tensor<1x1xf32> into tensor<f32>
    %2 = tensor.pad %b low[%n, 0] high[0, %n] {
    ^bb0(%i: index, %j: index):
      tensor.yield %x : f32
    } : tensor<5x6xf32> to tensor<5x6xf32>
    %3 = tensor.pad %c nofold low[0, 1] high[0, 2] {
    ^bb0(%i_1: index, %j_1: index):
      tensor.yield %x : f32
    } : tensor<?x64xf32> to tensor<8x67xf32>
    return %1 : tensor<f32>
  }
}
