// What all kernels share: a lane's part of a row, the terms of a pair, and their weighted sum.
// Numbers in capitals, and sort(), are rendered for each number of dimensions: see cuda_text.py.
#define LOWEST -3.402823466e+38f
#define ALL 0xffffffffu
#define INF __int_as_float(0x7f800000)

__device__ __forceinline__ void order(float &a, float &b) {
    float larger = fmaxf(a, b);
    b = fminf(a, b);
    a = larger;
}

__device__ __forceinline__ float swap(float x, int mask) { return __shfl_xor_sync(ALL, x, mask); }

// Two values of a lane with their mirror images in the other lane, of which one side is negated.
__device__ __forceinline__ void meet(float &a, float &b, int mask) {
    float from_b = swap(b, mask), from_a = swap(a, mask);
    a = fmaxf(a, -from_b);
    b = fmaxf(b, -from_a);
}

__device__ __forceinline__ void turn(float (&v)[VALUES], bool negate) {
    float sign = negate ? -1.0f : 1.0f;
#pragma unroll
    for (int e = 0; e < VALUES; e++) v[e] *= sign;
}

// A lane's share of a row: vectors of four, dealt out to the lanes in turn.
__device__ __forceinline__ void load(float (&v)[VALUES], const float4 *row, int lane) {
#pragma unroll
    for (int e = 0; e < VALUES; e += 4) {
        float4 four = row[e / 4 * LANES + lane];
        v[e] = four.x;
        if (e + 1 < VALUES) v[e + 1] = four.y;
        if (e + 2 < VALUES) v[e + 2] = four.z;
        if (e + 3 < VALUES) v[e + 3] = four.w;
    }
}

// A NaN becomes the lowest number: fmaxf gives its other argument.
__device__ __forceinline__ float counted(float x) { return MASKED ? fmaxf(x, LOWEST) : x; }

// The terms of a pair.
__device__ __forceinline__ void terms(float (&v)[VALUES], const float (&mine)[VALUES], const float4 *row, int lane,
                                      int kind) {
    load(v, row, lane);
    if (kind == 0) {
#pragma unroll
        for (int e = 0; e < VALUES; e++) {
            float gap = mine[e] - v[e];
            v[e] = counted(-gap * gap);
        }
    } else if (kind == 1) {
#pragma unroll
        for (int e = 0; e < VALUES; e++) v[e] = counted(mine[e] * v[e]);
    } else {
#pragma unroll
        for (int e = 0; e < VALUES; e++) v[e] = counted(-fabsf(mine[e] - v[e]));
    }
}

__device__ __forceinline__ float weigh(const float (&v)[VALUES], const float4 *weights, int lane) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int e = 0; e < VALUES; e += 4) {
        float4 four = weights[e / 4 * LANES + lane];
        sums[0] += four.x * v[e];
        if (e + 1 < VALUES) sums[1] += four.y * v[e + 1];
        if (e + 2 < VALUES) sums[2] += four.z * v[e + 2];
        if (e + 3 < VALUES) sums[3] += four.w * v[e + 3];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__device__ __forceinline__ float over_lanes(float x) {
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) x += swap(x, mask);
    return x;
}

__device__ __forceinline__ void copy(float4 *to, const float *from, int numbers) {
    const float4 *source = reinterpret_cast<const float4 *>(from);
    for (int i = threadIdx.x; i < numbers / 4; i += blockDim.x) to[i] = source[i];
}

__device__ __forceinline__ const float4 *vectors(const float *row) { return reinterpret_cast<const float4 *>(row); }

