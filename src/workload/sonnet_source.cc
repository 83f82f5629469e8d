// Prompts made of lines of a poem: a request, lines that all prompts share, and lines chosen at random, up to a length.
//
// Lines are added while the prompt's estimated length stays within the asked one, then taken off again while the
// counted one is above it: a prompt is never longer than asked, and always ends.
#include <fmt/format.h>

#include "base/text.h"
#include "workload/builtin_text.h"
#include "workload/data_file.h"
#include "workload/sources.h"

namespace tokenstone::workload {
namespace {

constexpr std::string_view kRequest = "Pick as many lines as you can from these poem lines:\n";

struct Poem {
  std::vector<std::string> lines;     ///< each with its line end
  std::vector<std::int64_t> lengths;  ///< tokens of each line by itself
  std::uint32_t shortest = 0;         ///< its number
  std::int64_t shortest_len() const { return lengths[shortest]; }
};

Poem poem_of(std::string_view text, const Content& content) {
  Poem poem;
  for_each_line(text, [&](std::string_view line, std::uint32_t) {
    poem.lines.push_back(std::string(trim(line)) + "\n");
    poem.lengths.push_back(std::max<std::int64_t>(1, content.answer_tokens(poem.lines.back())));
    if (poem.lengths.back() < poem.shortest_len()) poem.shortest = static_cast<std::uint32_t>(poem.lines.size() - 1);
    return true;
  });
  return poem;
}

class SonnetSource : public RequestSource {
 public:
  SonnetSource(const WorkloadOptions& options, ContentPtr content, Poem poem, std::string shared,
               std::int64_t shared_len, record::DatasetInfo info)
      : RequestSource(options, std::move(content)),
        poem_(std::move(poem)),
        shared_(std::move(shared)),
        shared_len_(shared_len),
        input_(options.sonnet_input_len),
        output_(options.sonnet_output_len),
        info_(std::move(info)) {}
  std::uint64_t size() const override { return kUnlimited; }

 protected:
  record::DatasetInfo describe() const override { return info_; }
  void fill(record::RequestSpec& spec, std::uint64_t row) const override {
    fill_lengths(spec, row);
    std::vector<std::uint32_t> chosen = choose(spec.index);
    std::string text = text_of(chosen);
    while (chosen.size() > 1 && content().prompt_tokens(text) > input_) {
      chosen.pop_back();
      text = text_of(chosen);
    }
    content().fill_text(spec, std::move(text));
  }
  void fill_lengths(record::RequestSpec& spec, std::uint64_t) const override {
    spec.class_name = "sonnet";
    spec.prompt_len = input_;
    spec.output_len = output_;
  }

 private:
  // Lines until the first that does not fit; at least one, which is the shortest when the first one drawn is too long.
  std::vector<std::uint32_t> choose(std::uint32_t index) const {
    Rng rng = prompt_rng(index);
    std::vector<std::uint32_t> chosen;
    std::int64_t length = shared_len_;
    for (;;) {
      const auto line = static_cast<std::size_t>(rng.uniform_int(0, static_cast<std::int64_t>(poem_.lines.size()) - 1));
      length += poem_.lengths[line];
      if (length > input_) break;
      chosen.push_back(static_cast<std::uint32_t>(line));
    }
    if (chosen.empty()) chosen.push_back(poem_.shortest);
    return chosen;
  }
  std::string text_of(const std::vector<std::uint32_t>& chosen) const {
    std::string text = shared_;
    for (const std::uint32_t line : chosen) text += poem_.lines[line];
    return text;
  }

  Poem poem_;
  std::string shared_;
  std::int64_t shared_len_, input_, output_;
  record::DatasetInfo info_;
};

// The request and as many first lines as the prefix length holds.
std::string shared_part(const Poem& poem, std::int64_t prefix_len, const Content& content) {
  std::string text(kRequest);
  std::int64_t length = content.prompt_tokens(kRequest);
  for (std::size_t i = 0; i < poem.lines.size() && length + poem.lengths[i] <= prefix_len; ++i) {
    text += poem.lines[i];
    length += poem.lengths[i];
  }
  return text;
}

}  // namespace

SourceResult sonnet_source(const WorkloadOptions& options, ContentPtr content) {
  std::string file;
  if (!options.dataset_path.empty()) {
    TS_TRY(file, read_data_file(options.dataset_path));
  }
  if (options.num_prompts == 0)
    return usage_error("--num-prompts must be at least 1 for the data set sonnet", "--num-prompts");
  Poem poem = poem_of(options.dataset_path.empty() ? builtin_sonnets() : std::string_view(file), *content);
  std::string shared = shared_part(poem, options.sonnet_prefix_len, *content);
  const std::int64_t shared_len = content->prompt_tokens(shared);
  if (shared_len + poem.shortest_len() > options.sonnet_input_len)
    return usage_error(
        fmt::format("--sonnet-input-len {} is too short: the shared beginning has {} tokens and the shortest line "
                    "{}; ask for at least {}, or lower --sonnet-prefix-len",
                    options.sonnet_input_len, shared_len, poem.shortest_len(), shared_len + poem.shortest_len()),
        "--sonnet-input-len");
  record::DatasetInfo info;
  info.name = "sonnet";
  info.path = options.dataset_path;
  info.rows = info.used = poem.lines.size();
  info.law = fmt::format("lines of {} up to {} prompt tokens, {} of them shared; output {}",
                         options.dataset_path.empty() ? "the built-in sonnets" : "the file", options.sonnet_input_len,
                         shared_len, options.sonnet_output_len);
  if (!content->counts()) info.notes.push_back("prompt lengths are estimated at one token per 4 bytes");
  return std::make_unique<SonnetSource>(options, std::move(content), std::move(poem), std::move(shared), shared_len,
                                        std::move(info));
}

}  // namespace tokenstone::workload
