#include "record/csv.h"

namespace tokenstone::record {

void CsvLine::separate() {
  if (!first_) line_ += ',';
  first_ = false;
}

CsvLine& CsvLine::text(std::string_view value) {
  separate();
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    line_ += value;
    return *this;
  }
  line_ += '"';
  for (const char c : value) {
    if (c == '"') line_ += '"';
    line_ += c;
  }
  line_ += '"';
  return *this;
}

CsvLine& CsvLine::number(std::int64_t value) {
  separate();
  line_ += std::to_string(value);
  return *this;
}

CsvLine& CsvLine::time(TimeNs value) {
  if (value != kUnknownTime) return number(value);
  separate();
  return *this;
}

CsvLine& CsvLine::count(std::int64_t value) {
  if (value >= 0) return number(value);
  separate();
  return *this;
}

std::string CsvLine::end() {
  line_ += '\n';
  first_ = true;
  return std::exchange(line_, {});
}

CsvReader::CsvReader(std::string_view text) : text_(text) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.clear();
  if (at_ >= text_.size()) return false;
  std::string field;
  bool quoted = false;
  for (std::size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text_.size() && text_[i + 1] == '"') {
        field += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.push_back(std::exchange(field, {}));
    } else if (c == '\n') {
      if (!field.empty() && field.back() == '\r') field.pop_back();
      fields.push_back(std::move(field));
      at_ = i + 1;
      ++row_;
      return true;
    } else {
      field += c;
    }
  }
  torn_ = true;
  fields.clear();
  at_ = text_.size();
  return false;
}

}  // namespace tokenstone::record
