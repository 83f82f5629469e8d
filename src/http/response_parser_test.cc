#include "http/response_parser.h"

#include <gtest/gtest.h>

namespace tokenstone::http {
namespace {

using State = ResponseParser::State;

struct Collected final : ResponseHandler {
  ResponseHead head;
  std::string body;
  void on_head(const ResponseHead& h) override { head = h; }
  void on_body(std::string_view piece) override { body += piece; }
};

struct Parsed {
  Collected out;
  State state = State::waiting;
  bool keep_alive = false;
  std::size_t taken = 0;
};

Parsed parse(std::string_view bytes, std::size_t piece, bool end_connection = false) {
  Parsed parsed;
  ResponseParser parser(parsed.out);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view read = bytes.substr(at, piece);
    const std::size_t taken = parser.feed(read);
    parsed.taken += taken;
    if (taken < read.size()) break;
  }
  if (end_connection) parser.finish();
  parsed.state = parser.state();
  parsed.keep_alive = parser.keep_alive();
  return parsed;
}

void for_every_piece(std::string_view bytes, const std::function<void(std::size_t)>& check) {
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) check(piece);
}

TEST(ResponseParser, ChunkedWithExtensionsAndTrailer) {
  const std::string_view bytes =
      "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
  for_every_piece(bytes, [&](std::size_t piece) {
    const Parsed parsed = parse(bytes, piece);
    EXPECT_EQ(parsed.state, State::complete);
    EXPECT_EQ(parsed.out.body, "abc0123456789");
    EXPECT_EQ(parsed.out.head.content_type, "text/event-stream");
    EXPECT_TRUE(parsed.keep_alive);
    EXPECT_EQ(parsed.taken, bytes.size());
  });
}

TEST(ResponseParser, InterimAnswersAreSkipped) {
  const std::string_view bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Type: x/y\r\n\r\n"
      "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
  for_every_piece(bytes, [&](std::size_t piece) {
    const Parsed parsed = parse(bytes, piece);
    EXPECT_EQ(parsed.state, State::complete) << piece;
    EXPECT_EQ(parsed.out.head.status, 204);
    EXPECT_EQ(parsed.out.head.content_type, "");
    EXPECT_FALSE(parsed.keep_alive);
  });
}

TEST(ResponseParser, StopsBeforeTheNextResponse) {
  const std::string_view first = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  std::string both(first);
  both += "HTTP/1.1 500 X\r\n\r\n";
  for_every_piece(both, [&](std::size_t piece) {
    const Parsed parsed = parse(both, piece);
    EXPECT_EQ(parsed.taken, first.size()) << piece;
    EXPECT_EQ(parsed.out.body, "ok");
  });
}

TEST(ResponseParser, EndOfConnectionCompletesOnlyBodiesWithoutALength) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\n\r\nabc", 7, true).state, State::complete);
  EXPECT_FALSE(parse("HTTP/1.1 200 OK\r\n\r\nabc", 7, true).keep_alive);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 7, true).state, State::body);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 7, true).state, State::body);
  EXPECT_EQ(parse("HTTP/1.1 200", 7, true).state, State::head);
  EXPECT_EQ(parse("", 7, true).state, State::waiting);
}

TEST(ResponseParser, OldVersionsDoNotKeepTheConnection) {
  EXPECT_FALSE(parse("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 99).keep_alive);
  EXPECT_TRUE(parse("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", 99).keep_alive);
}

TEST(ResponseParser, ForeignBytesFail) {
  EXPECT_EQ(parse("SSH-2.0-OpenSSH_9.2\r\n", 99).state, State::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 99).state, State::failed);
}

}  // namespace
}  // namespace tokenstone::http
