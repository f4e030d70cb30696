// The kernels that CuPy's own functions cannot replace without large temporaries.
//
// Plain enough to compile as C++ as well: no shared memory, no barriers, one thread after the other
// gives the same result. INDEX (int or long long) and VALUE (float, double or unsigned char) are
// the types of a sparse matrix, given as -D.

#ifndef INDEX
#define INDEX int
#endif
#ifndef VALUE
#define VALUE float
#endif

// Entries that one thread adds: enough to pay for its search, few enough to fill the device.
#define RUN 8

// The row (of a CSC matrix: the column) of a stored entry: the last i with indptr[i] <= position.
__device__ long long line_of(const INDEX* indptr, long long lines, long long position)
{
    long long low = 0, high = lines;
    while (high - low > 1) {
        long long middle = (low + high) / 2;
        if ((long long)indptr[middle] <= position) low = middle; else high = middle;
    }
    return low;
}

// Add the class sums of stored entries. Each thread takes a run of them, however they lie in rows:
// so one long row keeps no thread longer than many short ones. Neighbours that add to the same sum
// (of a column of CSC, say) are added up first, and rows without entries are skipped by a search.
//
// total, square: (classes, width); sum_of_squares: (classes, slots), to be summed over the slots,
// which keep threads from waiting for each other. square, sum_of_squares, weights and square_factors
// (by which the squares of a row are multiplied) may be null.
extern "C" __global__ void add_class_sums(
    const VALUE* data, const INDEX* indices, const INDEX* indptr, long long lines,
    long long first_line, long long stored, long long by_row, const int* codes,
    const double* weights, const double* square_factors, long long width, double* total, double* square, double* sum_of_squares,
    long long slots)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long start = thread * RUN;
    if (start >= stored) return;
    long long stop = start + RUN < stored ? start + RUN : stored;
    long long line = line_of(indptr, lines, start);
    long long code_of_sum = -1, target = -1;
    double sum = 0, of_x = 0, of_squares = 0;
    for (long long e = start; e < stop; ++e) {
        if ((long long)indptr[line + 1] <= e) {
            ++line;
            if ((long long)indptr[line + 1] <= e) line += line_of(indptr + line, lines - line, e);
        }
        long long row = by_row ? first_line + line : (long long)indices[e];
        long long column = by_row ? (long long)indices[e] : first_line + line;
        long long code = codes[row];
        double x = widen(data[e]);
        double sx = weights ? weights[row] * x : x;
        if (code * width + column != target) {
            if (target >= 0) {
                atomicAdd(total + target, of_x);
                if (square) atomicAdd(square + target, of_squares);
            }
            target = code * width + column;
            of_x = of_squares = 0;
        }
        of_x += sx;
        if (square) of_squares += sx * x * (square_factors ? square_factors[row] : 1.0);
        if (sum_of_squares) {
            if (code != code_of_sum) {
                if (code_of_sum >= 0)
                    atomicAdd(sum_of_squares + code_of_sum * slots + thread % slots, sum);
                code_of_sum = code;
                sum = 0;
            }
            sum += sx * x;
        }
    }
    atomicAdd(total + target, of_x);
    if (square) atomicAdd(square + target, of_squares);
    if (code_of_sum >= 0) atomicAdd(sum_of_squares + code_of_sum * slots + thread % slots, sum);
}

// Keys whose order is that of (column, class, value): the list above, and below it the bits of the
// value in an order-preserving encoding. Rows with a negative code come last of all.
extern "C" __global__ void pack_lists(
    const float* x, long long row_stride, long long column_stride, long long rows,
    long long columns, const int* codes, long long classes, unsigned long long* keys)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    long long row = i / columns, column = i % columns;
    long long list = codes[row] < 0 ? columns * classes : column * classes + codes[row];
    unsigned int bits = __float_as_uint(x[row * row_stride + column * column_stride]);
    if (bits == 0x80000000u) bits = 0;  // both zeros are one number
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    keys[i] = ((unsigned long long)list << 32) | bits;
}

// The values of sorted keys.
extern "C" __global__ void unpack_values(
    const unsigned long long* keys, long long count, float* values)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned int bits = (unsigned int)keys[i];
    values[i] = __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

// The rows of total but for the first one, less that: see `functions.scaled_differences`. total: (classes,
// width), differences: (classes - 1, width). Each step rounds: the intrinsics keep a compiler from
// contracting two of them.
extern "C" __global__ void scaled_differences(
    const double* total, long long classes, long long width, const double* share,
    const double* unit, double* differences)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width) return;
    double first = __dmul_rn(total[i], unit[0]);
    for (long long c = 1; c < classes; ++c) {
        double other = __dmul_rn(total[c * width + i], unit[c]);
        double over = __dsub_rn(__dmul_rn(share[0], other), __dmul_rn(share[c], first));
        differences[(c - 1) * width + i] = over / __dmul_rn(share[0], share[c]);
    }
}

// x rounded to 40 significant bits, by Veltkamp's splitting: see `functions.round_to_40_bits`.
extern "C" __global__ void round_to_40_bits(const double* x, long long count, double* rounded)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    // The largest numbers are scaled by a power of two, so that nothing overflows.
    double unit = x[i] >= 0x1p1000 ? 0x1p60 : 1.0, scaled = x[i] / unit;
    double c = __dmul_rn(scaled, 8193.0), most = 0x1.fffffffffffffp1023 / unit;
    double key = __dsub_rn(c, __dsub_rn(c, scaled));
    rounded[i] = (key > most ? most : key) * unit;
}
