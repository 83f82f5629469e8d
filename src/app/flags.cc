#include "app/flags.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"

namespace tokenstone::app {
namespace {

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool is_switch(const FlagSet::Slot& slot) { return std::holds_alternative<bool*>(slot); }
bool is_list(const FlagSet::Slot& slot) { return std::holds_alternative<std::vector<std::string>*>(slot); }

std::string show_number(double value) {
  return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : fmt::format("{}", value);
}

/// A slot's value as text; empty when an optional or a list is empty.
std::string show(const FlagSet::Slot& slot) {
  struct Show {
    std::string operator()(const std::string* v) const { return *v; }
    std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
    std::string operator()(const double* v) const { return show_number(*v); }
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const std::optional<std::string>* v) const { return v->value_or(""); }
    std::string operator()(const std::optional<std::int64_t>* v) const { return *v ? std::to_string(**v) : ""; }
    std::string operator()(const std::optional<double>* v) const { return *v ? show_number(**v) : ""; }
    std::string operator()(const std::vector<std::string>* v) const { return join(*v, " "); }
  };
  return std::visit(Show{}, slot);
}

struct Store {
  const std::string& name;
  const std::string& text;

  Status operator()(std::string* slot) const { return *slot = text, Status{}; }
  Status operator()(std::optional<std::string>* slot) const { return *slot = text, Status{}; }
  Status operator()(std::int64_t* slot) const {
    return store_int([&](std::int64_t v) { *slot = v; });
  }
  Status operator()(std::optional<std::int64_t>* slot) const {
    return store_int([&](std::int64_t v) { *slot = v; });
  }
  Status operator()(double* slot) const {
    return store_double([&](double v) { *slot = v; });
  }
  Status operator()(std::optional<double>* slot) const {
    return store_double([&](double v) { *slot = v; });
  }
  Status operator()(std::vector<std::string>* slot) const { return slot->push_back(text), Status{}; }
  Status operator()(bool* slot) const {
    const std::string word = to_lower(text);
    if (word != "true" && word != "false" && word != "1" && word != "0")
      return usage_error(fmt::format("--{} is a switch: give --{}, --no-{} or --{}=true|false, not '{}'", name, name,
                                     name, name, text),
                         name);
    *slot = word == "true" || word == "1";
    return {};
  }

