// Inline assembly with what NVRTC itself does not emit: scopes, pairs, jump tables, asynchronous copies, barriers in memory.

extern "C" __global__ void jump(int* out, int which) {
  int r = 0;
  asm volatile(
      "{\n"
      "  .reg .u32 t<3>;\n"
      "  mov.u32 t0, %1;\n"
      "  targets: .branchtargets A_%=, B_%=, C_%=;\n"
      "  brx.idx t0, targets;\n"
      "A_%=: mov.u32 %0, 10; bra D_%=;\n"
      "B_%=: mov.u32 %0, 11; bra D_%=;\n"
      "C_%=: mov.u32 %0, 12;\n"
      "D_%=:\n"
      "}\n"
      : "=r"(r)
      : "r"(which));
  out[threadIdx.x] = r;
}

extern "C" __global__ void pairs(unsigned* out) {
  unsigned a, b, c;
  asm volatile(
      "{ .reg .pred p, q, r; setp.lt.and.u32 p|q, %3, 4, 1; shfl.sync.idx.b32 %0|r, %3, 2, 0x1f, 0xffffffff;\n"
      "  selp.u32 %1, 1, 0, q; @!p selp.u32 %2, 1, 0, !r; setp.eq.or.u32 p|_, %3, 0, !q; @p mov.u32 %2, 0; }"
      : "=r"(a), "=r"(b), "=r"(c)
      : "r"(threadIdx.x));
  out[threadIdx.x] = a + b + c;
}

extern "C" __global__ void copies(const float4* in, float* out) {
  __shared__ alignas(16) float4 tile[64];
  __shared__ unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
  unsigned word = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, 16;" ::"r"(at), "l"(in + threadIdx.x) : "memory");
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(word) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(word), "r"(512) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
        "l"(in), "r"(512), "r"(word)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred done; wait: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], 0, 0x989680;\n"
      "  @!done bra.uni wait; }" ::"r"(word)
      : "memory");
  unsigned r0, r1, r2, r3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4+-0];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(at));
  float d[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r1));
  asm volatile("st.global.v4.f32 [%0+16], {%1, %2, %3, 0f3F800000};" ::"l"(out), "f"(d[0]), "f"(d[1]), "f"(d[2]) : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) peers(unsigned* out) {
  __shared__ unsigned word;
  unsigned mine = (unsigned)__cvta_generic_to_shared(&word), theirs, old;
  word = threadIdx.x;
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(theirs) : "r"(mine));
  asm volatile("atom.add.release.cluster.shared::cluster.u32 %0, [%1], 1;" : "=r"(old) : "r"(theirs) : "memory");
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(out) : "memory");
  out[threadIdx.x] = old;
}
