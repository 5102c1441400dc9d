// What the front end of NVRTC can put into a module besides instructions: variables with initial values of every kind, functions
// that are called, called through pointers, or only declared, and texts for printf and assert.

struct Entry {
  float a;
  int b;
  const float* p;
};

__constant__ float table[5] = {1.f, 2.5f, -3.f, 0.1f};
__constant__ int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
__constant__ Entry entry = {1.5f, 3, table + 1};
__device__ int counter = 7;
__device__ int target[4];
__device__ int* pointer = &target[2];
__device__ float4 vector = {1, 2, 3, 4};
__device__ double number = 3.25;
__device__ unsigned char bytes[] = "hello";
__device__ __managed__ int managed;

typedef float (*Function)(float);
__device__ __noinline__ float twice(float x) { return x * 2.f; }
__device__ __noinline__ float look_up(float x) { return x + table[(int)x]; }
__device__ Function functions[2] = {twice, look_up};

struct Big {
  float v[6];
};
__device__ __noinline__ Big add(Big b, int n) {
  for (int i = 0; i < 6; ++i) b.v[i] += n;
  return b;
}
__device__ __noinline__ void set(int* p) { *p = 3; }

extern "C" __global__ void __launch_bounds__(128, 2) k(float* out, int n, Big big) {
  __shared__ float tile[33];
  extern __shared__ float4 dynamic[];
  int i = threadIdx.x;
  tile[i % 33] = out[i];
  __syncthreads();
  float x = functions[n & 1](tile[(i + 1) % 33]);
  asm volatile(
      "{ .reg .pred p; .reg .b32 t<3>; setp.ne.u32 p, %1, 0; @p add.f32 %0, %0, 0f3F800000; }"
      : "+f"(x)
      : "r"(n));
  Big sum = add(big, n);
  x += sum.v[n];
  switch (n) {
    case 0: x += 1; break;
    case 1: x *= 3; break;
    case 2: x = sinf(x); break;
    case 3: x = powf(x, 3); break;
    case 4: x -= 3; break;
    case 5: x = tanf(x); break;
  }
  int z;
  set(&z);
  printf("%d %f\n", z, x);
  if (x == 77.f) __trap();
  dynamic[i] = vector;
  float4 v = dynamic[i ^ 1];
  out[i] = x + v.x + v.w + grid[n][1] + entry.p[n] + *pointer + number + counter + bytes[n] + managed;
#pragma unroll 1
  for (int j = 0; j < n; ++j) out[j] += 1;
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) clustered(float* out) { out[0] = 1; }

template <class T>
__global__ void checks(T* p) {
  assert(p[0] > 0);
  *p = 1;
}
template __global__ void checks<double>(double*);

__global__ void empty() {}
