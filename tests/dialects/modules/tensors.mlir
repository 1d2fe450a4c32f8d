// Tensors made from places, seen as other types and without a rank, and gathered.
module {
  func.func @tensors(%t: tensor<16x?xf32>, %u: tensor<*xf32>, %n: index, %x: f32, %h: tensor<2xindex>, %i: tensor<5x1xindex>) -> (index, tensor<?x4xf32>) {
    %0 = tensor.rank %u : tensor<*xf32>
    %1 = tensor.generate %n, %n {
    ^bb0(%a: index, %b: index, %c: index):
      tensor.yield %x : f32
    } : tensor<?x3x?xf32>
    %2 = tensor.bitcast %t : tensor<16x?xf32> to tensor<16x?xi32>
    %3 = tensor.reshape %u(%h) : (tensor<*xf32>, tensor<2xindex>) -> tensor<?x4xf32>
    %4 = tensor.reshape %3(%h) : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<*xf32>
    %5 = tensor.gather %t[%i] gather_dims([1]) : (tensor<16x?xf32>, tensor<5x1xindex>) -> tensor<5x16xf32>
    %6 = tensor.gather %t[%i] gather_dims([1]) unique : (tensor<16x?xf32>, tensor<5x1xindex>) -> tensor<5x16x1xf32>
    return %0, %3 : index, tensor<?x4xf32>
  }
}
