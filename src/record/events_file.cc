#include "record/events_file.h"

#include <fmt/format.h>

namespace tokenstone::record {
namespace {

constexpr std::string_view kMagic = "TSEVENT1";
constexpr std::size_t kHeaderBytes = 16;
constexpr std::uint32_t kWidth = 32;

template <class T>
void put(std::string& out, T value) {
  using U = std::make_unsigned_t<T>;
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(static_cast<U>(value) >> (8 * i) & 0xFF);
}

template <class T>
T get(std::string_view bytes, std::size_t at) {
  using U = std::make_unsigned_t<T>;
  U value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value =
        static_cast<U>(value | static_cast<U>(static_cast<U>(static_cast<unsigned char>(bytes[at + i])) << (8 * i)));
  return static_cast<T>(value);
}

IndexedEvent decode(std::string_view record) {
  IndexedEvent e;
  e.index = get<std::uint32_t>(record, 0);
  e.event.tokens = get<std::int32_t>(record, 4);
  e.event.arrived = get<std::int64_t>(record, 8);
  e.event.parsed = get<std::int64_t>(record, 16);
  e.event.kind = static_cast<TokenKind>(std::min<std::uint8_t>(get<std::uint8_t>(record, 24), 2));
  e.event.shared_stamp = (get<std::uint8_t>(record, 25) & 1) != 0;
  return e;
}

}  // namespace

Result<EventsWriter> EventsWriter::create(const std::string& path) {
  TS_TRY(AppendFile file, AppendFile::create(path));
  std::string header(kMagic);
  put(header, kWidth);
  put(header, std::uint32_t{0});
  file.append(header);
  TS_TRY_STATUS(file.flush());
  return EventsWriter(std::move(file));
}

void EventsWriter::write(std::uint32_t index, const std::vector<TokenEvent>& events) {
  std::string bytes;
  bytes.reserve(events.size() * kWidth);
  for (const TokenEvent& event : events) {
    put(bytes, index);
    put(bytes, event.tokens);
    put(bytes, event.arrived);
    put(bytes, event.parsed);
    put(bytes, static_cast<std::uint8_t>(event.kind));
    put(bytes, static_cast<std::uint8_t>(event.shared_stamp ? 1 : 0));
    bytes.append(6, '\0');
  }
  file_.append(bytes);
}

Result<std::vector<IndexedEvent>> parse_events(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic))
    return usage_error(fmt::format("{}: expected an event file that begins with {}", path, kMagic));
  const std::uint32_t width = get<std::uint32_t>(bytes, 8);
  if (width < kWidth || width > 4096)
    return usage_error(fmt::format("{}: expected records of 32 bytes or more, found {}", path, width));
  std::vector<IndexedEvent> events;
  events.reserve((bytes.size() - kHeaderBytes) / width);
  for (std::size_t at = kHeaderBytes; at + width <= bytes.size(); at += width)
    events.push_back(decode(bytes.substr(at, width)));
  return events;
}

Result<std::vector<IndexedEvent>> read_events(const std::string& path) {
  TS_TRY(const std::string bytes, read_whole_file(path));
  return parse_events(bytes, path);
}

}  // namespace tokenstone::record
