// Medians of sorted lists, and sums over them, each in one launch whatever their lengths.
//
// A column has K lists, one for each class; list c * columns + j is that of class c in column j. Its
// items are ascending: the stored values from start on, and one item of zeros at zero_at if that is
// below its size. Plain enough to compile as C++ as well, as kernels.cu. VALUE (float or double) is
// the type of values, MASS that of weights and SHARE that of weights times factors (long long where
// they are compared exactly, or double), given as -D.

#ifndef VALUE
#define VALUE float
#endif
#ifndef MASS
#define MASS long long
#endif
#ifndef SHARE
#define SHARE long long
#endif

struct Lists {
    const VALUE* values;
    const long long* start;
    const long long* size;
    const long long* zero_at;  // null: no list has an item of zeros
    const MASS* zero_mass;
    const MASS* cumulative;  // running sums of weights within each list; null: each weighs one
};

// How many stored values come before an item.
__device__ long long stored_before(const Lists& lists, long long list, long long item)
{
    return item - (lists.zero_at && item > lists.zero_at[list]);
}

__device__ double value_of(const Lists& lists, long long list, long long item)
{
    if (lists.zero_at && item == lists.zero_at[list]) return 0;
    return widen(lists.values[lists.start[list] + stored_before(lists, list, item)]);
}

// The weight of all items before one.
__device__ MASS mass_before(const Lists& lists, long long list, long long item)
{
    long long stored = stored_before(lists, list, item);
    MASS mass = (MASS)stored;
    if (lists.cumulative) mass = stored > 0 ? lists.cumulative[lists.start[list] + stored - 1] : 0;
    return stored < item ? mass + lists.zero_mass[list] : mass;
}

// Ends of the interval of medians of each list: a thread for each. Twice a mass from least to most is
// half of the weight of its class. low, high: (classes, columns).
extern "C" __global__ void class_intervals(
    const VALUE* values, const long long* start, const long long* size, const long long* zero_at,
    const MASS* zero_mass, const MASS* cumulative, long long classes, long long columns,
    const MASS* least, const MASS* most, double* low, double* high)
{
    long long list = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (list >= classes * columns) return;
    Lists lists = {values, start, size, zero_at, zero_mass, cumulative};
    long long c = list / columns, first = 0, last = size[list] - 1;
    while (first < last) {
        long long middle = (first + last) / 2;
        if (2 * mass_before(lists, list, middle + 1) >= least[c]) last = middle;
        else first = middle + 1;
    }
    bool whole = first + 1 >= size[list];
    low[list] = value_of(lists, list, first);
    high[list] = whole || 2 * mass_before(lists, list, first + 1) > most[c]
        ? low[list] : value_of(lists, list, first + 1);
}

// Integers in the order of floating-point numbers, those of a float multiples of 2^29; and back.
__device__ long long in_order(double value)
{
    long long bits = __double_as_longlong(value), size = bits & 0x7fffffffffffffffLL;
    return bits < 0 ? -size : size;
}

__device__ double from_order(long long number)
{
    double size = __longlong_as_double(number < 0 ? -number : number);
    return number < 0 ? -size : size;
}

// The first item of a list from low to high that is larger than a value.
__device__ long long first_above(
    const Lists& lists, long long list, double value, long long low, long long high)
{
    while (low < high) {
        long long middle = (low + high) / 2;
        if (value_of(lists, list, middle) > value) high = middle; else low = middle + 1;
    }
    return low;
}

// Ends of the interval of joint medians of each column: a thread for each. The first end is the
// smallest value up to which the sum of mass times factor reaches bounds[0]; it lies from low to
// high. The last one is the next larger value if that sum is at most bounds[1]. They replace low and
// high. scratch: (3, classes, columns).
extern "C" __global__ void joint_intervals(
    const VALUE* values, const long long* start, const long long* size, const long long* zero_at,
    const MASS* zero_mass, const MASS* cumulative, long long classes, long long columns,
    const SHARE* factor, const SHARE* bounds, long long* scratch, double* low, double* high)
{
    long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= columns) return;
    Lists lists = {values, start, size, zero_at, zero_mass, cumulative};
    // The items of each list among which the first one above the end is, and that above a value.
    long long count = classes * columns, *from = scratch, *to = from + count, *at = to + count;
    for (long long list = j; list < count; list += columns) {
        from[list] = 0;
        to[list] = size[list];
    }
    // Sums step at values alone, so a bisection over all numbers of this type ends at one of them.
    long long step = sizeof(VALUE) == 4 ? 1LL << 29 : 1;  // between neighbours of that type
    long long first = in_order(low[j]) / step, last = in_order(high[j]) / step;
    while (true) {
        long long middle = (first & last) + ((first ^ last) >> 1);  // their sum may overflow
        double value = from_order(middle * step);
        SHARE sum = 0;
        for (long long c = 0; c < classes; ++c) {
            long long list = c * columns + j;
            at[list] = first_above(lists, list, value, from[list], to[list]);
            sum += (SHARE)mass_before(lists, list, at[list]) * factor[c];
        }
        if (first >= last) {
            low[j] = high[j] = value;
            if (sum > bounds[1]) return;
            break;
        }
        bool reached = sum >= bounds[0];
        if (reached) last = middle; else first = middle + 1;
        for (long long list = j; list < count; list += columns)
            (reached ? to : from)[list] = at[list];
    }
    bool found = false;
    for (long long list = j; list < count; list += columns) {
        if (at[list] >= size[list]) continue;
        double value = value_of(lists, list, at[list]);
        if (!found || value < high[j]) high[j] = value;
        found = true;
    }
}

// Sums over the stored values x of each list of weight times |x - center|; or, where other is given,
// of half the difference to |x - other|, clipped beyond the two points, so that nothing cancels. Each
// list has so many threads (lanes), side by side; sums: (lanes, lists).
extern "C" __global__ void distance_sums(
    const VALUE* values, const long long* start, const long long* stored, const double* weights,
    long long lists, long long lanes, const double* center, const double* other, double* sums)
{
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= lists * lanes) return;
    long long list = thread / lanes, lane = thread % lanes;
    long long begin = start[list], end = begin + stored[list];
    double origin = center[list], towards = other ? other[list] - origin : 0;
    double low = towards < 0 ? towards : 0, high = towards < 0 ? 0 : towards, sum = 0;
    for (long long i = begin + lane; i < end; i += lanes) {
        double term = widen(values[i]) - origin;
        if (other) {
            term = term < low ? low : term > high ? high : term;
            term = 0.5 * towards - term;
        } else term = term < 0 ? -term : term;
        sum += weights ? weights[i] * term : term;
    }
    sums[lane * lists + list] = sum;
}
