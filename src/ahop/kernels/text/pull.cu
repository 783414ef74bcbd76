// Gradients to the owners (patterns or queries, as the caller has it) and to the weights of the sorted terms.
extern "C" __global__ void __launch_bounds__(THREADS, PULL_BLOCKS)
pull(const float *owners, const float *others, const float *weights, const float *slopes, float *to_owners,
     float *to_weights, int owner_count, int other_count, int owner_step, int other_step,
     int weight_groups, int own_weights, int owner_is_query, int tiles, int tile, int per_split) {
    extern __shared__ float4 shared[];
    int group = blockIdx.x / tiles, lane = threadIdx.x % LANES, warp = threadIdx.x / 32;
    int n = (blockIdx.x % tiles * blockDim.x + threadIdx.x) / LANES;
    bool inside = n < owner_count;
    int owner = min(n, owner_count - 1);
    float4 *rows = shared;
#if INPUTS
    // One column of shared memory for each pair, where a sorted term finds the place it came from.
    float *column = reinterpret_cast<float *>(rows + tile * STRIDE / 4) + warp * 32 * VALUES + threadIdx.x % 32 / LANES;
#endif
    weights += (size_t)(group % weight_groups) * (own_weights ? (owner_is_query ? owner_count : other_count) : 1) *
               BASES * STRIDE;
    to_weights += (size_t)(group % weight_groups) * (own_weights ? owner_count : 1) * BASES * STRIDE;
    slopes += (size_t)group * owner_count * other_count + (size_t)owner * owner_step;
    others += (size_t)group * other_count * STRIDE;
    float mine[VALUES], v[VALUES];
    load(mine, vectors(owners + ((size_t)group * owner_count + owner) * STRIDE), lane);
#if INPUTS
    float to_mine[VALUES];
#pragma unroll
    for (int e = 0; e < VALUES; e++) to_mine[e] = 0.0f;
#endif
    int begin = blockIdx.y * per_split, end = min(begin + per_split, other_count);
#pragma unroll 1
    for (int base = 0; base < BASES; base++) {
        int kind = (KINDS >> (2 * base)) & 3;
#if WEIGHTS
        float to_rank[VALUES];
#pragma unroll
        for (int e = 0; e < VALUES; e++) to_rank[e] = 0.0f;
#endif
#pragma unroll 1
        for (int start = begin; start < end; start += tile) {
            int count = min(tile, end - start);
            __syncthreads();
            copy(rows, others + (size_t)start * STRIDE, count * STRIDE);
            __syncthreads();
#pragma unroll 1
            for (int i = 0; i < count; i++) {
                const float4 *row = rows + i * STRIDE / 4;
                float slope = inside ? slopes[(size_t)(start + i) * other_step] : 0.0f;
                terms(v, mine, row, lane, kind);
#if INPUTS
#pragma unroll
                for (int e = 0; e < VALUES; e++)
                    v[e] = __int_as_float((__float_as_int(v[e]) & ~PLACE) | (e * LANES + lane));
#endif
                sort(v, lane);
#if WEIGHTS
#pragma unroll
                for (int e = 0; e < VALUES; e++) to_rank[e] += slope * v[e];
#endif
#if INPUTS
                int line = own_weights ? (owner_is_query ? owner : start + i) : 0;
                const float4 *weight = vectors(weights + ((size_t)line * BASES + base) * STRIDE);
#pragma unroll
                for (int e = 0; e < VALUES; e += 4) {
                    float4 four = weight[e / 4 * LANES + lane];
                    column[(__float_as_int(v[e]) & PLACE) * (32 / LANES)] = four.x;
                    if (e + 1 < VALUES) column[(__float_as_int(v[e + 1]) & PLACE) * (32 / LANES)] = four.y;
                    if (e + 2 < VALUES) column[(__float_as_int(v[e + 2]) & PLACE) * (32 / LANES)] = four.z;
                    if (e + 3 < VALUES) column[(__float_as_int(v[e + 3]) & PLACE) * (32 / LANES)] = four.w;
                }
                __syncwarp();
                load(v, row, lane);
#pragma unroll
                for (int e = 0; e < VALUES; e++) {
                    float gap = v[e] - mine[e];
                    float steep = kind == 0 ? 2.0f * gap : kind == 1 ? v[e] : (gap > 0.0f) - (gap < 0.0f);
                    float push = slope * column[(e * LANES + lane) * (32 / LANES)] * steep;
                    // Dimensions that do not count are NaN.
                    to_mine[e] += !MASKED || gap == gap ? push : 0.0f;
                }
                __syncwarp();
#endif
            }
        }
#if WEIGHTS
        float *target = to_weights + ((size_t)(own_weights ? owner : 0) * BASES + base) * STRIDE;
#pragma unroll
        for (int e = 0; e < VALUES; e++) {
            float total = inside ? to_rank[e] : 0.0f;
            // Where the weights are shared, so is the sum: over the warp first.
            if (!own_weights)
                for (int pairs = LANES; pairs < 32; pairs *= 2) total += swap(total, pairs);
            int place = (e / 4 * LANES + lane) * 4 + e % 4;
            if (own_weights ? inside : threadIdx.x % 32 < LANES) atomicAdd(target + place, total);
        }
#endif
    }
#if INPUTS
    if (inside) {
        float *target = to_owners + ((size_t)group * owner_count + owner) * STRIDE;
#pragma unroll
        for (int e = 0; e < VALUES; e++) atomicAdd(target + (e / 4 * LANES + lane) * 4 + e % 4, to_mine[e]);
    }
#endif
}
