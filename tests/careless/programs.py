"""Programs that kernel authors get wrong around the kernel's body: declarations, the factory, calls. As ``statements.py``."""

HEAD = '''\
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

SYNC = {"tl.ascend_auto_sync": True}
A = np.arange(512, dtype=np.float32).reshape(8, 64)

'''
KERNEL = '''\
@tilelang.jit(target="ascendc", out_idx=[-1], pass_configs=SYNC)
def factory(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((M, N), "float32")
            T.copy(A, x)
            T.copy(x, B)
    return main

result = factory(8, 64)(A)
'''
MATRICES = '''\
@tilelang.jit(target="npuir", out_idx=[-1])
def factory(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.copy(c, C)
    return main

P = (np.arange(64 * 32).reshape(64, 32) % 7 - 3).astype(np.float16)
Q = (np.arange(32 * 48).reshape(32, 48) % 5 - 2).astype(np.float16)
result = factory(64, 48, 32)(P, Q)
'''

CASES = [
    # name, program, edits that make the mistake, code, text at the caret, advice, edits that correct it, the expected result
    ("an argument too few", KERNEL, (("(A)\n", "()\n"),), "T401", "factory(8, 64)()", "call it with A", (), "A"),
    ("an argument too many", KERNEL, (("(A)\n", "(A, A, A)\n"),), "T401", "factory(8, 64)(A, A, A)", "call it with A", (),
     "A"),
    ("out_idx forgotten", KERNEL, ((", out_idx=[-1]", ""),), "T401", "factory(8, 64)(A)",
     "call it with A, B, or let jit(out_idx=[-1]) make and return B", (), "A"),
    ("out_idx past the end", KERNEL, (("out_idx=[-1]", "out_idx=[5]"),), "T709", "out_idx",
     "a negative index counts from the last parameter", (), "A"),
    ("a target that does not exist", KERNEL, (('target="ascendc"', 'target="ascend"'),), "T703", "target",
     "did you mean 'ascendc'?", (), "A"),
    ("a list for an array", KERNEL, (("(A)\n", "([1.0, 2.0])\n"),), "T405", 'A: T.Tensor((M, N), "float32")',
     "pass a NumPy array or a torch tensor", (), "A"),
    ("an array of float64", KERNEL, (("(A)\n", "(A.astype(np.float64))\n"),), "T402", 'A: T.Tensor((M, N), "float32")',
     "pass A.astype(numpy.float32)", (), "A"),
    ("an array with gaps", KERNEL, (("(A)\n", "(np.asfortranarray(A))\n"),), "T404", 'A: T.Tensor((M, N), "float32")',
     "pass numpy.ascontiguousarray(A)", (("(A)\n", "(np.ascontiguousarray(np.asfortranarray(A)))\n"),), "A"),
    ("T.prim_func forgotten", KERNEL, (("    @T.prim_func\n", ""),), "T708", "@tilelang.jit",
     "write @T.prim_func above the kernel", (), "A"),
    ("return main forgotten", KERNEL, (("    return main\n", ""),), "T708", "@tilelang.jit",
     "end the factory with `return` and the kernel's name", (), "A"),
    ("a factory that is not called", KERNEL, (("factory(8, 64)(A)", "factory(A)"),), "T401", "factory(A)",
     "its parameters are M, N", (), "A"),
    ("T.Kernel forgotten", KERNEL, (("        with T.Kernel(1, is_npu=True) as (cid, vid):\n", "        if True:\n"),),
     "T160", 'T.alloc_ub((M, N), "float32")',
     "move it below `with T.Kernel(...)`; only scalars may be defined above it", (), "A"),
    ("T.Kernel without blocks", KERNEL, (("T.Kernel(1, is_npu=True)", "T.Kernel(is_npu=True)"),), "T150",
     "T.Kernel(is_npu=True)", "give the number of blocks: T.Kernel(blocks, is_npu=True)", (), "A"),
    ("a grid that is a float", KERNEL, (("T.Kernel(1,", "T.Kernel(M / 8,"),), "T150", "T.Kernel(M / 8, is_npu=True)",
     "T.ceildiv(size, block) counts the blocks of a size", (("T.Kernel(1,", "T.Kernel(M // 8,"),), "A"),
    ("a grid of no blocks", KERNEL, (("T.Kernel(1,", "T.Kernel(M // 16,"),), "T150", "T.Kernel(M // 16, is_npu=True)",
     "T.ceildiv(size, block) counts the blocks of a size", (("T.Kernel(1,", "T.Kernel(T.ceildiv(M, 16),"),), "A"),
    ("a grid of too many blocks", KERNEL, (("T.Kernel(1,", "T.Kernel(100000,"),), "T406", "T.Kernel",
     "take larger tiles, or let each block loop over several of them (T.Persistent)", (), "A"),
    ("a parameter without a type", KERNEL, (('B: T.Tensor((M, N), "float32")', "B"),), "T151", "B",
     "write B: T.Tensor(shape, dtype), or B: T.int32 for a number", (), "A"),
    ("a parameter with a default", KERNEL, (('B: T.Tensor((M, N), "float32")', 'B: T.Tensor((M, N), "float32") = None'),),
     "T151", "None", "make it a parameter of the factory", (), "A"),
    ("*args", KERNEL, (('B: T.Tensor((M, N), "float32")', "*B"),), "T151", "B", "declare each parameter by name", (), "A"),
    ("a misspelt type of a parameter", KERNEL, (('B: T.Tensor((M, N), "float32")', 'B: T.Tensor((M, N), "fp33")'),), "T110",
     'B: T.Tensor((M, N), "fp33")', "write it as a string or as T.float16, T.int32, ...", (), "A"),
    ("an array as the type of a parameter", KERNEL, (('B: T.Tensor((M, N), "float32")', "B: np.ndarray"),), "T151",
     "B: np.ndarray", "write T.Tensor(shape, dtype), or an element type such as T.int32 for a number", (), "A"),
    ("a size that is a float", KERNEL, (('B: T.Tensor((M, N), "float32")', 'B: T.Tensor((M, N / 1), "float32")'),), "T151",
     'B: T.Tensor((M, N / 1), "float32")', "use // instead of /, or T.symbolic(name) for a size that a call binds", (), "A"),
    ("a buffer above T.Kernel", KERNEL,
     (("        with T.Kernel", '        y = T.alloc_ub((M, N), "float32")\n        with T.Kernel'),), "T160",
     'T.alloc_ub((M, N), "float32")', "move it below `with T.Kernel(...)`; only scalars may be defined above it", (),
     "A"),
    ("async def", KERNEL, (("    def main", "    async def main"),), "T141", " ", "write def", (), "A"),
    ("a size that nothing binds", KERNEL,
     (("            T.copy(x, B)", '            n = T.dynamic("n")\n            T.copy(x[0:n, :], B)'),), "T140",
     "x[0:n, :]", "declare a tensor of that size, T.Tensor((n,), dtype), or a number, n: T.int32", (), "A"),
    ("transposed matrices", MATRICES, (("factory(64, 48, 32)(P, Q)", "factory(64, 48, 32)(P.T, Q)"),), "T404",
     'A: T.Tensor((M, K), "float16")', "pass numpy.ascontiguousarray(A)", (), "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("a product with the wrong transpose", MATRICES,
     (("T.gemm(a, b, c, initC=True)", "T.gemm(a, b, c, initC=True, b_transpose=True)"),), "T120",
     "T.gemm(a, b, c, initC=True, b_transpose=True)",
     "A must be M x K, B K x N and C M x N; a transposed A must be K x M", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("a keyword of another product", MATRICES, (("initC=True)", "transpose_b=True)"),), "T145",
     "T.gemm(a, b, c, transpose_b=True)", "did you mean transpose_B? it is called as T.gemm(A, B, C, *options,", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("a product into another shape", MATRICES, (("c = T.alloc_fragment((M, N)", "c = T.alloc_fragment((N, M)"),), "T120",
     "T.gemm(a, b, c, initC=True)", "A must be M x K, B K x N and C M x N; a transposed A must be K x M", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("a product into float16", MATRICES,
     (('c = T.alloc_fragment((M, N), "float32")', 'c = T.alloc_fragment((M, N), "int32")'),), "T121",
     "T.gemm(a, b, c, initC=True)", "the Cube core computes float16 -> float32, bfloat16 -> float32, float32 ->", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("a product of float32 and float16", MATRICES,
     (('b = T.alloc_shared((K, N), "float16")', 'b = T.alloc_shared((K, N), "float32")'),), "T121",
     "T.gemm(a, b, c, initC=True)", "the Cube core computes float16 -> float32, bfloat16 -> float32, float32 ->", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
    ("matrices that are still in GM", MATRICES, (("T.gemm(a, b, c,", "T.gemm(A, B, c,"),), "T122",
     "T.gemm(A, B, c, initC=True)", "the Cube core takes A from L1 (T.alloc_L1 or T.alloc_shared)", (),
     "P.astype(np.float32) @ Q.astype(np.float32)"),
]
