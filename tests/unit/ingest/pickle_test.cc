#include "analyzer/ingest/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ringscope::ingest {
namespace {

using ::testing::HasSubstr;
using Id = ValueTree::Id;
using Kind = ValueTree::Kind;

std::string B(std::initializer_list<int> bytes) {
  std::string out;
  for (const int byte : bytes) out += static_cast<char>(byte);
  return out;
}

// Text of a value, to a depth and a length that no test needs more of.
std::string Show(const ValueTree& tree, Id id, int depth = 0) {
  if (depth > 6) return "...";
  std::string out;
  switch (tree.kind(id)) {
    case Kind::kNull:
      return "None";
    case Kind::kBool:
      return *tree.Number(id) != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(*tree.Number(id));
    case Kind::kFloat:
      return std::to_string(tree.FloatOf(id));
    case Kind::kString:
      return "'" + std::string(tree.Str(id)) + "'";
    case Kind::kBytes:
      return "b'" + std::string(tree.Str(id)) + "'";
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
      break;
  }
  const bool list = tree.kind(id) == Kind::kList, dict = tree.is_dict(id);
  const auto children = tree.Children(id);
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) out += dict && i % 2 == 1 ? ": " : ", ";
    out += Show(tree, children[i], depth + 1);
  }
  return (dict ? "{" : list ? "[" : "(") + out + (dict ? "}" : list ? "]" : ")");
}

std::string Read(const std::string& bytes) {
  ValueTree tree;
  const absl::Status status = ReadPickle(bytes, &tree);
  return status.ok() ? Show(tree, tree.root()) : std::string(status.message());
}

// What Python's pickle.dumps() makes of {"a": [1, -2, 70000, 2**40, True, None, 1.5, "x", b"y", (1,), (1, 2), (1, 2, 3), ()]},
// and of the same list twice.
TEST(Pickle, EveryProtocolSaysTheSame) {
  const std::string expected = "{'a': [1, -2, 70000, 1099511627776, True, None, 1.500000, 'x', (1), (1, 2), (1, 2, 3), ()]}";
  const std::string zero =
      "(dp0\nVa\np1\n(lp2\nI1\naI-2\naI70000\naL1099511627776L\naI01\naNaF1.5\naVx\np3\na(I1\ntp4\na(I1\nI2\ntp5\na("
      "I1\nI2\nI3\ntp6\na(tas.";
  EXPECT_EQ(Read(zero), expected);
  const std::string body = B({'K', 1,   'J',  0xfe, 0xff, 0xff, 0xff, 'J', 0x70, 0x11, 1, 0,   0x8a, 6,   0, 0,    0,  0,
                              0,   1,   0x88, 'N',  'G',  0x3f, 0xf8, 0,   0,    0,    0, 0,   0,    'X', 1, 0,    0,  0,
                              'x', 'K', 1,    0x85, 'K',  1,    'K',  2,   0x86, 'K',  1, 'K', 2,    'K', 3, 0x87, ')'});
  EXPECT_EQ(Read(B({0x80, 2, '}', 'q', 0, 'X', 1, 0, 0, 0, 'a', ']', 'q', 1, '('}) + body + "es."), expected);
  EXPECT_EQ(Read(B({0x80, 4, 0x95, 5, 0, 0, 0, 0, 0, 0, 0, '}', 0x94, 0x8c, 1, 'a', ']', 0x94, '('}) + body + "es."), expected);
}

