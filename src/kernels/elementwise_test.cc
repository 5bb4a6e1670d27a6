// Every table against double-precision references, and every table's bits against the others'.

#include "kernels/elementwise.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/generic/inline.h"
#include "kernels/kernels.h"

namespace lockstep::kernels {
namespace {

// The vocabulary in plain C++, to test its words themselves.
namespace plain {
#include "kernels/isa/scalar/vec-inl.h"

#include "kernels/generic/math-inl.h"
}  // namespace plain

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const int32_t kLengths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 100, 576, 1000};

// |got - want| in units of the last place of `want` rounded to f32.
double Ulps(float got, double want) {
  const float rounded = std::fabs(static_cast<float>(want));
  const float smallest_normal = std::numeric_limits<float>::min();
  const float at = std::max(rounded, smallest_normal);
  const double ulp = static_cast<double>(std::nextafterf(at, kInf)) - static_cast<double>(at);
  return std::fabs(static_cast<double>(got) - want) / ulp;
}

std::vector<float> Random(int32_t n, float scale, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// `n` floats that end where an unreadable page begins, so that any access past them faults.
class Guarded {
 public:
  explicit Guarded(const std::vector<float>& x) : bytes_(x.size() * sizeof(float)) {
    size_ = (bytes_ + kPage - 1) / kPage * kPage + kPage;
    void* map = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(map, MAP_FAILED);
    base_ = static_cast<std::byte*>(map);
    EXPECT_EQ(mprotect(base_ + size_ - kPage, kPage, PROT_NONE), 0);
    std::memcpy(data(), x.data(), bytes_);
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  float* data() { return reinterpret_cast<float*>(base_ + size_ - kPage - bytes_); }
  std::vector<float> values() { return {data(), data() + bytes_ / sizeof(float)}; }

 private:
  static constexpr size_t kPage = 4096;
  size_t bytes_;
  size_t size_ = 0;
  std::byte* base_ = nullptr;
};

class EveryTable : public testing::TestWithParam<const KernelTable*> {
 protected:
  const ElementwiseKernels& kernels() const { return GetParam()->elementwise; }
};

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable, testing::ValuesIn(SupportedTables()),
                         [](const auto& suite) { return std::string(suite.param->isa); });

TEST(Vocabulary, FmaRoundsOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    float a = std::bit_cast<float>(static_cast<uint32_t>(random()));
    float b = std::bit_cast<float>(static_cast<uint32_t>(random()));
    float c = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // Half of the cases nearly cancel or sit just beside a tie, where double rounding would show.
    if (i % 2 == 0) c = std::nextafterf(-a * b, i % 4 == 0 ? kInf : -kInf);
    if (i % 8 == 1) c = std::ldexp(a * b, (i % 64) - 32);
    const float want = std::fma(a, b, c);
    const float got = plain::FmaLane(a, b, c);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << a << " " << b << " " << c;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
          << a << " " << b << " " << c;
    }
  }
}

TEST(Vocabulary, Exp2WithinTwoUlps) {
  const auto exp2 = [](float x) { return plain::Exp2(plain::Set1(x)).lane[0]; };
  double worst = 0;
  for (int i = 0; i <= 100000; ++i) {
    const float x = -125.49f + 253.489f * static_cast<float>(i) / 100000.0f;
    worst = std::max(worst, Ulps(exp2(x), std::exp2(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2.0);
  for (int n = -125; n < 128; ++n) {
    EXPECT_EQ(exp2(static_cast<float>(n)), std::ldexp(1.0f, n));
  }
  EXPECT_EQ(exp2(128.0f), kInf);
  EXPECT_EQ(exp2(kInf), kInf);
  EXPECT_EQ(std::bit_cast<uint32_t>(exp2(-125.6f)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(exp2(-1e30f)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(exp2(-kInf)), 0u);
  EXPECT_TRUE(std::isnan(exp2(kNan)));
  // A NaN whose payload would land in the exponent.
  EXPECT_TRUE(std::isnan(exp2(std::bit_cast<float>(0x7fc001ffu))));
}

TEST_P(EveryTable, ExpWithinTwoUlps) {
  constexpr int kPoints = 100003;
  std::vector<float> x(kPoints), y(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    x[i] = -86.9f + (86.9f + 88.72f) * static_cast<float>(i) / kPoints;
  }
  kernels().exp(x.data(), 0.0f, 1.0f, kPoints, y.data());
  double worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    worst = std::max(worst, Ulps(y[i], std::exp(static_cast<double>(x[i]))));
  }
  EXPECT_LE(worst, 2.0);
}

TEST_P(EveryTable, ExpEdges) {
  const std::vector<float> x = {0.0f,  -0.0f, 1e-45f, -1e-45f, 88.722f, 88.73f,
                                1e30f, kInf,  -87.1f, -1e30f,  -kInf,   kNan};
  std::vector<float> y(x.size());
  kernels().exp(x.data(), 0.0f, 1.0f, static_cast<int32_t>(x.size()), y.data());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], 1.0f);
  EXPECT_TRUE(std::isfinite(y[4]));
  for (int i = 5; i < 8; ++i) EXPECT_EQ(y[i], kInf) << x[i];
  for (int i = 8; i < 11; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(y[i]), 0u) << x[i];
  EXPECT_TRUE(std::isnan(y[11]));
}

TEST_P(EveryTable, ExpWithMaxAndTemperature) {
  const std::vector<float> x = Random(1000, 4.0f, 7);
  std::vector<float> y(x.size());
  kernels().exp(x.data(), 9.5f, 1.25f, 1000, y.data());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(Ulps(y[i], std::exp(static_cast<double>((x[i] - 9.5f) * 1.25f))), 2.0);
  }
}

TEST_P(EveryTable, RmsNorm) {
  for (const int32_t n : kLengths) {
    const std::vector<float> x = Random(n, 3.0f, n), w = Random(n, 1.0f, n + 1);
    Guarded gx(x), gw(w), out(x);
    kernels().rms_norm(gx.data(), gw.data(), 1e-5f, n, out.data());
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v) * v;
    const double r = 1.0 / std::sqrt(sum / n + 1e-5f);
    for (int i = 0; i < n; ++i) {
      const double want = x[i] * r * w[i];
      EXPECT_NEAR(out.data()[i], want, 1e-6 * std::fabs(want)) << n << " " << i;
    }
    kernels().rms_norm(gx.data(), gw.data(), 1e-5f, n, gx.data());
    EXPECT_EQ(gx.values(), out.values());
  }
}

