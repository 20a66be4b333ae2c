// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/frame.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"

namespace disttrain::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Header(const std::vector<int>& bytes) {
  std::string out;
  for (const int byte : bytes) out.push_back(static_cast<char>(byte));
  return out;
}

std::string ErrorOf(const std::string& bytes) {
  return disttrain::Message(DecodeFrameHeader(bytes).status());
}

TEST(Frame, HeaderHasTheDocumentedBytes) {
  const FrameHeaderBytes bytes =
      EncodeFrameHeader({1, FrameType::kChunk, 0x04030201, 0x00020506});
  EXPECT_EQ(std::string(bytes.data(), bytes.size()),
            Header({'D', 'T', 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, 6, 5, 2, 0}));
}

TEST(Frame, HeaderComesBackAsItWas) {
  const FrameHeaderBytes bytes =
      EncodeFrameHeader({1, FrameType::kBegin, 77, 256 << 10});
  const auto header = DecodeFrameHeader({bytes.data(), bytes.size()});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->type, FrameType::kBegin);
  EXPECT_EQ(header->stream, 77u);
  EXPECT_EQ(header->length, 256u << 10);
}

TEST(Frame, WhatIsNoFrameIsRefusedByName) {
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\n"), HasSubstr("does not speak"));
  EXPECT_THAT(
      ErrorOf(Header({'D', 'T', 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})),
      HasSubstr("type 9 is unknown"));
  EXPECT_THAT(
      ErrorOf(Header({'D', 'T', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})),
      HasSubstr("type 0 is unknown"));
  EXPECT_THAT(
      ErrorOf(Header({'D', 'T', 1, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})),
      HasSubstr("reserved"));
}

TEST(Frame, LengthOverItsTypesLimitIsRefused) {
  const std::string one_more = Header({1, 0, 4, 0});
  EXPECT_THAT(
      ErrorOf(Header({'D', 'T', 1, 4, 0, 0, 0, 0, 0, 0, 0, 0}) + one_more),
      HasSubstr("262145 bytes, expected 1 to 262144"));
  EXPECT_THAT(ErrorOf(Header({'D', 'T', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}) +
                      Header({1, 16, 0, 0})),
              HasSubstr("4097 bytes, expected 1 to 4096"));
  EXPECT_THAT(ErrorOf(Header({'D', 'T', 1, 5, 0, 0, 0, 0, 0, 0, 0, 0}) +
                      Header({1, 0, 0, 0})),
              HasSubstr("1 bytes, expected 0 to 0"));
  EXPECT_THAT(ErrorOf(Header({'D', 'T', 1, 4, 0, 0, 0, 0, 0, 0, 0, 0}) +
                      Header({0, 0, 0, 0})),
              HasSubstr("0 bytes, expected 1 to"));
}

TEST(Frame, AnotherVersionIsReadOnlyInGreetings) {
  FrameHeader header{2, FrameType::kHello, 0, 10};
  FrameHeaderBytes bytes = EncodeFrameHeader(header);
  EXPECT_TRUE(DecodeFrameHeader({bytes.data(), bytes.size()}).ok());
  header.type = FrameType::kChunk;
  bytes = EncodeFrameHeader(header);
  EXPECT_THAT(ErrorOf({bytes.data(), bytes.size()}),
              HasSubstr("version 2, expected 1"));
}

TEST(Frame, TableComesBackAsItWas) {
  const std::vector<uint64_t> sizes = {0, 5, uint64_t{3} << 32};
  const std::string table = EncodeTable(9, sizes);
  ASSERT_EQ(table.size(), 8u + 3 * 8u);
  const auto prefix = DecodeTablePrefix(table.substr(0, 8), 32, Limits());
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_EQ(prefix->header_bytes, 9u);
  EXPECT_EQ(prefix->buffers, 3u);
  const auto decoded = DecodeSizes(table.substr(8), 9, Limits());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(*decoded, ElementsAre(0, 5, uint64_t{3} << 32));
}

TEST(Frame, TableOverALimitIsRefused) {
  Limits limits;
  limits.header_bytes = 100;
  limits.buffers = 3;
  limits.message_bytes = 1000;
  const auto prefix = [&](size_t header, size_t buffers, uint32_t length) {
    std::string table =
        EncodeTable(header, std::vector<uint64_t>(buffers)).substr(0, 8);
    return disttrain::Message(
        DecodeTablePrefix(table, length, limits).status());
  };
  EXPECT_EQ(prefix(100, 3, 32), "");
  EXPECT_THAT(prefix(101, 3, 32), HasSubstr("101 bytes is over the limit"));
  EXPECT_THAT(prefix(100, 4, 64), HasSubstr("4 buffers is over the limit"));
  EXPECT_THAT(prefix(100, 3, 31), HasSubstr("too short"));
}

TEST(Frame, SizesThatOverflowTogetherAreRefused) {
  const uint64_t half = uint64_t{1} << 63;
  const std::vector<uint64_t> sizes = {half, half};
  Limits limits;
  limits.message_bytes = std::numeric_limits<uint64_t>::max();
  const std::string table = EncodeTable(0, sizes).substr(8);
  EXPECT_TRUE(absl::IsDataLoss(DecodeSizes(table, 0, limits).status()));
}

TEST(Frame, MessageOverALimitIsNotSent) {
  Limits limits;
  limits.header_bytes = 4;
  limits.buffers = 1;
  limits.message_bytes = 10;
  const char bytes[16] = {};
  EXPECT_TRUE(CheckLimits({"head", {{bytes, 6, nullptr}}}, limits).ok());
  EXPECT_FALSE(CheckLimits({"heads", {}}, limits).ok());
  EXPECT_FALSE(CheckLimits({"head", {{bytes, 7, nullptr}}}, limits).ok());
  EXPECT_FALSE(CheckLimits({"", {{}, {}}}, limits).ok());
}

}  // namespace
}  // namespace disttrain::transport
