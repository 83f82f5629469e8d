#include "http/url.h"

#include <gtest/gtest.h>

#include "http/request_writer.h"

namespace tokenstone::http {
namespace {

TEST(Url, ReadsHostPortAndPrefix) {
  const Url url = *parse_url("http://127.0.0.1:8000/proxy/a/");
  EXPECT_EQ(url.host, "127.0.0.1");
  EXPECT_EQ(url.port, 8000);
  EXPECT_EQ(url.path, "/proxy/a");
  EXPECT_EQ(url.text(), "http://127.0.0.1:8000/proxy/a");
  EXPECT_EQ(join_path(url, "v1/models"), "/proxy/a/v1/models");
  EXPECT_EQ(join_path(*parse_url("HTTP://host/"), "/health"), "/health");
}

TEST(Url, BracketsOfIpv6AreForTheHeaderOnly) {
  const Url url = *parse_url("http://[::1]:9000");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.authority(), "[::1]:9000");
  EXPECT_EQ(parse_url("http://[::1]")->authority(), "[::1]");
}

TEST(Url, RefusesWhatItCannotServeAndSaysWhy) {
  const auto message = [](std::string_view text) { return parse_url(text).error().message; };
  EXPECT_NE(message("https://host").find("https is not built yet"), std::string::npos);
  EXPECT_NE(message("unix:/run/x").find("Unix sockets are not built yet"), std::string::npos);
  EXPECT_NE(message("127.0.0.1:8000").find("http:// in front is missing"), std::string::npos);
  EXPECT_NE(message("ftp://host").find("unknown scheme 'ftp'"), std::string::npos);
  for (const char* bad :
       {"http://", "http://:80", "http://h:0", "http://h:65536", "http://h:8x", "http://h:", "http://a:1:2",
        "http://[::1", "http://[::1]x", "http://h/?q=1", "http://h/#f", "http://h h"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

TEST(Url, NeverRepeatsAPassword) {
  EXPECT_EQ(parse_url("http://user:secret@host").error().message.find("secret"), std::string::npos);
}

TEST(RequestWriter, WritesTheWholeRequest) {
  const Header headers[] = {{"x-request-id", "bench-1"}};
  EXPECT_EQ(write_request("POST", *parse_url("http://h:8000"), "/v1/completions", headers, "{}"),
            "POST /v1/completions HTTP/1.1\r\nHost: h:8000\r\nUser-Agent: tokenstone\r\nAccept-Encoding: identity\r\n"
            "x-request-id: bench-1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(write_request("GET", *parse_url("http://h"), "/health", {}, ""),
            "GET /health HTTP/1.1\r\nHost: h\r\nUser-Agent: tokenstone\r\nAccept-Encoding: identity\r\n\r\n");
}

TEST(RequestWriter, RefusesHeadersThatBreakTheFraming) {
  EXPECT_TRUE(check_header({"Authorization", "Bearer x"}));
  EXPECT_FALSE(check_header({"", "x"}));
  EXPECT_FALSE(check_header({"a b", "x"}));
  EXPECT_FALSE(check_header({"Content-Length", "3"}));
  const auto injected = check_header({"X-Key", "secret\r\nHost: other"});
  ASSERT_FALSE(injected);
  EXPECT_EQ(injected.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace tokenstone::http