 private:
  template <class F>
  Status store_int(F&& set) const {
    const auto value = parse_int(text);
    if (!value) return usage_error(fmt::format("--{} needs a whole number, not '{}'", name, text), name);
    set(*value);
    return {};
  }
  template <class F>
  Status store_double(F&& set) const {
    const auto value = parse_double(text);
    if (!value) return usage_error(fmt::format("--{} needs a number, not '{}'", name, text), name);
    set(*value);
    return {};
  }
};

/// A word that begins the next flag, as opposed to a value such as "-1" or "-".
bool starts_flag(const std::string& word) { return word.size() > 2 && word[0] == '-' && word[1] == '-'; }

/// The words `--key value...` that a YAML or JSON file of flags stands for.
Result<std::vector<std::string>> config_words(const std::string& path) {
  std::ifstream in(path);
  if (!in)
    return usage_error(fmt::format("--config: cannot read '{}'; name a YAML or JSON file that holds flags", path),
                       "config");
  std::ostringstream text;
  text << in.rdbuf();
  std::vector<std::string> words;
  try {
    const YAML::Node root = YAML::Load(text.str());
    if (!root.IsMap())
      return usage_error(fmt::format("--config: '{}' must hold a map of flags, such as 'num-prompts: 100'", path),
                         "config");
    for (const auto& entry : root) {
      const std::string key = "--" + entry.first.as<std::string>();
      const YAML::Node& value = entry.second;
      if (value.IsSequence()) {
        words.push_back(key);
        for (const YAML::Node& item : value) words.push_back(item.as<std::string>());
      } else if (value.IsNull()) {
        words.push_back(key);
      } else if (value.IsMap()) {
        return usage_error(fmt::format("--config: '{}' in '{}' holds a map; write it as a JSON text in quotes",
                                       entry.first.as<std::string>(), path),
                           "config");
      } else {
        words.push_back(key + "=" + value.as<std::string>());
      }
    }
  } catch (const YAML::Exception& error) {
    return usage_error(fmt::format("--config: '{}' is neither YAML nor JSON: {}", path, error.what()), "config");
  }
  return words;
}

void wrap_into(std::string& out, const std::string& text, std::size_t indent, std::size_t width) {
  std::size_t column = indent;
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word;) {
    if (!first && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  out += '\n';
}

}  // namespace

FlagSet::FlagSet(std::string command, std::string summary)
    : command_(std::move(command)), summary_(std::move(summary)) {}

FlagSet& FlagSet::group(std::string title) {
  group_ = std::move(title);
  return *this;
}

FlagSet& FlagSet::add(std::string name, Slot slot, std::string meta, std::string help,
                      std::vector<std::string> aliases) {
  std::string shown = show(slot);
  if (is_switch(slot) && shown == "false") shown.clear();
  flags_.push_back(
      Flag{std::move(name), slot, std::move(meta), std::move(help), group_, std::move(aliases), std::move(shown)});
  return *this;
}

FlagSet& FlagSet::positional(std::string name, std::string* slot, std::string help) {
  positionals_.push_back({std::move(name), slot, std::move(help)});
  return *this;
}

FlagSet& FlagSet::accept(std::string name, bool takes_value, std::string why) {
  accepted_[std::move(name)] = Foreign{takes_value, std::move(why)};
  return *this;
}

FlagSet& FlagSet::refuse(std::string name, std::string why) {
  refused_[std::move(name)] = Foreign{false, std::move(why)};
  return *this;
}

bool FlagSet::Parsed::was_given(std::string_view name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

Result<FlagSet::Parsed> FlagSet::parse(const std::vector<std::string>& args) {
  // The config file's flags come first, so that the command line wins.
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = with_dashes(args[i].substr(0, args[i].find('=')));
    if (name != "--config") {
      words.push_back(args[i]);
      continue;
    }
    const bool joined = args[i].find('=') != std::string::npos;
    if (!joined && i + 1 == args.size()) return usage_error("--config needs a file of flags (YAML or JSON)", "config");
    TS_TRY(auto from_file, config_words(joined ? args[i].substr(args[i].find('=') + 1) : args[++i]));
    words.insert(words.begin(), from_file.begin(), from_file.end());
  }

  Parsed parsed;
  std::size_t next_positional = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      parsed.help = true;
      return parsed;
    }
    const bool short_flag =
        word.size() == 2 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0;
    if (!starts_flag(word) && !short_flag) {
      if (next_positional == positionals_.size())
        return usage_error(fmt::format("'{}' is one word too many; see 'tokenstone {} --help'", word, command_));
      *positionals_[next_positional++].slot = word;
      parsed.given.push_back(positionals_[next_positional - 1].name);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = with_dashes(std::string_view(word).substr(
        short_flag ? 1 : 2, equals == std::string::npos ? equals : equals - (short_flag ? 1 : 2)));
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);

