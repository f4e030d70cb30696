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

// A value as float64. CuPy compiles with -ftz=true, under which each conversion and operation of float32
// takes subnormal numbers for zero. So the bits of a float are moved to those of a double, whose
// exponent is then too small by 896: a product with 2**896, which is exact, makes up for that.
__device__ inline double widen(double x) { return x; }
__device__ inline double widen(unsigned char x) { return x; }
__device__ inline double widen(float x)
{
    unsigned int bits = __float_as_uint(x);
    unsigned long long wide = (unsigned long long)(bits & 0x7fffffffu) << 29;
    if (wide >= 0x0ff0000000000000ull) wide |= 0x7ff0000000000000ull;  // infinite, or no number
    wide |= (unsigned long long)(bits & 0x80000000u) << 32;
    return __longlong_as_double((long long)wide) * __longlong_as_double(0x77f0000000000000ll);
}

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
// so one long row keeps no thread longer than many short ones.
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
    long long code_of_sum = -1;
    double sum = 0;
    for (long long e = start; e < stop; ++e) {
        while ((long long)indptr[line + 1] <= e) ++line;
        long long row = by_row ? first_line + line : (long long)indices[e];
        long long column = by_row ? (long long)indices[e] : first_line + line;
        long long code = codes[row];
        double x = widen(data[e]);
        double sx = weights ? weights[row] * x : x;
        atomicAdd(total + code * width + column, sx);
        if (square) {
            double factor = square_factors ? square_factors[row] : 1.0;
            atomicAdd(square + code * width + column, sx * x * factor);
        }
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
