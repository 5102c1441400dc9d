/* A driver in host memory, for tests: the functions of libcuda that the device calls, with kernels known by their names.
   Every launch is printed as a line, so that a test sees what the driver was given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
enum { OK = 0, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500 };

/* Starting, and what the one GPU is: an sm_90 with 132 multiprocessors and 227 KB of shared memory a block. */
int cuInit(unsigned flags) { return OK; }
int cuDriverGetVersion(int *version) { *version = 12090; return OK; }
int cuDeviceGetCount(int *count) { *count = 1; return OK; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Stand-in"); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1 << 30; return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 16: *value = 132; break;     /* multiprocessors */
    case 75: *value = 9; break;       /* compute capability, major */
    case 76: *value = 0; break;       /* and minor */
    case 97: *value = 232448; break;  /* shared memory a block, opt-in */
    default: *value = 1;
  }
  return OK;
}
int cuGetErrorName(int error, const char **name) { *name = "CUDA_ERROR"; return OK; }
int cuGetErrorString(int error, const char **text) { *text = "the stand-in says no"; return OK; }

/* One context and one stream, without content. A call from a thread that has not bound the context is a fault. */
static __thread void *current;
static char context, stream;
int cuDevicePrimaryCtxRetain(void **out, int device) { *out = &context; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { return OK; }
int cuCtxGetCurrent(void **out) { *out = current; return OK; }
int cuCtxSetCurrent(void *chosen) { current = chosen; return OK; }
int cuStreamCreate(void **out, unsigned flags) { *out = &stream; return OK; }
int cuStreamDestroy_v2(void *s) { return OK; }
int cuStreamSynchronize(void *s) { return OK; }
static void must_be_bound(void) { if (current != &context) abort(); }

/* Memory: poisoned when new, at most 32 MB in one piece. */
int cuMemAllocAsync(address *out, size_t bytes, void *s) {
  must_be_bound();
  if (bytes > 32 << 20) return OUT_OF_MEMORY;
  *out = (address)malloc(bytes);
  memset((void *)*out, 0xcd, bytes);
  return OK;
}
int cuMemFreeAsync(address p, void *s) { free((void *)p); return OK; }
static int copy(void *to, const void *from, size_t bytes) { must_be_bound(); memcpy(to, from, bytes); return OK; }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *s) { return copy((void *)to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *s) { return copy(to, (void *)from, bytes); }
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *s) { return copy((void *)to, (void *)from, bytes); }
int cuMemsetD16Async(address to, unsigned short word, size_t count, void *s) {
  must_be_bound();
  for (size_t i = 0; i < count; i++) ((unsigned short *)to)[i] = word;
  return OK;
}
int cuMemsetD32Async(address to, unsigned word, size_t count, void *s) {
  must_be_bound();
  for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = word;
  return OK;
}

/* Modules: anything that begins like an ELF file; a function is its name. */
static char module;
int cuModuleLoadData(void **out, const void *image) {
  *out = &module;
  return memcmp(image, "\177ELF", 4) == 0 ? OK : INVALID_IMAGE;
}
int cuModuleUnload(void *m) { return OK; }
int cuModuleGetFunction(void **out, void *m, const char *name) {
  *out = strdup(name);
  return strcmp(name, "gone") == 0 ? NOT_FOUND : OK;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) { *value = 0; return OK; }
int cuFuncSetAttribute(void *function, int attribute, int value) {
  printf("attribute %d of %s is %d\n", attribute, (char *)function, value);
  return OK;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int block, size_t shared, unsigned flags) {
  *blocks = 1;
  return OK;
}

/* Launches: the kernels of the tests' manifest of `taps` are computed, others only shown. */
#define REALS(i) (*(float **)arguments[i])
#define INT(i) (*(int *)arguments[i])
static void taps(const char *name, void **arguments) {
  if (strcmp(name, "exp_scale") == 0) REALS(1)[0] = expf(REALS(0)[0]);
  if (strcmp(name, "window_of_x") == 0)
    for (int b = 0, batch = INT(2); b < batch; b++) {
      REALS(1)[b] = REALS(0)[b];
      REALS(1)[batch + b] = REALS(0)[b] * 0.5f;
    }
  if (strcmp(name, "sum_taps") == 0)
    for (int i = 0, two = 2 * INT(5); i < INT(4) * INT(5); i++)
      REALS(3)[i] = REALS(2)[0] * (i < two ? REALS(1)[i] : REALS(0)[i - two]);
}
static int launch(const char *name, unsigned grid, unsigned block, unsigned shared, const char *kind, void **arguments) {
  must_be_bound();
  printf("%s %s %u x %u, %u bytes", kind, name, grid, block, shared);
  if (strcmp(name, "loop") == 0) printf(", T %d, B %d, epoch %u", INT(4), INT(5), *(unsigned *)arguments[7]);
  printf("\n");
  fflush(stdout);
  taps(name, arguments);
  return OK;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *s, void **arguments, void **extra) {
  return launch(function, gx * gy * gz, bx * by * bz, shared, "launch", arguments);
}
int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void *s, void **arguments) {
  return launch(function, gx * gy * gz, bx * by * bz, shared, "cooperative launch", arguments);
}