TEST(Pickle, EveryInstructionOfPlainData) {
  EXPECT_EQ(Read("I00\n."), "False");
  EXPECT_EQ(Read("I01\n."), "True");
  EXPECT_EQ(Read("L5\n."), "5");  // without the L
  EXPECT_EQ(Read("S'a\\n\\x41\\\\b'\n."), "'a\nA\\b'");
  EXPECT_EQ(Read("S\"it's\"\n."), "'it's'");
  EXPECT_EQ(Read("Vgr\\u00fcn \\U0001f600\n."), "'gr\xc3\xbcn \xf0\x9f\x98\x80'");
  EXPECT_EQ(Read(B({'U', 2, 'h', 'i', '.'})), "'hi'");
  EXPECT_EQ(Read(B({'T', 2, 0, 0, 0, 'h', 'i', '.'})), "'hi'");
  EXPECT_EQ(Read(B({'C', 2, 'h', 'i', '.'})), "b'hi'");
  EXPECT_EQ(Read(B({'B', 2, 0, 0, 0, 'h', 'i', '.'})), "b'hi'");
  EXPECT_EQ(Read(B({0x8e, 2, 0, 0, 0, 0, 0, 0, 0, 'h', 'i', '.'})), "b'hi'");
  EXPECT_EQ(Read(B({0x96, 2, 0, 0, 0, 0, 0, 0, 0, 'h', 'i', '.'})), "b'hi'");
  EXPECT_EQ(Read(B({0x8d, 2, 0, 0, 0, 0, 0, 0, 0, 'h', 'i', '.'})), "'hi'");
  EXPECT_EQ(Read(B({'M', 1, 2, '.'})), "513");
  EXPECT_EQ(Read(B({0x8a, 0, '.'})), "0");
  EXPECT_EQ(Read(B({0x8a, 1, 0xff, '.'})), "-1");
  EXPECT_EQ(Read(B({0x8b, 2, 0, 0, 0, 0, 0x80, '.'})), "-32768");
  EXPECT_EQ(Read(B({0x89, '.'})), "False");
  EXPECT_EQ(Read(B({']', 'K', 1, 'a', '.'})), "[1]");
  EXPECT_EQ(Read(B({'}', 'K', 1, 'K', 2, 's', '.'})), "{1: 2}");
  EXPECT_EQ(Read(B({'}', '(', 'K', 1, 'K', 2, 'K', 3, 'K', 4, 'u', '.'})), "{1: 2, 3: 4}");
  EXPECT_EQ(Read(B({'(', 'K', 1, 'K', 2, 'd', '.'})), "{1: 2}");
  EXPECT_EQ(Read(B({'(', 'K', 1, 'l', '.'})), "[1]");
  EXPECT_EQ(Read(B({'(', 'K', 1, 't', '.'})), "(1)");
  EXPECT_EQ(Read(B({0x8f, '(', 'K', 7, 0x90, '.'})), "[7]");
  EXPECT_EQ(Read(B({'(', 'K', 7, 0x91, '.'})), "[7]");
  EXPECT_EQ(Read(B({'K', 1, 'K', 2, '0', '.'})), "1");
  EXPECT_EQ(Read(B({'K', 1, '(', 'K', 2, 'K', 3, '1', '.'})), "1");
  EXPECT_EQ(Read(B({'K', 5, '2', 0x86, '.'})), "(5, 5)");
  EXPECT_EQ(Read(B({'K', 5, 'q', 0, '0', 'h', 0, '.'})), "5");
  EXPECT_EQ(Read(B({'K', 5, 'r', 9, 0, 1, 0, '0', 'j', 9, 0, 1, 0, '.'})), "5");
  EXPECT_EQ(Read(B({'K', 5, 0x94, '0', 'h', 0, '.'})), "5");
  EXPECT_EQ(Read("I5\np77\n0g77\n."), "5");
}

TEST(Pickle, NumbersThatDoNotFitBecomeTheNearest) {
  const std::string most = "9223372036854775807", least = "-9223372036854775808";
  EXPECT_EQ(Read("L123456789012345678901234567890L\n."), most);
  EXPECT_EQ(Read("I-123456789012345678901234567890\n."), least);
  EXPECT_EQ(Read(B({0x8a, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, '.'})), most);
  EXPECT_EQ(Read(B({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, '.'})), least);
  EXPECT_EQ(Read(B({0x8a, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, '.'})), most);  // exactly
}