    if (const auto refused = refused_.find(name); refused != refused_.end())
      return usage_error(fmt::format("--{} is not supported: {}", name, refused->second.why), name);
    if (const auto accepted = accepted_.find(name); accepted != accepted_.end()) {
      parsed.notes.push_back(fmt::format("--{}: accepted, {}", name, accepted->second.why));
      if (accepted->second.takes_value && !value)
        while (i + 1 < words.size() && !starts_flag(words[i + 1])) ++i;
      continue;
    }
    const auto named = [&](std::string_view wanted) {
      return std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) {
        return flag.name == wanted || std::find(flag.aliases.begin(), flag.aliases.end(), wanted) != flag.aliases.end();
      });
    };
    auto flag = named(name);
    if (flag == flags_.end() && name.starts_with("no-") && !value) {
      flag = named(std::string_view(name).substr(3));
      if (flag != flags_.end() && is_switch(flag->slot))
        value = "false";
      else
        flag = flags_.end();
    }
    if (flag == flags_.end()) {
      std::vector<std::string> names;
      for (const Flag& known : flags_) {
        names.push_back(known.name);
        names.insert(names.end(), known.aliases.begin(), known.aliases.end());
      }
      for (const auto& [known, why] : accepted_) names.push_back(known);
      const auto near = nearest_name(name, names);
      return usage_error(fmt::format("unknown flag --{}{}", name,
                                     near ? fmt::format("; did you mean --{}?", *near)
                                          : fmt::format("; see 'tokenstone {} --help'", command_)),
                         name);
    }
    if (is_list(flag->slot)) {
      std::get<std::vector<std::string>*>(flag->slot)->clear();
      if (value) TS_TRY_STATUS(std::visit(Store{flag->name, *value}, flag->slot));
      std::size_t taken = value ? 1 : 0;
      for (; !value && i + 1 < words.size() && !starts_flag(words[i + 1]); ++taken)
        TS_TRY_STATUS(std::visit(Store{flag->name, words[++i]}, flag->slot));
      if (taken == 0) return usage_error(fmt::format("--{} needs a value: {}", flag->name, flag->meta), flag->name);
    } else {
      if (!value && is_switch(flag->slot)) value = "true";
      if (!value) {
        if (i + 1 == words.size() || starts_flag(words[i + 1]))
          return usage_error(fmt::format("--{} needs a value: {}", flag->name, flag->meta), flag->name);
        value = words[++i];
      }
      TS_TRY_STATUS(std::visit(Store{flag->name, *value}, flag->slot));
    }
    if (!parsed.was_given(flag->name)) parsed.given.push_back(flag->name);
  }
  for (const Flag& flag : flags_) parsed.values[flag.name] = show(flag.slot);
  for (const Positional& positional : positionals_) parsed.values[positional.name] = *positional.slot;
  return parsed;
}

std::string FlagSet::help() const {
  constexpr std::size_t width = 80, column = 30;
  std::string out = fmt::format("usage: tokenstone {}", command_);
  for (const Positional& positional : positionals_) out += fmt::format(" [{}]", positional.name);
  out += " [flags]\n\n";
  wrap_into(out, summary_, 0, width);
  for (const Positional& positional : positionals_) {
    out += fmt::format("\n  {:<{}}", positional.name, column - 2);
    wrap_into(out, positional.help, column, width);
  }
  std::string group;
  for (const Flag& flag : flags_) {
    if (flag.group != group) out += fmt::format("\n{}\n", group = flag.group);
    std::string left = fmt::format("  --{}{}", flag.name, flag.meta.empty() ? "" : " " + flag.meta);
    out += left.size() < column ? fmt::format("{:<{}}", left, column) : left + "\n" + std::string(column, ' ');
    std::string right = flag.help;
    if (!flag.shown_default.empty()) right += fmt::format(" ({})", flag.shown_default);
    if (!flag.aliases.empty()) {
      std::vector<std::string> dashed;
      for (const std::string& alias : flag.aliases) dashed.push_back((alias.size() == 1 ? "-" : "--") + alias);
      right += fmt::format(" [also {}]", join(dashed, ", "));
    }
    wrap_into(out, right, column, width);
  }
  out += fmt::format("\n  {:<{}}flags from YAML or JSON; the command line wins\n", "--config FILE", column - 2);
  return out;
}

std::map<std::string, FlagSet::Standing> FlagSet::standings() const {
  std::map<std::string, Standing> all;
  for (const Flag& flag : flags_) {
    all[flag.name] = {Standing::supported, flag.help};
    for (const std::string& alias : flag.aliases) all[alias] = {Standing::supported, flag.help};
  }
  for (const auto& [name, foreign] : accepted_) all[name] = {Standing::accepted, foreign.why};
  for (const auto& [name, foreign] : refused_) all[name] = {Standing::refused, foreign.why};
  return all;
}

}  // namespace tokenstone::app
