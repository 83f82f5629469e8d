// The tensors that a Llama has: GGUF names into Hugging Face names, and which names are known at all.
//
// Pure functions. A bias of a projection is known (some Llamas have one); the engine decides whether it can use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokenstone::modelfile {

/// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; nothing for a name that no Llama has.
std::optional<std::string> hugging_face_name(std::string_view gguf_name, std::uint32_t num_layers);
/// Whether a Llama with so many layers has a tensor of this Hugging Face name.
bool is_llama_tensor(std::string_view name, std::uint32_t num_layers);

}  // namespace tokenstone::modelfile
