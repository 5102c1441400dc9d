/* cuBLASLt in host memory, for tests: column-major D = op(A) op(B) (+ bias), as its documentation defines it. It refuses
   what the device is not to ask for: TF32, an alignment that is not there, a layout that does not fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 15 };
struct description { int compute, transposed_a, transposed_b; unsigned epilogue; float *bias; };
struct layout { unsigned long long rows, columns; long long stride; };
struct preference { unsigned long long scratch; unsigned alignment[4]; };
struct result { unsigned long long algorithm[8]; size_t scratch; int state; float waves; int reserved[4]; };

int cublasLtCreate(void **handle) { *handle = malloc(1); return OK; }
int cublasLtDestroy(void *handle) { free(handle); return OK; }

int cublasLtMatmulDescCreate(struct description **out, int compute, int scale) {
  *out = calloc(1, sizeof **out);
  (*out)->compute = compute;
  (*out)->epilogue = 1;
  return scale == 0 ? OK : NOT_SUPPORTED;
}
int cublasLtMatmulDescSetAttribute(struct description *d, int attribute, const void *value, size_t bytes) {
  switch (attribute) {
    case 3: memcpy(&d->transposed_a, value, bytes); return bytes == 4 ? OK : NOT_SUPPORTED;
    case 4: memcpy(&d->transposed_b, value, bytes); return bytes == 4 ? OK : NOT_SUPPORTED;
    case 7: memcpy(&d->epilogue, value, bytes); return bytes == 4 ? OK : NOT_SUPPORTED;
    case 8: memcpy(&d->bias, value, bytes); return bytes == 8 ? OK : NOT_SUPPORTED;
  }
  return NOT_SUPPORTED;
}
int cublasLtMatmulDescDestroy(struct description *d) { free(d); return OK; }

int cublasLtMatrixLayoutCreate(struct layout **out, int type, unsigned long long rows, unsigned long long columns, long long stride) {
  *out = malloc(sizeof **out);
  **out = (struct layout){rows, columns, stride};
  return type == 0 && stride >= (long long)rows ? OK : NOT_SUPPORTED;
}
int cublasLtMatrixLayoutDestroy(struct layout *l) { free(l); return OK; }

int cublasLtMatmulPreferenceCreate(struct preference **out) {
  *out = malloc(sizeof **out);
  **out = (struct preference){0, {256, 256, 256, 256}};
  return OK;
}
int cublasLtMatmulPreferenceSetAttribute(struct preference *p, int attribute, const void *value, size_t bytes) {
  if (attribute == 1) memcpy(&p->scratch, value, bytes);
  else if (attribute >= 5 && attribute <= 8) memcpy(&p->alignment[attribute - 5], value, bytes);
  else return NOT_SUPPORTED;
  return OK;
}
int cublasLtMatmulPreferenceDestroy(struct preference *p) { free(p); return OK; }

/* The algorithm carries the alignments that it was chosen for, so that the product can check them. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, struct description *d, struct layout *a, struct layout *b, struct layout *c,
                                   struct layout *out, struct preference *p, int wanted, struct result *found, int *count) {
  memset(found, 0, sizeof *found);
  for (int i = 0; i < 4; i++) found->algorithm[i] = p->alignment[i];
  *count = d->compute == 68 && wanted == 1; /* CUBLAS_COMPUTE_32F */
  return *count ? OK : NOT_SUPPORTED;
}

int cublasLtMatmul(void *handle, struct description *d, const float *alpha, const float *A, struct layout *a, const float *B,
                   struct layout *b, const float *beta, const float *C, struct layout *c, float *D, struct layout *out,
                   const unsigned long long *algorithm, void *scratch, size_t bytes, void *stream) {
  const void *operands[4] = {A, B, C, D};
  for (int i = 0; i < 4; i++)
    if ((unsigned long long)operands[i] % algorithm[i] != 0) return NOT_SUPPORTED;
  unsigned long long m = out->rows, n = out->columns, k = d->transposed_a ? a->rows : a->columns;
  if ((d->transposed_a ? a->columns : a->rows) != m || b->rows != k || b->columns != n || d->transposed_b) return NOT_SUPPORTED;
  printf("cublaslt launch %llu x %llu x %llu%s\n", m, n, k, d->epilogue == 4 ? " with bias" : "");
  fflush(stdout);
  for (unsigned long long j = 0; j < n; j++)
    for (unsigned long long i = 0; i < m; i++) {
      double sum = 0;
      for (unsigned long long l = 0; l < k; l++)
        sum += (double)(d->transposed_a ? A[l + i * a->stride] : A[i + l * a->stride]) * B[l + j * b->stride];
      sum = *alpha * sum + (*beta == 0 ? 0 : *beta * C[i + j * c->stride]);
      D[i + j * out->stride] = (float)(sum + (d->epilogue == 4 ? d->bias[i] : 0));
    }
  return OK;
}
