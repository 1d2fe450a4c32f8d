// The values of maps: one, the smallest and the largest of several; comparisons and branches with attributes of others.
module {
  func.func @maps(%i: index, %n: index, %x: f32) -> index {
    %0 = affine.apply affine_map<(d0)[s0] -> ((d0 + s0))>(%i)[%n] {tag}
    %1 = affine.min affine_map<()[s0] -> (8, s0)>()[%n]
    %2 = affine.max affine_map<(d0, d1)[s0] -> (d0, (d1 * 2), (s0 + -4))>(%0, %1)[%n]
    %3 = affine.max affine_map<(d0) -> (d0)>(%2) {tag = 1 : i32}
    %4 = arith.cmpi slt, %3, %n {number = 3 : i32} : index
    %5 = arith.remf %x, %x : f32
    %6 = arith.cmpf olt, %5, %x fastmath<nnan> {number = 4 : i32} : f32
    %7 = arith.andi %4, %6 : i1
    scf.if %7 {
      %8 = arith.addi %3, %n : index
    } else {
      %9 = ub.poison : i32
    }
    return %3 : index
  }
}
