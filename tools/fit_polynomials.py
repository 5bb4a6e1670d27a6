#!/usr/bin/env python3
"""Computes the polynomials of src/kernels/generic/math-inl.h, and their errors.

For f in [-1/2, 1/2] (2**f) and [-ln 2 / 2, ln 2 / 2] (e**f): the polynomial of degree 6 with constant
term 1 and a nearly smallest greatest relative error (least squares over Chebyshev points).
Coefficients are rounded to f32 one after another, lowest first, and the rest is fitted again each
time, so that later ones make up for the rounding of earlier ones. The element-wise kernels need
twice these polynomials (doubling is exact).

And those of attention_softmax-inl.h: 2**f of degree 5, and tanh(x) / x in even powers of x up to 10.
"""
import math
import struct

POINTS = 400


def to_f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def solve(matrix, rhs):
    n = len(rhs)
    rows = [row[:] + [b] for row, b in zip(matrix, rhs)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, n + 1):
                rows[r][c] -= factor * rows[i][c]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][c] * x[c] for c in range(i + 1, n))) / rows[i][i]
    return x


def evaluate(coefficients, f):
    value = 0.0
    for c in reversed(coefficients):
        value = value * f + c
    return value


def nearly_minimax(function, limit, fixed, degree, step):
    """The coefficients after `fixed` with the least squares of p(f**step) / function(f) - 1 over
    Chebyshev points, whose greatest error is close to the smallest possible."""
    powers = range(len(fixed), degree + 1)
    points = [limit * math.cos(math.pi * (i + 0.5) / POINTS) for i in range(POINTS)]
    basis = [[(f / limit) ** (step * k) / function(f) for k in powers] for f in points]
    rest = [1.0 - evaluate(fixed, f**step) / function(f) for f in points]
    normal = [[math.fsum(row[i] * row[j] for row in basis) for j in range(len(powers))]
              for i in range(len(powers))]
    rhs = [math.fsum(row[i] * r for row, r in zip(basis, rest)) for i in range(len(powers))]
    return fixed + [c / limit ** (step * k) for k, c in zip(powers, solve(normal, rhs))]


def fit(name, function, limit, degree, step=1):
    coefficients = [1.0]
    while len(coefficients) <= degree:
        best = nearly_minimax(function, limit, coefficients, degree, step)
        coefficients.append(to_f32(best[len(coefficients)]))
    grid = [limit * (2.0 * i / 100000 - 1.0) for i in range(100001)]
    error = max(abs(evaluate(coefficients, f**step) / function(f) - 1.0) for f in grid)
    print(f"{name}: greatest relative error {error:.3g} ({error * 2**24:.3f} half-ulps)")
    for k, c in enumerate(coefficients):
        print(f"  c{step * k} = {float(c).hex()}  doubled {float(2 * c)!r} = {float(2 * c).hex()}")


def main():
    fit("2^f", lambda f: 2.0**f, 0.5, 6)
    fit("e^f", math.exp, math.log(2.0) / 2, 6)
    fit("2^f of attention", lambda f: 2.0**f, 0.5, 5)
    fit("tanh(x) / x", lambda x: math.tanh(x) / x if x else 1.0, 0.625, 5, step=2)
    # ln 2 in two parts: the first has 9 trailing zero bits, so that n * high is exact for |n| < 2^9.
    high = math.floor(math.log(2.0) * 2**15) / 2**15
    low = to_f32(math.log(2.0) - high)
    print(f"ln 2 = {high.hex()} + {low.hex()};  log2 e = {to_f32(1 / math.log(2.0)).hex()}")


if __name__ == "__main__":
    main()
