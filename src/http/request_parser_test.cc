#include "http/request_parser.h"

#include <gtest/gtest.h>

namespace tokenstone::http {
namespace {

constexpr std::string_view kPost =
    "POST /v1/completions?x=1#f HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Two: 1\r\nX-Two: 2\r\n"
    "Content-Length: 5\r\n\r\nhello";
constexpr std::string_view kChunked =
    "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n";
constexpr std::string_view kGet = "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";

struct Seen {
  std::vector<Request> requests;
  std::optional<RequestError> error;
};

/// Feeds `bytes` in pieces that end at the given cuts.
Seen parse(std::string_view bytes, const std::vector<std::size_t>& cuts, RequestLimits limits = {}) {
  RequestParser parser(limits);
  Seen seen;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : bytes.size();
    std::string_view piece = bytes.substr(begin, end - begin);
    begin = end;
    while (!piece.empty() && !parser.error()) {
      piece.remove_prefix(parser.feed(piece));
      if (!parser.complete()) continue;
      seen.requests.push_back(parser.request());
      parser.next();
    }
  }
  seen.error = parser.error();
  return seen;
}

TEST(RequestParser, ReadsARequestWithABody) {
  const Seen seen = parse(kPost, {});
  ASSERT_EQ(seen.requests.size(), 1u);
  const Request& request = seen.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/v1/completions?x=1#f");
  EXPECT_EQ(request.path, "/v1/completions");
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("x-two"), "1");
  EXPECT_EQ(request.header("x-three"), std::nullopt);
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestParser, PipelinedRequestsComeOutTheSameUnderEveryCut) {
  const std::string all = std::string(kPost) + std::string(kChunked) + std::string(kPost) + std::string(kGet);
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    const Seen seen = parse(all, {cut});
    ASSERT_FALSE(seen.error) << cut << ": " << seen.error->message;
    ASSERT_EQ(seen.requests.size(), 4u) << cut;
    EXPECT_EQ(seen.requests[0].body, "hello");
    EXPECT_EQ(seen.requests[1].body, "abcdefg");
    EXPECT_EQ(seen.requests[2].header("host"), "a");
    EXPECT_EQ(seen.requests[3].path, "/health");
    EXPECT_FALSE(seen.requests[3].keep_alive);
  }
  std::vector<std::size_t> every(all.size());
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = i;
  EXPECT_EQ(parse(all, every).requests.size(), 4u);
}

TEST(RequestParser, KeepAliveFollowsVersionAndHeader) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n", {}).requests.at(0).keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", {}).requests.at(0).keep_alive);
  EXPECT_EQ(parse("GET / HTTP/1.0\r\n\r\n", {}).requests.at(0).minor_version, 0);
}

TEST(RequestParser, RefusesALongBodyBeforeItComes) {
  const RequestLimits small{.max_body_bytes = 4};
  const Seen declared = parse("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", {}, small);
  ASSERT_TRUE(declared.error);
  EXPECT_EQ(declared.error->status, 413);
  const Seen chunked = parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n", {}, small);
  ASSERT_TRUE(chunked.error);
  EXPECT_EQ(chunked.error->status, 413);
  EXPECT_FALSE(parse("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", {}, small).error);
}

TEST(RequestParser, BoundsTheHead) {
  const RequestLimits small{.max_head_bytes = 100};
  const Seen url = parse("GET /" + std::string(200, 'a') + " HTTP/1.1\r\n\r\n", {}, small);
  ASSERT_TRUE(url.error);
  EXPECT_EQ(url.error->status, 414);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 50; ++i) many += "a:\r\n";
  const Seen headers = parse(many + "\r\n", {}, small);
  ASSERT_TRUE(headers.error);
  EXPECT_EQ(headers.error->status, 431);
}

TEST(RequestParser, BadBytesAreAnErrorAndTakeNothingMore) {
  for (const std::string_view bad :
       {"\x16\x03\x01\x02 tls", "GET\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"}) {
    const Seen seen = parse(bad, {});
    ASSERT_TRUE(seen.error) << bad;
    EXPECT_EQ(seen.error->status, 400) << bad;
    EXPECT_TRUE(seen.requests.empty());
  }
  EXPECT_EQ(parse("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", {}).error->status, 501);
}

TEST(RequestParser, IgnoresUpgradeOffersAndKeepsTheBody) {
  const Seen seen = parse(
      "POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n"
      "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
      {});
  ASSERT_EQ(seen.requests.size(), 2u);
  EXPECT_EQ(seen.requests[0].body, "hi");
}

TEST(RequestParser, ExpectContinueIsReportedOnceBeforeTheBody) {
  RequestParser parser(RequestLimits{});
  parser.feed("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(parser.in_message());
  EXPECT_TRUE(parser.take_continue());
  EXPECT_FALSE(parser.take_continue());
  parser.feed("hi");
  EXPECT_TRUE(parser.complete());
  EXPECT_FALSE(parser.take_continue());
}

TEST(RequestParser, RandomChangesNeverBreakItsBounds) {
  const std::string base = std::string(kPost) + std::string(kChunked) + std::string(kGet);
  std::uint64_t state = 12345;
  const auto random = [&state](std::size_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::size_t>((state >> 33) % below);
  };
  const RequestLimits limits{.max_head_bytes = 512, .max_body_bytes = 64};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = base;
    for (std::size_t changes = 1 + random(6); changes > 0; --changes)
      bytes[random(bytes.size())] = static_cast<char>(random(256));
    std::vector<std::size_t> cuts{random(bytes.size()), random(bytes.size())};
    std::sort(cuts.begin(), cuts.end());
    const Seen cut = parse(bytes, cuts, limits), whole = parse(bytes, {}, limits);
    ASSERT_EQ(cut.requests.size(), whole.requests.size());
    ASSERT_EQ(cut.error.has_value(), whole.error.has_value());
    for (std::size_t i = 0; i < whole.requests.size(); ++i) {
      ASSERT_EQ(cut.requests[i].body, whole.requests[i].body);
      ASSERT_LE(whole.requests[i].body.size(), limits.max_body_bytes);
    }
  }
}

}  // namespace
}  // namespace tokenstone::http
