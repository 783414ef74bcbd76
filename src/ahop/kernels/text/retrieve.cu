// Scores, softmax and readout in one pass: running maximum, sum and blend for each query of the tile.
// Blocks split the patterns among them and leave partial results, which the caller combines.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
retrieve(const float *patterns, const float *queries, const float *weights, const float *values, const float *bias,
         float *out, float *peaks, float *sums, int pattern_count, int query_count, int width,
         int weight_groups, int own_weights, int has_bias, int tiles, int tile, int per_split) {
    extern __shared__ float4 shared[];
    int group = blockIdx.x / tiles, split = blockIdx.y, column = tile + 4, per_tile = THREADS / LANES;
    int first = blockIdx.x % tiles * tile, count = min(tile, query_count - first);
    float4 *rows = shared, *weight_rows = rows + tile * STRIDE / 4;
    float *table = reinterpret_cast<float *>(weight_rows + (own_weights ? tile : 1) * BASES * STRIDE / 4);
    float *blend = table + per_tile * column, *peak = blend + tile * width, *mass = peak + tile, *fade = mass + tile;
    const float *weight = weights + (size_t)(group % weight_groups) * (own_weights ? query_count : 1) * BASES * STRIDE;
    copy(rows, queries + ((size_t)group * query_count + first) * STRIDE, count * STRIDE);
    copy(weight_rows, own_weights ? weight + (size_t)first * BASES * STRIDE : weight,
         (own_weights ? count : 1) * BASES * STRIDE);
    for (int i = threadIdx.x; i < tile * width; i += THREADS) blend[i] = 0.0f;
    for (int i = threadIdx.x; i < tile; i += THREADS) peak[i] = -INF, mass[i] = 0.0f, fade[i] = 1.0f;
    for (int i = threadIdx.x; i < per_tile * column; i += THREADS) table[i] = 0.0f;
    patterns += (size_t)group * pattern_count * STRIDE;
    values += (size_t)group * pattern_count * width;
    bias = has_bias ? bias + (size_t)group * pattern_count : nullptr;
    int warp = threadIdx.x / 32, inside = threadIdx.x % 32;
    int start = split * per_split, end = min(start + per_split, pattern_count);
    __syncthreads();
    for (; start < end; start += per_tile) {
        score_tile(table, column, rows, weight_rows, patterns, bias, start + threadIdx.x / LANES, end, count, own_weights);
        __syncthreads();
        for (int q = warp; q < count; q += THREADS / 32) {
            float before = peak[q], top = before;
            for (int i = inside; i < per_tile; i += 32) top = fmaxf(top, table[i * column + q]);
            top = largest(top);
            float total = 0.0f;
            for (int i = inside; i < per_tile; i += 32)
                total += table[i * column + q] = against(table[i * column + q], top);
            total = sum(total);
            if (inside == 0) {
                fade[q] = against(before, top);
                peak[q] = top;
                mass[q] = mass[q] * fade[q] + total;
            }
        }
        __syncthreads();
        // Eight queries and one column of the values at a time.
        for (int item = threadIdx.x; item < tile / 8 * width; item += THREADS) {
            int q = item / width * 8, c = item % width;
            float sums_here[8];
#pragma unroll
            for (int i = 0; i < 8; i++) sums_here[i] = blend[(q + i) * width + c] * fade[q + i];
            // Several loads under way at once.
#pragma unroll 8
            for (int i = 0; i < min(per_tile, end - start); i++) {
                float value = values[(size_t)(start + i) * width + c];
                const float4 *chances = vectors(table + i * column + q);
                float4 low = chances[0], high = chances[1];
                sums_here[0] += low.x * value, sums_here[1] += low.y * value;
                sums_here[2] += low.z * value, sums_here[3] += low.w * value;
                sums_here[4] += high.x * value, sums_here[5] += high.y * value;
                sums_here[6] += high.z * value, sums_here[7] += high.w * value;
            }
#pragma unroll
            for (int i = 0; i < 8; i++) blend[(q + i) * width + c] = sums_here[i];
        }
        __syncthreads();
    }
    size_t row = ((size_t)split * (gridDim.x / tiles) + group) * query_count + first;
    for (int i = threadIdx.x; i < count * width; i += THREADS) out[row * width + i] = blend[i];
    for (int i = threadIdx.x; i < count; i += THREADS) peaks[row + i] = peak[i], sums[row + i] = mass[i];
}