TEST_P(EveryTable, SiluMul) {
  for (const int32_t n : kLengths) {
    std::vector<float> gate = Random(n, 6.0f, n), up = Random(n, 1.0f, n + 1);
    gate[0] = n % 2 == 0 ? -200.0f : 200.0f;
    Guarded g(gate), u(up), out(up);
    kernels().silu_mul(g.data(), u.data(), n, out.data());
    for (int i = 0; i < n; ++i) {
      const double x = gate[i];
      const double want = x / (1.0 + std::exp(-x)) * up[i];
      EXPECT_NEAR(out.data()[i], want, 5e-7 * std::fabs(want) + 1e-35) << n << " " << i;
    }
    kernels().silu_mul(g.data(), u.data(), n, u.data());
    EXPECT_EQ(u.values(), out.values());
  }
}

TEST_P(EveryTable, GeluMul) {
  for (const int32_t n : kLengths) {
    std::vector<float> gate = Random(n, 4.0f, n), up = Random(n, 1.0f, n + 1);
    gate[0] = n % 2 == 0 ? -1e20f : 1e20f;
    gate[n / 2] = 0.0f;
    Guarded g(gate), u(up), out(up);
    kernels().gelu_mul(g.data(), u.data(), n, out.data());
    for (int i = 0; i < n; ++i) {
      const double x = gate[i];
      const double tanh = std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
      const double want = 0.5 * x * (1.0 + tanh) * up[i];
      EXPECT_NEAR(out.data()[i], want, 5e-7 * std::fabs(want) + 2e-7 * std::fabs(up[i]))
          << n << " " << i;
    }
    kernels().gelu_mul(g.data(), u.data(), n, u.data());
    EXPECT_EQ(u.values(), out.values());
  }
}

TEST_P(EveryTable, SigmoidMul) {
  for (const int32_t n : kLengths) {
    std::vector<float> gate = Random(n, 4.0f, n), x = Random(n, 1.0f, n + 1);
    gate[0] = n % 2 == 0 ? -1e20f : 1e20f;
    gate[n / 2] = 0.0f;
    Guarded g(gate), up(x), out(x);
    kernels().sigmoid_mul(g.data(), up.data(), n, out.data());
    for (int i = 0; i < n; ++i) {
      const double want = x[i] / (1.0 + std::exp(-double{gate[i]}));
      EXPECT_NEAR(out.data()[i], want, 5e-7 * std::fabs(want) + 1e-30) << n << " " << i;
    }
    kernels().sigmoid_mul(g.data(), up.data(), n, up.data());
    EXPECT_EQ(up.values(), out.values());
  }
}

TEST_P(EveryTable, Rope) {
  for (const int32_t half : kLengths) {
    std::vector<float> x = Random(2 * half + 3, 1.0f, half), c(half), s(half);
    for (int i = 0; i < half; ++i) {
      c[i] = std::cos(static_cast<float>(i) * 0.37f);
      s[i] = std::sin(static_cast<float>(i) * 0.37f);
    }
    std::vector<float> rotated = x;
    Guarded gc(c), gs(s);
    kernels().rope(rotated.data(), gc.data(), gs.data(), half);
    for (int i = 0; i < half; ++i) {
      const double a = x[i], b = x[i + half];
      EXPECT_NEAR(rotated[i], a * c[i] - b * s[i], 1e-6 * (std::fabs(a) + std::fabs(b)));
      EXPECT_NEAR(rotated[i + half], b * c[i] + a * s[i], 1e-6 * (std::fabs(a) + std::fabs(b)));
    }
    for (int i = 2 * half; i < 2 * half + 3; ++i) EXPECT_EQ(rotated[i], x[i]);
  }
}

