// For kernels that never write scores to memory: a tile of patterns by queries at a time, in shared memory.
// The scores of one tile, a row for each pattern, `column` numbers apart; minus infinity past the last.
__device__ __forceinline__ void score_tile(float *table, int column, const float4 *rows, const float4 *weight_rows,
                                           const float *patterns, const float *bias, int n, int end, int count,
                                           int own_weights) {
    int lane = threadIdx.x % LANES, place = threadIdx.x / LANES;
    float mine[VALUES], v[VALUES];
    load(mine, vectors(patterns + (size_t)min(n, end - 1) * STRIDE), lane);
    float more = bias ? bias[min(n, end - 1)] : 0.0f;
    for (int q = 0; q < count; q++) {
        float total = 0.0f;
#pragma unroll UNROLL
        for (int base = 0; base < BASES; base++) {
            terms(v, mine, rows + q * STRIDE / 4, lane, (KINDS >> (2 * base)) & 3);
            sort(v, lane);
            total += weigh(v, weight_rows + ((own_weights ? q : 0) * BASES + base) * STRIDE / 4, lane);
        }
        total = over_lanes(total) + more;
        if (lane == 0) table[place * column + q] = n < end ? total : -INF;
    }
}

__device__ __forceinline__ float largest(float x) {
    for (int mask = 16; mask; mask /= 2) x = fmaxf(x, swap(x, mask));
    return x;
}

__device__ __forceinline__ float sum(float x) {
    for (int mask = 16; mask; mask /= 2) x += swap(x, mask);
    return x;
}

// A maximum of minus infinity (all patterns excluded so far) must not make NaN of the differences.
__device__ __forceinline__ float against(float x, float peak) { return peak == -INF ? 0.0f : __expf(x - peak); }
