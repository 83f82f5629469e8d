#include "kernels/sampler.h"

#include "base/check.h"
#include "base/rng.h"

namespace tokenstone::kernels {

TokenId Sampler::sample(std::span<const float> logits, const SampleSettings& settings) {
  TS_CHECK(!logits.empty(), "sampling needs at least one logit");
  const std::size_t top = kernels_.argmax(logits.data(), logits.size());
  if (settings.temperature <= 0.0) return static_cast<TokenId>(top);
  weight_.resize(logits.size());
  const float scale = static_cast<float>(1.0 / settings.temperature);
  total_ = kernels_.exp_sum(logits.data(), logits.size(), logits[top], scale, weight_.data());
  // A temperature so small that its inverse overflows, or logits that are no numbers: the top is all there is.
  if (!(total_ >= 1.0 && total_ < 1e30)) return static_cast<TokenId>(top);
  const double uniform = uniform_at(settings.seed, streams::sampling, settings.position);
  const bool limited = settings.top_k > 0 || settings.top_p < 1.0 || settings.min_p > 0.0;
  if (!limited) return draw_from_all(uniform);
  keep_likeliest(settings);
  return draw_from_kept(uniform);
}

TokenId Sampler::draw_from_all(double uniform) const {
  double left = uniform * total_;
  TokenId last = 0;
  for (std::size_t i = 0; i < weight_.size(); ++i) {
    if (weight_[i] == 0.0f) continue;
    last = static_cast<TokenId>(i);
    left -= static_cast<double>(weight_[i]);
    if (left < 0) return last;
  }
  return last;  // rounding left a crumb
}

TokenId Sampler::draw_from_kept(double uniform) const {
  double left = uniform * kept_total_;
  for (const TokenId id : kept_) {
    left -= static_cast<double>(weight_[static_cast<std::size_t>(id)]);
    if (left < 0) return id;
  }
  return kept_.back();
}

void Sampler::keep_likeliest(const SampleSettings& settings) {
  const auto weight = [&](TokenId id) { return weight_[static_cast<std::size_t>(id)]; };
  const auto likelier = [&](TokenId a, TokenId b) { return weight(a) != weight(b) ? weight(a) > weight(b) : a < b; };
  kept_.clear();
  // The top token weighs exactly 1.
  for (std::size_t i = 0; i < weight_.size(); ++i)
    if (weight_[i] > 0.0f && static_cast<double>(weight_[i]) >= settings.min_p)
      kept_.push_back(static_cast<TokenId>(i));
  const bool cut = settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < kept_.size();
  if (cut) {
    std::nth_element(kept_.begin(), kept_.begin() + settings.top_k, kept_.end(), likelier);
    kept_.resize(static_cast<std::size_t>(settings.top_k));
  }
  std::sort(kept_.begin(), kept_.end(), likelier);
  double mass = 0;
  for (const TokenId id : kept_) mass += static_cast<double>(weight(id));
  kept_total_ = mass;
  if (settings.top_p >= 1.0) return;
  double head = 0;
  std::size_t count = 0;
  while (count < kept_.size() && head < settings.top_p * mass) head += static_cast<double>(weight(kept_[count++]));
  kept_.resize(std::max<std::size_t>(count, 1));
  kept_total_ = std::max(head, static_cast<double>(weight(kept_.front())));
}

}  // namespace tokenstone::kernels
