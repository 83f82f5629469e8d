#include "base/rng.h"

#include <cmath>

#include "base/check.h"

namespace tokenstone {
namespace {

constexpr double kTwoTo53Inverse = 1.0 / 9007199254740992.0;

std::array<std::uint32_t, 4> block_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

double to_unit(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((static_cast<std::uint64_t>(high) << 32) | low) >> 11) * kTwoTo53Inverse;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

double uniform_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const auto block = block_at(seed, stream, position);
  return to_unit(block[0], block[1]);
}

std::uint32_t Rng::next_u32() {
  if (used_ == 4) {
    buffer_ = block_at(seed_, stream_, block_++);
    used_ = 0;
  }
  return buffer_[used_++];
}

std::uint64_t Rng::next_u64() {
  const std::uint64_t high = next_u32();
  return (high << 32) | next_u32();
}

double Rng::uniform() {
  const std::uint32_t high = next_u32();
  return to_unit(high, next_u32());
}

std::int64_t Rng::uniform_int(std::int64_t lo, std::int64_t hi) {
  TS_CHECK(lo <= hi, "uniform_int needs lo <= hi");
  const std::uint64_t range = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + 1;
  if (range == 0) return static_cast<std::int64_t>(next_u64());
  const std::uint64_t limit = UINT64_MAX - (UINT64_MAX % range + 1) % range;
  std::uint64_t draw = next_u64();
  while (draw > limit) draw = next_u64();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + draw % range);
}

double Rng::exponential() { return -std::log1p(-uniform()); }

double Rng::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  double u = 0, v = 0, s = 0;
  do {
    u = 2 * uniform() - 1;
    v = 2 * uniform() - 1;
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  const double factor = std::sqrt(-2 * std::log(s) / s);
  spare_normal_ = v * factor;
  has_spare_normal_ = true;
  return u * factor;
}

double Rng::gamma(double shape) {
  TS_CHECK(shape > 0, "gamma needs shape > 0");
  if (shape < 1) {
    const double u = 1 - uniform();
    return gamma(shape + 1) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, v = 0;
    do {
      x = normal();
      v = 1 + c * x;
    } while (v <= 0);
    v = v * v * v;
    const double u = 1 - uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace tokenstone
