#include "analyzer/ingest/stable_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/flight_reader.h"
#include "tests/unit/testing/flight_image.h"

namespace ringscope::ingest {
namespace {

using testing::FlightImage;

// A communicator with three operations, an edge; the second operation's row is given away later.
FlightImage Image() {
  FlightImage image;
  image.AddComm(0, 0xabc, 0, 4);
  for (int i = 0; i < 3; ++i) image.AddAllReduce(0, true);
  image.edge(5).stamp = uint64_t{1} | uint64_t{1} << 63;
  return image;
}

uint64_t Operations(const std::string& bytes) {
  const auto file = ParseFlight(bytes, "f");
  EXPECT_TRUE(file.ok()) << file.status();
  return file->trace.communicators(0).operations_size();
}

TEST(StableRows, WhatStaysIsKept) {
  const std::string bytes = Image().Bytes();
  std::string image = bytes;
  EXPECT_EQ(DropChangingRows(bytes, bytes, &image), 0u);
  EXPECT_EQ(image, bytes);
}

TEST(StableRows, ARowThatChangedHandsBeforeOrAfterIsEmptied) {
  FlightImage later = Image();
  later.op(1).stamp += 256;
  const std::string old = Image().Bytes(), fresh = later.Bytes();
  EXPECT_EQ(Operations(old), 3u);
  std::string image = old;
  EXPECT_EQ(DropChangingRows(old, fresh, &image), 1u);
  EXPECT_EQ(Operations(image), 2u);
  image = fresh;
  EXPECT_EQ(DropChangingRows(old, fresh, &image), 1u);
  EXPECT_EQ(Operations(image), 2u);
}

TEST(StableRows, ProgressOfARowIsNoChangeOfHands) {
  FlightImage later = Image();
  later.op(1).kernel = uint64_t{1} << 32;
  std::string image = later.Bytes();
  EXPECT_EQ(DropChangingRows(Image().Bytes(), later.Bytes(), &image), 0u);
}

TEST(StableRows, CommunicatorsAndEdgesToo) {
  FlightImage later = Image();
  later.comm(0).stamp += 1;
  later.edge(5).stamp += 1;
  std::string image = Image().Bytes();
  EXPECT_EQ(DropChangingRows(Image().Bytes(), later.Bytes(), &image), 2u);
}

TEST(StableRows, CopiesOfOtherSizesAndWildTablesAreLeftAlone) {
  const std::string bytes = Image().Bytes();
  std::string image = bytes;
  EXPECT_EQ(DropChangingRows(bytes.substr(0, 8000), bytes, &image), 0u);
  FlightImage wild = Image();
  for (auto& table : wild.header().tables) {
    table.rows = 0xffffffff;
    table.offset = wild.Bytes().size() - 100;
  }
  std::string cut = wild.Bytes();
  EXPECT_EQ(DropChangingRows(cut, bytes, &cut), 0u);
}

}  // namespace
}  // namespace ringscope::ingest
