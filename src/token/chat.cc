// Chat formats by their marks. Sources: the templates in the tokenizer_config.json of Qwen2 (ChatML), Llama-2-chat,
// Llama-3-Instruct, Mistral-7B-Instruct-v0.2, zephyr-7b-beta (TinyLlama-Chat is the same) and gemma-it.
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "modelfile/mapped_file.h"
#include "token/tokenizer.h"

namespace tokenstone::token {
namespace {

struct Named {
  ChatFamily family;
  std::string_view name;
};

constexpr std::array<Named, 6> kFamilies = {{{ChatFamily::chatml, "chatml"},
                                             {ChatFamily::llama2, "llama2"},
                                             {ChatFamily::llama3, "llama3"},
                                             {ChatFamily::mistral, "mistral"},
                                             {ChatFamily::zephyr, "zephyr"},
                                             {ChatFamily::gemma, "gemma"}}};

std::string family_names() {
  std::vector<std::string> names;
  for (const Named& family : kFamilies) names.emplace_back(family.name);
  return join(names, ", ");
}

std::unexpected<Error> bad_turns(ChatFamily family, std::string_view what) {
  return usage_error(
      fmt::format("messages: {} in the chat format {}; correct the messages' roles and order", what, to_string(family)),
      "messages");
}

/// Formats that mark every turn with its role.
std::string render_marked(ChatFamily family, std::span<const ChatTurn> turns) {
  std::string text;
  for (const ChatTurn& turn : turns) {
    if (family == ChatFamily::chatml)
      text += fmt::format("<|im_start|>{}\n{}<|im_end|>\n", turn.role, turn.content);
    else if (family == ChatFamily::llama3)
      text += fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>", turn.role, trim(turn.content));
    else
      text += fmt::format("<|{}|>\n{}</s>\n", turn.role, turn.content);
  }
  if (family == ChatFamily::chatml) return text + "<|im_start|>assistant\n";
  if (family == ChatFamily::llama3) return text + "<|start_header_id|>assistant<|end_header_id|>\n\n";
  return text + "<|assistant|>\n";
}

/// Formats in which a user's turn and the assistant's alternate; what the system says goes into the first user's turn.
std::string render_alternating(ChatFamily family, std::string_view system, std::span<const ChatTurn> turns) {
  std::string text;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const bool is_user = i % 2 == 0;
    std::string said =
        is_user || family != ChatFamily::mistral ? std::string(trim(turns[i].content)) : turns[i].content;
    if (i == 0 && !system.empty())
      said = family == ChatFamily::llama2 ? fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n{}", trim(system), said)
                                          : fmt::format("{}\n\n{}", trim(system), said);
    if (family == ChatFamily::gemma)
      text += fmt::format("<start_of_turn>{}\n{}<end_of_turn>\n", is_user ? "user" : "model", said);
    else if (is_user)
      text += fmt::format("{}[INST] {} [/INST]", family == ChatFamily::llama2 && i > 0 ? "<s>" : "", said);
    else
      text += family == ChatFamily::llama2 ? fmt::format(" {} </s>", said) : fmt::format("{}</s>", said);
  }
  return family == ChatFamily::gemma ? text + "<start_of_turn>model\n" : text;
}

Status check_roles(ChatFamily family, std::span<const ChatTurn> turns) {
  if (turns.empty()) return bad_turns(family, "at least one message is needed");
  for (const ChatTurn& turn : turns)
    if (turn.role != "system" && turn.role != "user" && turn.role != "assistant")
      return bad_turns(family, fmt::format("the role {} is not supported (system, user and assistant are)",
                                           modelfile::in_quotes(turn.role)));
  return {};
}

Status check_alternation(ChatFamily family, std::span<const ChatTurn> turns) {
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (turns[i].role != (i % 2 == 0 ? "user" : "assistant"))
      return bad_turns(family, "after at most one system message the roles must alternate, beginning with the user,");
  if (turns.size() % 2 == 0) return bad_turns(family, "the last message must be the user's");
  return {};
}

}  // namespace

std::string_view to_string(ChatFamily family) {
  for (const Named& named : kFamilies)
    if (named.family == family) return named.name;
  return "unknown";
}

Result<ChatFamily> parse_chat_family(std::string_view name) {
  std::vector<std::string> names;
  for (const Named& named : kFamilies) {
    if (named.name == name) return named.family;
    names.emplace_back(named.name);
  }
  const auto nearest = nearest_name(name, names);
  return usage_error(fmt::format("unknown chat format {}; expected one of {}{}", modelfile::in_quotes(name),
                                 family_names(), nearest ? fmt::format(" (did you mean {}?)", *nearest) : ""),
                     "chat-template-family");
}

Result<ChatFamily> recognise_chat_template(std::string_view jinja) {
  const auto has = [&](std::string_view mark) { return jinja.find(mark) != std::string_view::npos; };
  if (trim(jinja).empty() || has("<|im_start|>")) return ChatFamily::chatml;
  if (has("<|start_header_id|>")) return ChatFamily::llama3;
  if (has("<start_of_turn>")) return ChatFamily::gemma;
  if (has("[INST]")) return has("<<SYS>>") ? ChatFamily::llama2 : ChatFamily::mistral;
  // Phi-3 has the same role marks but ends its turns with a token of its own.
  if (has("<|user|>") && has("<|assistant|>") && !has("<|end|>")) return ChatFamily::zephyr;
  return usage_error(
      fmt::format(
          "the model's chat template, which begins {}, is none of the known formats ({}); name the one that fits "
          "with --chat-template-family",
          modelfile::in_quotes(trim(jinja).substr(0, 40)), family_names()),
      "chat-template-family");
}

Result<std::string> render_chat(ChatFamily family, std::span<const ChatTurn> turns) {
  TS_TRY_STATUS(check_roles(family, turns));
  if (family == ChatFamily::chatml || family == ChatFamily::llama3 || family == ChatFamily::zephyr)
    return render_marked(family, turns);
  std::string_view system;
  if (turns.front().role == "system") {
    system = turns.front().content;
    turns = turns.subspan(1);
  }
  TS_TRY_STATUS(check_alternation(family, turns));
  return render_alternating(family, system, turns);
}

}  // namespace tokenstone::token
