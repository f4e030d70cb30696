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

