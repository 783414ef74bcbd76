// One tile of scores, read once: the best of each group, and the log of what a part of each row sums up to.
// A group is what stands in one of `columns` columns when a row is laid out in GROUP lines.
#define INF __int_as_float(0x7f800000)

extern "C" __global__ void __launch_bounds__(THREADS)
fold(const float *tile, const float *scale, float *best, float *logs, int width, int columns, int stride, int offset) {
    __shared__ float shared[32];
    long long row = blockIdx.x;
    int column = blockIdx.y * THREADS + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const float *scores = tile + row * width;
    float unit = scale[row], values[GROUP], peak = -INF;
#pragma unroll
    for (int line = 0; line < GROUP; line++) {
        int place = line * columns + column;
        values[line] = column < columns && place < width ? unit * scores[place] : -INF;
        peak = fmaxf(peak, values[line]);
    }
    if (column < columns) best[row * stride + offset + column] = peak;

    for (int mask = 16; mask; mask >>= 1) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, mask));
    if (!lane) shared[warp] = peak;
    __syncthreads();
    for (int other = 0; other < THREADS / 32; other++) peak = fmaxf(peak, shared[other]);
    __syncthreads();

    float sum = 0.0f;
    if (peak > -INF) {
#pragma unroll
        for (int line = 0; line < GROUP; line++) sum += __expf(values[line] - peak);
    }
    for (int mask = 16; mask; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (!lane) shared[warp] = sum;
    __syncthreads();
    if (!threadIdx.x) {
        for (int other = 1; other < THREADS / 32; other++) sum += shared[other];
        logs[row * gridDim.y + blockIdx.y] = peak + logf(sum);
    }
}
