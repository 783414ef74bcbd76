// The scores of a likelihood: a sum over dimensions of the log of a mixture.
// A thread takes one pattern, or one candidate of a query, and QUERIES_PER_THREAD queries.
extern "C" __global__ void __launch_bounds__(THREADS)
mixture(const float *patterns, const float *centre, const long long *chosen, const float *queries, const float *lost,
        const float *gain, const float *inverse, const float *level, const float *seen, float *out, int columns,
        int dims, int kinds, int query_count) {
    int column = blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns) return;
    for (long long first = (long long)blockIdx.y * QUERIES_PER_THREAD; first < query_count;
         first += (long long)gridDim.y * QUERIES_PER_THREAD) {
        long long row = CHOSEN ? chosen[first * columns + column] : column;
        const float *pattern = patterns + (row < 0 ? 0 : row) * dims;
        float totals[QUERIES_PER_THREAD];
#pragma unroll
        for (int own = 0; own < QUERIES_PER_THREAD; own++) totals[own] = 0.0f;
        for (int place = 0; place < dims; place++) {
            float value = pattern[place] - *centre;
#pragma unroll
            for (int own = 0; own < QUERIES_PER_THREAD; own++) {
                long long query = min(first + own, (long long)query_count - 1);
                float asked = queries[query * dims + place], gone = lost[query * dims + place], top = gone;
                for (int kind = 0; kind < kinds; kind++) {
                    float gap = (asked - gain[kind] * value) * inverse[kind * dims + place];
                    top = fmaxf(top, level[kind * dims + place] - gap * gap);
                }
                float sum = __expf(gone - top);
                for (int kind = 0; kind < kinds; kind++) {
                    float gap = (asked - gain[kind] * value) * inverse[kind * dims + place];
                    sum += __expf(level[kind * dims + place] - gap * gap - top);
                }
                totals[own] += seen[query * dims + place] * (top + __logf(sum));
            }
        }
#pragma unroll
        for (int own = 0; own < QUERIES_PER_THREAD; own++)
            if (first + own < query_count) out[(first + own) * columns + column] = totals[own];
    }
}
