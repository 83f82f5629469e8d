// docs/vllm-parity.md: each flag and key of `vllm bench serve|latency|throughput` and of `vllm serve` that concerns
// text generation, and where it stands here. The page is made from the flag tables themselves; a test holds the
// committed page to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/flags.h"

namespace tokenstone::app {

/// vLLM's flags of one command that this page must answer for.
struct ForeignCommand {
  std::string_view command;  ///< "bench serve"
  std::vector<std::string_view> flags;
};
const std::vector<ForeignCommand>& vllm_commands();

/// The flag table of our command of the same name.
std::map<std::string, FlagSet::Standing> standings_of(std::string_view command);

std::string parity_page();

}  // namespace tokenstone::app
