// Casts, comparisons and choices of tensors and vectors.
module {
  func.func @tensors(%a: tensor<6x?xi8>, %x: tensor<8xf32>, %c: i1, %n: tensor<2xindex>) -> tensor<8xf32> {
    %0 = arith.extsi %a : tensor<6x?xi8> to tensor<6x?xi32>
    %1 = arith.extui %a : tensor<6x?xi8> to tensor<6x?xi64>
    %2 = arith.trunci %1 : tensor<6x?xi64> to tensor<6x?xi16>
    %3 = arith.sitofp %2 : tensor<6x?xi16> to tensor<6x?xf16>
    %4 = arith.uitofp %2 : tensor<6x?xi16> to tensor<6x?xf32>
    %5 = arith.fptosi %4 : tensor<6x?xf32> to tensor<6x?xi32>
    %6 = arith.fptoui %3 : tensor<6x?xf16> to tensor<6x?xi8>
    %7 = arith.index_cast %n : tensor<2xindex> to tensor<2xi64>
    %8 = arith.cmpi slt, %0, %5 : tensor<6x?xi32>
    %9 = arith.cmpf ogt, %x, %x fastmath<nnan> : tensor<8xf32>
    %10 = arith.select %8, %0, %5 : tensor<6x?xi1>, tensor<6x?xi32>
    %11 = arith.select %c, %x, %x : tensor<8xf32>
    %12 = arith.select %9, %11, %x {tag} : tensor<8xi1>, tensor<8xf32>
    return %12 : tensor<8xf32>
  }
  func.func @vectors(%a: vector<4x64xi1>, %b: vector<4x64xi16>) -> vector<4x64xi16> {
    %0 = arith.extui %a : vector<4x64xi1> to vector<4x64xi16>
    %1 = arith.index_cast %b : vector<4x64xi16> to vector<4x64xindex>
    %2 = arith.cmpi ule, %0, %b : vector<4x64xi16>
    %3 = arith.select %2, %0, %b : vector<4x64xi1>, vector<4x64xi16>
    return %3 : vector<4x64xi16>
  }
}
