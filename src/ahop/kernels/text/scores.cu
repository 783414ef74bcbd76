// The scores of every pair: a thread keeps its pattern and walks over a tile of queries.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
scores(const float *patterns, const float *queries, const float *weights, float *out, int pattern_count,
       int query_count, int groups, int weight_groups, int own_weights, int tiles, int tile) {
    extern __shared__ float4 shared[];
    int place = blockIdx.x % (groups * tiles), group = place / tiles, lane = threadIdx.x % LANES;
    int n = (place % tiles * blockDim.x + threadIdx.x) / LANES;
    int first = blockIdx.x / (groups * tiles) * tile, count = min(tile, query_count - first);
    float4 *rows = shared, *weight_rows = shared + tile * STRIDE / 4;
    const float *weight = weights + (size_t)(group % weight_groups) * (own_weights ? query_count : 1) * BASES * STRIDE;
    copy(rows, queries + ((size_t)group * query_count + first) * STRIDE, count * STRIDE);
    copy(weight_rows, own_weights ? weight + (size_t)first * BASES * STRIDE : weight,
         (own_weights ? count : 1) * BASES * STRIDE);
    float mine[VALUES], v[VALUES];
    load(mine, vectors(patterns + ((size_t)group * pattern_count + min(n, pattern_count - 1)) * STRIDE), lane);
    out += ((size_t)group * query_count + first) * pattern_count + n;
    bool writes = lane == 0 && n < pattern_count;
    __syncthreads();
    for (int q = 0; q < count; q++, out += pattern_count) {
        float total = 0.0f;
#pragma unroll UNROLL
        for (int base = 0; base < BASES; base++) {
            terms(v, mine, rows + q * STRIDE / 4, lane, (KINDS >> (2 * base)) & 3);
            sort(v, lane);
            total += weigh(v, weight_rows + ((own_weights ? q : 0) * BASES + base) * STRIDE / 4, lane);
        }
        total = over_lanes(total);
        if (writes) *out = total;
    }
}