TEST(Pickle, WhatRunsCodeIsRefusedByNameAndByte) {
  // cos.system, as an attacker writes it.
  const std::string attack = "cos\nsystem\n(S'touch /tmp/owned'\ntR.";
  EXPECT_THAT(Read(attack), HasSubstr("byte 0: the instruction GLOBAL would run code"));
  const std::pair<int, const char*> ops[] = {
      {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
      {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {0x82, "EXT1"},        {0x83, "EXT2"},
      {0x84, "EXT4"},  {'P', "PERSID"},        {'Q', "BINPERSID"},  {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"}};
  for (const auto& [op, name] : ops) {
    const std::string message = Read(B({0x80, 5, 'K', 1, 'K', 2, op, 'x', '\n', 'y', '\n', '.'}));
    EXPECT_THAT(message, HasSubstr(std::string("byte 6: the instruction ") + name + " ")) << op;
    ValueTree tree;
    EXPECT_TRUE(absl::IsPermissionDenied(ReadPickle(B({op, '\n', '\n', '.'}), &tree))) << name;
  }
}

TEST(Pickle, WrongUseOfTheStack) {
  for (const std::string& bytes : {std::string("."),
                                   B({'0', '.'}),
                                   B({'1', '.'}),
                                   B({'2', '.'}),
                                   B({'a', '.'}),
                                   B({'K', 1, 'a', '.'}),
                                   B({'K', 1, 'K', 2, 'a', '.'}),
                                   B({']', 'K', 1, 'K', 2, 's', '.'}),
                                   B({'e', '.'}),
                                   B({'(', 'e', '.'}),
                                   B({'K', 1, '(', 'e', '.'}),
                                   B({'u', '.'}),
                                   B({'}', '(', 'K', 1, 'u', '.'}),
                                   B({'(', 'K', 1, 'd', '.'}),
                                   B({'d', '.'}),
                                   B({'t', '.'}),
                                   B({0x85, '.'}),
                                   B({'h', 3, '.'}),
                                   B({'q', 3, '.'}),
                                   B({'K', 1, '(', 0x85, '.'}),
                                   B({'K', 1, '(', '.'}),
                                   B({']', '(', '(', 'K', 1, 'e', 'e', '.'}),
                                   B({'g', 'x', '\n', '.'}),
                                   B({'\xff', '.'}),
                                   B({0x80, 6, '.'}),
                                   B({0x95, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '.'}),
                                   std::string("I12x\n."),
                                   std::string("F.x\n."),
                                   std::string("S'a\n."),
                                   std::string("Sa\n."),
                                   std::string("L-\n."),
                                   B({'X', 0xff, 0xff, 0xff, 0xff, 'a', '.'}),
                                   B({0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a', '.'}),
                                   B({0x8b, 0xff, 0xff, 0xff, 0xff, '.'}),
                                   B({')', '(', 'K', 1, 'e', '.'})}) {
    ValueTree tree;
    EXPECT_FALSE(ReadPickle(bytes, &tree).ok()) << ::testing::PrintToString(bytes);
  }
}

// A list that contains itself, and one that is referred to a million times: the graph stays as small as the bytes.
TEST(Pickle, SelfReferencesAndBombsStayAsSmallAsTheirBytes) {
  ValueTree tree;
  const std::string own = B({']', 'q', 0, 'h', 0, 'a', '.'});
  ASSERT_TRUE(ReadPickle(own, &tree).ok());
  EXPECT_EQ(tree.Children(tree.root())[0], tree.root());
  std::string bomb = "]";
  for (int i = 0; i < 100; ++i) {  // each list holds the one before ten times: 10^100 leaves
    bomb += B({'q', i, ']', '('});
    for (int k = 0; k < 10; ++k) bomb += B({'h', i});
    bomb += 'e';
  }
  ASSERT_TRUE(ReadPickle(bomb + '.', &tree).ok());
  EXPECT_LT(tree.size(), 400u);
  // A million levels deep, and a million marks: no recursion anywhere.
  std::string deep(1'000'000, ']');
  ASSERT_FALSE(ReadPickle(deep + '.', &tree).ok());  // more containers than such a size explains
  std::string nested;
  for (int i = 0; i < 300'000; ++i) nested += B({']', 'q', 0, 'N', '0'});
  nested += std::string(299'999, 'a');
  EXPECT_TRUE(ReadPickle(nested + '.', &tree).ok());
  EXPECT_FALSE(ReadPickle(std::string(1'000'000, '(') + '.', &tree).ok());
  std::string grown = B({']'});
  for (int i = 0; i < 200'000; ++i) grown += B({'K', i % 256, 'a'});  // one at a time
  ASSERT_TRUE(ReadPickle(grown + '.', &tree).ok());
  EXPECT_EQ(tree.Children(tree.root()).size(), 200'000u);
}

TEST(Pickle, CutAtEveryByteTellsWhatCameBefore) {
  const std::string whole = B({0x80, 2, '}', 'q', 0,   '(', 'X', 1,   0,   0,   0,   'v', 'X', 1,   0, 0,   0,   '2', 'X',
                               1,    0, 0,   0,   'e', ']', 'q', 1,   '(', '}', 'q', 2,   '(', 'X', 1, 0,   0,   0,   'n',
                               'K',  1, 'u', '}', 'q', 3,   '(', 'X', 1,   0,   0,   0,   'n', 'K', 2, 'u', 'e', 'u', '.'});
  ASSERT_EQ(Read(whole), "{'v': '2', 'e': [{'n': 1}, {'n': 2}]}");
  std::string last;
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string bytes = whole.substr(0, n);  // its own allocation: reading behind it would be noticed
    ValueTree tree;
    const absl::Status status = ReadPickle(bytes, &tree);
    EXPECT_FALSE(status.ok()) << n;
    EXPECT_THAT(std::string(status.message()), HasSubstr("byte ")) << n;
    last = Show(tree, tree.root());
  }
  EXPECT_EQ(last, "{'v': '2', 'e': [{'n': 1}, {'n': 2}]}");
  ValueTree tree;
  const std::string cut = whole.substr(0, whole.size() - 10);
  EXPECT_FALSE(ReadPickle(cut, &tree).ok());
  EXPECT_EQ(Show(tree, tree.root()), "{'v': '2', 'e': [{'n': 1}, {}]}");
}

TEST(Pickle, NoiseNeitherCrashesNorGrows) {
  std::mt19937_64 random(7);
  ValueTree tree;
  const std::string ops = "(.01 2FIJKLMNSTUVXaehjgldpqrstu])}G\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8f\x90\x91\x94\x95";
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (size_t n = random() % 60; n > 0; --n)
      bytes += random() % 3 == 0 ? static_cast<char>(random() % 8) : ops[random() % ops.size()];
    (void)ReadPickle(bytes, &tree);
    EXPECT_LE(tree.size(), bytes.size() + 8);
    (void)Show(tree, tree.root());
  }
}

TEST(Pickle, LooksLike) {
  EXPECT_TRUE(LooksLikePickle(B({0x80, 2, '}'})));
  EXPECT_TRUE(LooksLikePickle(B({0x80, 5, 0x95})));
  EXPECT_TRUE(LooksLikePickle("(dp0\n"));
  EXPECT_TRUE(LooksLikePickle(B({'}', 'q', 0})));
  EXPECT_FALSE(LooksLikePickle(B({0x80, 9})));
  EXPECT_FALSE(LooksLikePickle("{\"entries\": []}"));
  EXPECT_FALSE(LooksLikePickle(""));
  EXPECT_FALSE(LooksLikePickle("(gdb) bt"));
}

}  // namespace
}  // namespace ringscope::ingest
