// Turns a sequence's tokens into text as they come: UTF-8-safe pieces, stop strings across token borders.
// Threads: the engine loop's thread. A virtual-time engine has none: its events carry no text.
#pragma once

#include <string>

#include "sched/request.h"

namespace tokenstone::runtime {

class OutputProcessor {
 public:
  struct Piece {
    std::string text;         ///< may be empty: bytes of an unfinished character, or text held back for a stop string
    bool stopped = false;     ///< a stop string was found; text ends before it (or with it, if asked)
    std::string stop_reason;  ///< the string found
  };
  virtual ~OutputProcessor() = default;
  virtual void start(SeqId seq, const sched::SamplingParams& sampling) = 0;
  virtual Piece push(SeqId seq, TokenId token) = 0;
  /// What was held back, at the end of a sequence that no stop string ended; forgets the sequence.
  virtual std::string finish(SeqId seq) = 0;
};

}  // namespace tokenstone::runtime
