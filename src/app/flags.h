// The command line of one subcommand: a table of flags with their kinds, defaults and standing towards vLLM's.
//
// `_` and `-` are the same in a flag's name; a flag given twice: the last wins; `--flag=value` and `--flag value`;
// `--no-flag` for switches; `--config FILE` (YAML or JSON) holds flags, the command line wins over it.
// A flag of vLLM's that means nothing here is accepted with a note; one that is not supported is refused by name;
// anything else is an error with the nearest name. Ownership: the bound variables outlive the FlagSet.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tokenstone::app {

class FlagSet {
 public:
  /// Where a flag's value goes. A vector takes one or more words (`--goodput ttft:200 tpot:50`).
  using Slot = std::variant<std::string*, std::int64_t*, double*, bool*, std::optional<std::string>*,
                            std::optional<std::int64_t>*, std::optional<double>*, std::vector<std::string>*>;
  struct Flag {
    std::string name;  ///< with `-`, without the leading dashes: "max-concurrency"
    Slot slot;
    std::string meta;  ///< "N", "RATE", "FILE"; empty for switches
    std::string help;
    std::string group;
    std::vector<std::string> aliases;
    std::string shown_default;
  };

  /// `command` as typed after `tokenstone`: "bench serve".
  FlagSet(std::string command, std::string summary);
  /// Flags added from here on stand under this title in the help.
  FlagSet& group(std::string title);
  FlagSet& add(std::string name, Slot slot, std::string meta, std::string help, std::vector<std::string> aliases = {});
  FlagSet& positional(std::string name, std::string* slot, std::string help);
  /// A flag of vLLM's that is accepted and means nothing here; `why` completes "--name: accepted, ...".
  FlagSet& accept(std::string name, bool takes_value, std::string why);
  /// A flag of vLLM's that is not supported; `why` completes "--name is not supported: ...".
  FlagSet& refuse(std::string name, std::string why);

  struct Parsed {
    bool help = false;
    std::vector<std::string> notes;             ///< of accepted flags
    std::map<std::string, std::string> values;  ///< every flag's effective value, by name
    std::vector<std::string> given;             ///< names given on the command line or in the config file
    bool was_given(std::string_view name) const;
  };
  /// `args` without program and subcommand names.
  Result<Parsed> parse(const std::vector<std::string>& args);
  std::string help() const;

  struct Standing {
    enum Kind { supported, accepted, refused } kind;
    std::string why;
  };
  /// Every flag by name, for docs/vllm-parity.md and its test.
  std::map<std::string, Standing> standings() const;

 private:
  std::string command_, summary_, group_;
  std::vector<Flag> flags_;
  struct Foreign {
    bool takes_value;
    std::string why;
  };
  std::map<std::string, Foreign> accepted_, refused_;
  struct Positional {
    std::string name;
    std::string* slot;
    std::string help;
  };
  std::vector<Positional> positionals_;
};

}  // namespace tokenstone::app
