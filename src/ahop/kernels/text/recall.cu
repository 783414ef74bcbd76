// The best patterns of each query, and the parts of the softmax's sum, in one pass over the patterns.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
recall(const float *patterns, const float *queries, const float *weights, const float *bias, float *best, int *indices,
       float *peaks, float *sums, int pattern_count, int query_count, int kept,
       int weight_groups, int own_weights, int has_bias, int tiles, int tile, int per_split) {
    extern __shared__ float4 shared[];
    int group = blockIdx.x / tiles, split = blockIdx.y, column = tile + 4, per_tile = THREADS / LANES;
    int first = blockIdx.x % tiles * tile, count = min(tile, query_count - first);
    float4 *rows = shared, *weight_rows = rows + tile * STRIDE / 4;
    float *table = reinterpret_cast<float *>(weight_rows + (own_weights ? tile : 1) * BASES * STRIDE / 4);
    float *top_scores = table + per_tile * column;
    int *top_places = reinterpret_cast<int *>(top_scores + tile * KEPT);
    float *peak = reinterpret_cast<float *>(top_places + tile * KEPT), *mass = peak + tile;
    const float *weight = weights + (size_t)(group % weight_groups) * (own_weights ? query_count : 1) * BASES * STRIDE;
    copy(rows, queries + ((size_t)group * query_count + first) * STRIDE, count * STRIDE);
    copy(weight_rows, own_weights ? weight + (size_t)first * BASES * STRIDE : weight,
         (own_weights ? count : 1) * BASES * STRIDE);
    for (int i = threadIdx.x; i < tile * KEPT; i += THREADS) top_scores[i] = -INF, top_places[i] = 0;
    for (int i = threadIdx.x; i < tile; i += THREADS) peak[i] = -INF, mass[i] = 0.0f;
    patterns += (size_t)group * pattern_count * STRIDE;
    bias = has_bias ? bias + (size_t)group * pattern_count : nullptr;
    int warp = threadIdx.x / 32, inside = threadIdx.x % 32;
    int start = split * per_split, end = min(start + per_split, pattern_count);
    __syncthreads();
    for (; start < end; start += per_tile) {
        score_tile(table, column, rows, weight_rows, patterns, bias, start + threadIdx.x / LANES, end, count, own_weights);
        __syncthreads();
        for (int q = warp; q < count; q += THREADS / 32) {
            // The ranking so far, one entry a lane; what beats the last of them is put in its place, in order.
            float mine = top_scores[q * KEPT + inside], top = peak[q], total = 0.0f;
            int place = top_places[q * KEPT + inside];
            for (int i = 0; i < per_tile; i += 32) {
                float score = i + inside < per_tile ? table[(i + inside) * column + q] : -INF;
                unsigned waiting = __ballot_sync(ALL, score > __shfl_sync(ALL, mine, kept - 1));
                while (waiting) {
                    int source = __ffs(waiting) - 1;
                    waiting &= waiting - 1;
                    float candidate = __shfl_sync(ALL, score, source);
                    int ahead = __popc(__ballot_sync(ALL, mine >= candidate));
                    float next_score = __shfl_up_sync(ALL, mine, 1);
                    int next_place = __shfl_up_sync(ALL, place, 1);
                    if (inside > ahead) mine = next_score, place = next_place;
                    if (inside == ahead) mine = candidate, place = start + i + source;
                }
                float higher = largest(fmaxf(top, score));
                total = total * against(top, higher) + against(score, higher);
                top = higher;
            }
            total = sum(total);
            top_scores[q * KEPT + inside] = mine;
            top_places[q * KEPT + inside] = place;
            if (inside == 0) {
                mass[q] = mass[q] * against(peak[q], top) + total;
                peak[q] = top;
            }
            __syncwarp();
        }
        __syncthreads();
    }
    size_t row = ((size_t)split * (gridDim.x / tiles) + group) * query_count + first;
    for (int i = threadIdx.x; i < count * kept; i += THREADS) {
        best[row * kept + i] = top_scores[i / kept * KEPT + i % kept];
        indices[row * kept + i] = top_places[i / kept * KEPT + i % kept];
    }
    for (int i = threadIdx.x; i < count; i += THREADS) peaks[row + i] = peak[i], sums[row + i] = mass[i];
}
