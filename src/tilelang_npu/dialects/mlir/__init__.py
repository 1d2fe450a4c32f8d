"""MLIR's own dialects in the syntax of LLVM 19: ops that xDSL lacks, and rules of MLIR that xDSL does not verify."""
