#include "workload/azure_trace.h"

#include "base/text.h"

namespace tokenstone::workload {
namespace {

// Days from 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant's algorithm: years begin in March).
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

// Takes exactly `digits` digits off the front; nothing if they are not there or the value exceeds `most`.
std::optional<std::int64_t> take_number(std::string_view& text, std::size_t digits, std::int64_t most) {
  if (text.size() < digits) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value <= most ? std::optional(value) : std::nullopt;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<TimeNs> take_date(std::string_view& text) {
  const auto year = take_number(text, 4, 2200);  // ns since 1970 end in 2262
  if (!year || *year < 1970 || !take(text, '-')) return std::nullopt;
  const auto month = take_number(text, 2, 12);
  if (!month || *month == 0 || !take(text, '-')) return std::nullopt;
  const auto day = take_number(text, 2, 31);
  if (!day || *day == 0) return std::nullopt;
  return days_from_civil(*year, *month, *day) * 86400 * kSecond;
}

std::optional<TimeNs> take_clock(std::string_view& text) {
  const auto hour = take_number(text, 2, 23);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2, 59);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_number(text, 2, 60);
  if (!second) return std::nullopt;
  return ((*hour * 60 + *minute) * 60 + *second) * kSecond;
}

std::optional<TimeNs> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return 0;
  TimeNs fraction = 0, unit = kSecond;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    unit /= 10;
    fraction += (text[digits] - '0') * unit;
  }
  if (digits == 0 || digits > 9) return std::nullopt;
  text.remove_prefix(digits);
  return fraction;
}

std::optional<TimeNs> take_zone(std::string_view& text) {
  if (text.empty() || take(text, 'Z')) return 0;
  const bool west = text.front() == '-';
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_number(text, 2, 18);
  if (!hours || !take(text, ':')) return std::nullopt;
  const auto minutes = take_number(text, 2, 59);
  if (!minutes) return std::nullopt;
  const TimeNs offset = (*hours * 60 + *minutes) * 60 * kSecond;
  return west ? -offset : offset;
}

}  // namespace

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) field = std::string(trim(field));
  return fields;
}

std::optional<AzureColumns> azure_columns(std::string_view header) {
  if (header.size() > 4096) return std::nullopt;
  std::optional<std::size_t> time, input, output;
  const auto names = csv_fields(header);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = to_lower(names[i]);
    if (name == "timestamp") time = i;
    if (name == "contexttokens") input = i;
    if (name == "generatedtokens") output = i;
  }
  if (!time || !input || !output) return std::nullopt;
  return AzureColumns{*time, *input, *output};
}

std::optional<TimeNs> parse_timestamp(std::string_view text) {
  const auto date = take_date(text);
  if (!date || (!take(text, ' ') && !take(text, 'T'))) return std::nullopt;
  const auto clock = take_clock(text);
  const auto fraction = clock ? take_fraction(text) : std::nullopt;
  const auto zone = fraction ? take_zone(text) : std::nullopt;
  if (!zone || !text.empty()) return std::nullopt;
  return *date + *clock + *fraction - *zone;
}

}  // namespace tokenstone::workload
