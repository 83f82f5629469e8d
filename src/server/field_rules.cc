#include "server/field_rules.h"

namespace tokenstone::server {
namespace {

constexpr std::string_view kNoTools = "tool calling needs constrained decoding, which this server lacks; leave it out";
constexpr std::string_view kNoGuides = "constrained decoding is not built; leave it out";
constexpr std::string_view kNoLogprobs = "log probabilities are not kept; leave it out";
constexpr std::string_view kNoPenalties = "penalties are not built; leave it at its neutral value";
constexpr std::string_view kNoMedia = "this server takes and gives text only; leave it out";
constexpr std::string_view kNoTemplates =
    "chat formats are built in (--chat-template-family of the server); leave it out";
constexpr std::string_view kNoTransfer = "KV transfer between servers is not built; leave it out";
constexpr std::string_view kOneAnswer = "one answer per prompt; send the request several times, or a list of prompts";

constexpr ForeignField kFields[] = {
    {"add_generation_prompt", Neutral::is_true, kNoTemplates},
    {"allowed_token_ids", Neutral::only_null, kNoGuides},
    {"audio", Neutral::only_null, kNoMedia},
    {"bad_words", Neutral::empty, kNoGuides},
    {"best_of", Neutral::one, kOneAnswer},
    {"chat_template", Neutral::only_null, kNoTemplates},
    {"chat_template_kwargs", Neutral::empty, kNoTemplates},
    {"continue_final_message", Neutral::is_false, kNoTemplates},
    {"documents", Neutral::empty, "the chat formats have no place for documents; put them into a message"},
    {"early_stopping", Neutral::is_false, "beam search is not built"},
    {"ec_transfer_params", Neutral::empty, kNoTransfer},
    {"frequency_penalty", Neutral::zero, kNoPenalties},
    {"function_call", Neutral::only_null, kNoTools},
    {"functions", Neutral::empty, kNoTools},
    {"guided_choice", Neutral::only_null, kNoGuides},
    {"guided_decoding_backend", Neutral::only_null, kNoGuides},
    {"guided_grammar", Neutral::only_null, kNoGuides},
    {"guided_json", Neutral::only_null, kNoGuides},
    {"guided_regex", Neutral::only_null, kNoGuides},
    {"guided_whitespace_pattern", Neutral::only_null, kNoGuides},
    {"include_reasoning", Neutral::anything, ""},
    {"kv_transfer_params", Neutral::empty, kNoTransfer},
    {"length_penalty", Neutral::one, "beam search is not built"},
    {"logit_bias", Neutral::empty, kNoGuides},
    {"logits_processors", Neutral::empty, kNoGuides},
    {"logprob_token_ids", Neutral::only_null, kNoLogprobs},
    {"logprobs", Neutral::is_false, kNoLogprobs},
    {"media_io_kwargs", Neutral::empty, kNoMedia},
    {"metadata", Neutral::anything, ""},
    {"mm_processor_kwargs", Neutral::empty, kNoMedia},
    {"modalities", Neutral::only_null, kNoMedia},
    {"n", Neutral::one, kOneAnswer},
    {"parallel_tool_calls", Neutral::anything, ""},
    {"prediction", Neutral::only_null, "predicted outputs are not built; leave it out"},
    {"presence_penalty", Neutral::zero, kNoPenalties},
    {"priority", Neutral::zero, "requests are served first come, first served; leave it out"},
    {"prompt_cache_key", Neutral::anything, ""},
    {"prompt_embeds", Neutral::only_null, kNoMedia},
    {"prompt_logprobs", Neutral::only_null, kNoLogprobs},
    {"reasoning_effort", Neutral::only_null, "the built-in chat formats have no reasoning switch; leave it out"},
    {"repetition_detection", Neutral::only_null, kNoPenalties},
    {"repetition_penalty", Neutral::one, kNoPenalties},
    {"response_format", Neutral::text_format, kNoGuides},
    {"return_token_ids", Neutral::is_false, "send the text to /tokenize instead"},
    {"return_tokens_as_token_ids", Neutral::is_false, kNoLogprobs},
    {"safety_identifier", Neutral::anything, ""},
    {"service_tier", Neutral::anything, ""},
    {"session_id", Neutral::anything, ""},
    {"spaces_between_special_tokens", Neutral::is_true, "special tokens are joined as the tokenizer's decoder does"},
    {"store", Neutral::is_false, "answers are not stored; leave it out"},
    {"stream_interval", Neutral::one, "each step is sent as it comes; leave it out"},
    {"structured_outputs", Neutral::empty, kNoGuides},
    {"suffix", Neutral::empty, "filling in the middle is not built; leave it out"},
    {"thinking_token_budget", Neutral::only_null, "the built-in chat formats have no reasoning switch; leave it out"},
    {"tool_choice", Neutral::anything, ""},
    {"tools", Neutral::empty, kNoTools},
    {"top_logprobs", Neutral::zero, kNoLogprobs},
    {"truncate_prompt_tokens", Neutral::only_null, "prompts are never cut; shorten it before sending"},
    {"truncation_side", Neutral::only_null, "prompts are never cut; shorten it before sending"},
    {"use_beam_search", Neutral::is_false, "beam search is not built"},
    {"user", Neutral::anything, ""},
    {"verbosity", Neutral::only_null, "the built-in chat formats have no such switch; leave it out"},
    {"vllm_xargs", Neutral::empty, "there are no extensions to pass them to; leave it out"},
    {"watermarking", Neutral::is_false, "watermarks are not built; leave it out"},
    {"web_search_options", Neutral::only_null, "this server does not search the web; leave it out"},
};

static_assert(std::ranges::is_sorted(kFields, {}, &ForeignField::name));

}  // namespace

std::span<const ForeignField> foreign_fields() { return kFields; }

const ForeignField* find_foreign_field(std::string_view name) {
  const auto found = std::ranges::lower_bound(kFields, name, {}, &ForeignField::name);
  return found != std::end(kFields) && found->name == name ? &*found : nullptr;
}

}  // namespace tokenstone::server
