// The sorted terms of every pair.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
list(const float *patterns, const float *queries, float *out, int pattern_count, int query_count, int groups, int tiles,
     int tile, int dim) {
    extern __shared__ float4 shared[];
    int place = blockIdx.x % (groups * tiles), group = place / tiles, lane = threadIdx.x % LANES;
    int n = (place % tiles * blockDim.x + threadIdx.x) / LANES;
    int first = blockIdx.x / (groups * tiles) * tile, count = min(tile, query_count - first);
    copy(shared, queries + ((size_t)group * query_count + first) * STRIDE, count * STRIDE);
    float mine[VALUES], v[VALUES];
    load(mine, vectors(patterns + ((size_t)group * pattern_count + min(n, pattern_count - 1)) * STRIDE), lane);
    __syncthreads();
    for (int q = 0; q < count; q++) {
#pragma unroll 1
        for (int base = 0; base < BASES; base++) {
            terms(v, mine, shared + q * STRIDE / 4, lane, (KINDS >> (2 * base)) & 3);
            sort(v, lane);
            float *row = out + ((((size_t)group * query_count + first + q) * pattern_count + n) * BASES + base) * dim;
#pragma unroll
            for (int e = 0; e < VALUES; e++)
                if (n < pattern_count && lane * VALUES + e < dim) row[lane * VALUES + e] = v[e];
        }
    }
}