TEST_P(EveryTable, AddAndScale) {
  for (const int32_t n : kLengths) {
    const std::vector<float> x = Random(n, 1.0f, n), y = Random(n, 1.0f, n + 1);
    Guarded gx(x), gy(y);
    kernels().add(gy.data(), n, gx.data());
    for (int i = 0; i < n; ++i) EXPECT_EQ(gx.data()[i], x[i] + y[i]);
    kernels().scale(0.3f, n, gy.data());
    for (int i = 0; i < n; ++i) EXPECT_EQ(gy.data()[i], y[i] * 0.3f);
  }
}

TEST_P(EveryTable, MaxIsTheFirstOfTheLargest) {
  std::mt19937 random(5);
  for (int32_t n = 1; n < 140; ++n) {
    std::vector<float> x(n);
    for (float& v : x) v = -1.0f - static_cast<float>(random() % 4);  // many ties, all negative
    int32_t want = 0;
    for (int32_t i = 1; i < n; ++i) {
      if (x[i] > x[want]) want = i;
    }
    Guarded gx(x);
    const MaxIndex got = kernels().max(gx.data(), n);
    EXPECT_EQ(got.index, want) << n;
    EXPECT_EQ(got.value, x[want]) << n;

    const int32_t at = static_cast<int32_t>(random() % n);
    gx.data()[at] = kNan;
    EXPECT_TRUE(std::isnan(kernels().max(gx.data(), n).value)) << n << " " << at;
  }
  const std::vector<float> lowest(20, -kInf);
  EXPECT_EQ(kernels().max(lowest.data(), 20).index, 0);
  EXPECT_EQ(kernels().max(lowest.data(), 20).value, -kInf);
  const std::vector<float> zeros = {-0.0f, 0.0f};
  EXPECT_EQ(kernels().max(zeros.data(), 2).index, 0);
}

TEST_P(EveryTable, SumExp) {
  for (const int32_t n : kLengths) {
    std::vector<float> x = Random(n, 5.0f, n);
    x[n / 2] = -kInf;
    Guarded gx(x);
    double want = 0;
    for (const float v : x) want += std::exp(static_cast<double>(v - 11.0f));
    EXPECT_NEAR(kernels().sum_exp(gx.data(), 11.0f, n), want, 1e-6 * want) << n;
  }
}

TEST(Log, WithinOneUlp) {
  for (int i = 0; i < 100000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(1 + i * 21390u));
    ASSERT_LE(Ulps(Log(x), std::log(static_cast<double>(x))), 1.0) << x;
  }
  for (int i = -1000; i <= 1000; ++i) {  // where the result cancels
    const float x = 1.0f + static_cast<float>(i) * 0x1p-20f;
    ASSERT_LE(Ulps(Log(x), std::log(static_cast<double>(x))), 1.0) << x;
  }
  EXPECT_EQ(Log(1.0f), 0.0f);
}

// All results of all kernels over one input.
std::vector<float> Everything(const ElementwiseKernels& k, const std::vector<float>& x,
                              const std::vector<float>& y) {
  const int32_t n = static_cast<int32_t>(x.size());
  std::vector<float> all, out(n);
  const auto keep = [&] { all.insert(all.end(), out.begin(), out.end()); };
  k.rms_norm(x.data(), y.data(), 1e-6f, n, out.data());
  keep();
  k.silu_mul(x.data(), y.data(), n, out.data());
  keep();
  k.gelu_mul(x.data(), y.data(), n, out.data());
  keep();
  k.sigmoid_mul(x.data(), y.data(), n, out.data());
  keep();
  k.exp(x.data(), 0.5f, 1.7f, n, out.data());
  keep();
  out = x;
  k.rope(out.data(), y.data(), y.data() + n / 2, n / 2);
  keep();
  k.add(y.data(), n, out.data());
  keep();
  k.scale(1.1f, n, out.data());
  keep();
  const MaxIndex max = k.max(x.data(), n);
  all.push_back(max.value);
  all.push_back(static_cast<float>(max.index));
  all.push_back(k.sum_exp(x.data(), max.value, n));
  all.push_back(k.sum_exp(x.data(), 0.0f, n));
  return all;
}

TEST_P(EveryTable, BitsEqualThoseOfPlainCode) {
  const KernelTable& plain_table = *SupportedTables().back();
  for (const float scale : {1e-20f, 0.1f, 3.0f, 60.0f, 1e18f}) {
    for (int32_t n = 1; n < 100; ++n) {
      const std::vector<float> x = Random(n, scale, n), y = Random(n, 1.0f, n + 1);
      const std::vector<float> got = Everything(kernels(), x, y);
      const std::vector<float> want = Everything(plain_table.elementwise, x, y);
      for (size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i])) {
          ASSERT_TRUE(std::isnan(got[i]));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
              << "scale " << scale << " n " << n << " i " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
