// From the text of GPU tools and step logs to findings: each mechanism where it fires and the nearest case where it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

Diagnosis Of(const Files& files) {
  model::Job job;
  for (const auto& [name, text] : files) EXPECT_TRUE(ingest::ReadTextBytes(name, text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  const Diagnosis d = Diagnose(job);
  for (const Finding& f : d.findings()) {
    EXPECT_FALSE(f.title().empty());
    EXPECT_FALSE(f.refuted_by().empty()) << f.title();
    EXPECT_FALSE(f.next().text().empty()) << f.title();
    // The first: others may come from finders that have no command to offer.
    if (&f == &d.findings(0)) {
      EXPECT_FALSE(f.next().command().empty()) << f.title();
    }
    EXPECT_GT(f.evidence_size(), 0) << f.title();
    for (const Evidence& e : f.evidence()) EXPECT_FALSE(e.source().empty()) << e.text();
  }
  return d;
}

// A copy: the diagnosis is often a temporary.
Finding First(const Diagnosis& d) {
  Finding none;
  none.mutable_who();
  return d.findings_size() == 0 ? none : d.findings(0);
}

std::string Words(const Finding& f) {
  std::string text = f.title();
  for (const Evidence& e : f.evidence()) text += "\n" + e.text();
  return text;
}

// Nothing of the hardware, whatever else is said.
bool NamesHardware(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::none || f.kind() == Kind::undetermined) continue;
    if (f.cause().id().starts_with("HW-") || f.cause().id().starts_with("FB-")) return true;
  }
  return false;
}

// `inactive`: GPU and link that are down. `links` a GPU.
std::string Nvlink(const std::string& product, int gpus, int links, std::vector<std::pair<int, int>> inactive,
                   const char* speed = "26.562") {
  std::string text;
  for (int g = 0; g < gpus; ++g) {
    text += "GPU " + std::to_string(g) + ": " + product + " (UUID: GPU-00000000-0000-0000-0000-00000000000" + std::to_string(g) +
            ")\n";
    for (int l = 0; l < links; ++l) {
      const bool down = std::find(inactive.begin(), inactive.end(), std::make_pair(g, l)) != inactive.end();
      text += "         Link " + std::to_string(l) + (down ? ": <inactive>\n" : ": " + std::string(speed) + " GB/s\n");
    }
  }
  return text;
}

// ---- lanes

TEST(NvlinkLanes, OneGpuWithLinksDown) {
  const Diagnosis d = Of({{"node7-nvlink.txt", Nvlink("NVIDIA A100-SXM4-80GB", 4, 12, {{2, 5}, {2, 9}}, "25")}});
  const Finding& f = First(d);
  EXPECT_EQ(f.kind(), Kind::degraded_plan);
  EXPECT_EQ(f.cause().id(), "HW-02");
  EXPECT_EQ(f.confidence(), Confidence::probable);
  ASSERT_EQ(f.who().links_size(), 2);
  EXPECT_EQ(f.who().links(0), "GPU 2 link 5");
  EXPECT_EQ(f.who().hosts(0), "node7");
  EXPECT_EQ(d.findings_size(), 1);
}

TEST(NvlinkLanes, ABenchmarkThatAgreesEstablishesIt) {
  const Diagnosis d = Of({{"nvlink.txt", Nvlink("Tesla V100-SXM2-32GB", 4, 6, {{1, 3}})},
                          {"note.txt", "busbw 71.4 GB/s on this node, 131.6 GB/s on its peers\n"}});
  EXPECT_EQ(First(d).confidence(), Confidence::established);
}

TEST(NvlinkLanes, AllUpSaysNothing) {
  EXPECT_EQ(Of({{"nvlink.txt", Nvlink("NVIDIA H100 80GB HBM3", 8, 18, {})}}).findings_size(), 0);
}

TEST(NvlinkLanes, CardsWithoutABridgeAreNoFault) {
  std::vector<std::pair<int, int>> all;
  for (int g = 0; g < 2; ++g) {
    for (int l = 0; l < 12; ++l) all.emplace_back(g, l);
  }
  const Diagnosis d = Of({{"health.txt", "| -> NVLINK system | Failure |\n| GPU 0's NvLink link 0 is currently down ... |\n"},
                          {"nvlink.txt", Nvlink("NVIDIA A100 80GB PCIe", 2, 12, all)}});
  EXPECT_EQ(First(d).kind(), Kind::none);
  EXPECT_THAT(Words(First(d)), ::testing::HasSubstr("no NVLink bridge"));
  EXPECT_FALSE(NamesHardware(d));
  // A bridge between two of four: the others have none.
  std::vector<std::pair<int, int>> two(all.begin(), all.end());
  EXPECT_FALSE(NamesHardware(Of({{"nvlink.txt", Nvlink("NVIDIA A100 80GB PCIe", 4, 12, two)}})));
}

TEST(NvlinkLanes, ABridgeThatMakesHalfContact) {
  const Diagnosis d = Of({{"nvlink.txt", Nvlink("NVIDIA RTX A6000", 2, 4, {{0, 1}, {0, 2}})}});
  EXPECT_EQ(First(d).kind(), Kind::degraded_plan);
}

TEST(NvlinkLanes, ProductsThatUseFewerLinksThanTheirChipHas) {
  std::vector<std::pair<int, int>> unused;
  for (int g = 0; g < 2; ++g) {
    for (int l = 12; l < 18; ++l) unused.emplace_back(g, l);
  }
  EXPECT_FALSE(NamesHardware(Of({{"nvlink.txt", Nvlink("NVIDIA H100 NVL", 2, 18, unused)}})));
  std::vector<std::pair<int, int>> h800;
  for (int g = 0; g < 8; ++g) {
    for (int l = 8; l < 18; ++l) h800.emplace_back(g, l);
  }
  EXPECT_FALSE(NamesHardware(Of({{"nvlink.txt", Nvlink("NVIDIA H800", 8, 18, h800)}})));
  // ... and one of them with a link less.
  h800.emplace_back(4, 3);
  EXPECT_EQ(First(Of({{"nvlink.txt", Nvlink("NVIDIA H800", 8, 18, h800)}})).who().gpus(0), "GPU 4");
}

TEST(NvlinkLanes, OneGpuOfAVirtualMachineIsNotAccused) {
  std::vector<std::pair<int, int>> all;
  for (int l = 0; l < 6; ++l) all.emplace_back(0, l);
  EXPECT_FALSE(NamesHardware(Of({{"nvlink.txt", Nvlink("Tesla V100-SXM2-16GB", 1, 6, all)}})));
}

TEST(NvlinkLanes, ALinkTrainedDown) {
  std::string text = Nvlink("NVIDIA H100 80GB HBM3", 4, 18, {});
  const std::string gpu2 = "GPU 2";
  const size_t at = text.find("Link 7: 26.562", text.find(gpu2));
  text.replace(at, 14, "Link 7: 13.281");
  const Finding& f = First(Of({{"nvlink.txt", text}}));
  EXPECT_EQ(f.cause().id(), "HW-02");
  EXPECT_EQ(f.who().links(0), "GPU 2 link 7");
}

TEST(NvlinkLanes, DcgmShowsThemToo) {
  const Finding f = First(Of({{"dcgm.txt", "GPUs:\n    gpuId 0:\n        U U U U\n    gpuId 1:\n        U D U U\n"}}));
  EXPECT_EQ(f.cause().id(), "HW-02");
  EXPECT_EQ(f.who().links(0), "GPU 1 link 1");
}

// ---- counters

std::string Counters(int recovery, int replay) {
  return "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
         "         Link 3: Replay Errors: " +
         std::to_string(replay) + "\n         Link 3: Recovery Errors: " + std::to_string(recovery) +
         "\n         Link 4: Replay Errors: 0\n         Link 4: Recovery Errors: 0\n";
}

TEST(NvlinkCounters, GrowthIsAFaultAndOldCountsAreNot) {
  const Diagnosis grown = Of({{"nvlink-before.txt", Counters(2, 0)}, {"nvlink-after.txt", Counters(5, 0)}});
  EXPECT_EQ(First(grown).cause().id(), "HW-03");
  EXPECT_EQ(First(grown).confidence(), Confidence::probable);
  EXPECT_EQ(First(grown).who().links(0), "GPU 0 link 3");
  EXPECT_THAT(First(grown).title(), ::testing::StartsWith("GPU 0 link 3: NVLink recoveries grew from 2 to 5"));
  // Alphabetic order is not the order of time.
  const Diagnosis swapped = Of({{"nvlink-after.txt", Counters(5, 0)}, {"nvlink-before.txt", Counters(2, 0)}});
  EXPECT_EQ(First(swapped).cause().id(), "HW-03");
  EXPECT_FALSE(NamesHardware(Of({{"nvlink-before.txt", Counters(5, 0)}, {"nvlink-after.txt", Counters(5, 0)}})));
  const Diagnosis old = Of({{"nvlink.txt", Counters(505, 0)}});
  EXPECT_EQ(First(old).confidence(), Confidence::possible);
  EXPECT_FALSE(NamesHardware(Of({{"nvlink.txt", Counters(0, 12)}})));
}

// ---- slow ranks and clocks

constexpr char kSteps[] =
    "step 10 rank 0..15 fwd+bwd 0.41-0.43 s, reduce wait 0.02 s\n"
    "step 60 rank 9 fwd+bwd 1.92 s, reduce wait 0.01 s ; other ranks fwd+bwd 0.42 s, reduce wait 1.52 s\n"
    "step 90 rank 9 fwd+bwd 2.05 s, reduce wait 0.01 s ; other ranks fwd+bwd 0.42 s, reduce wait 1.65 s\n";
constexpr char kHot[] =
    "    Clocks Event Reasons\n        HW Slowdown                       : Active\n"
    "            HW Thermal Slowdown           : Active\n    GPU Current Temp                      : 90 C\n";

TEST(Stragglers, ARankAndItsHotGpu) {
  const Diagnosis d = Of({{"steps.log", kSteps}, {"map.txt", "rank 9 = node2 GPU 1\n"}, {"nvidia-smi-node2-gpu1.txt", kHot}});
  const Finding& f = First(d);
  EXPECT_EQ(f.kind(), Kind::gpu_slow);
  EXPECT_EQ(f.cause().id(), "HW-08");
  EXPECT_EQ(f.confidence(), Confidence::established);
  ASSERT_EQ(f.who().ranks_size(), 1);
  EXPECT_EQ(f.who().ranks(0), 9);
  EXPECT_THAT(Words(f), ::testing::HasSubstr("HW Thermal Slowdown"));
}

TEST(Stragglers, WithoutAWitnessNoHardware) {
  const Diagnosis d = Of({{"steps.log", kSteps}});
  EXPECT_EQ(First(d).kind(), Kind::rank_slow);
  EXPECT_EQ(First(d).cause().id(), "not established");
  EXPECT_EQ(First(d).who().ranks(0), 9);
  EXPECT_FALSE(NamesHardware(d));
  // Another rank's GPU is hot: not this one's reason.
  const Diagnosis other = Of({{"steps.log", kSteps}, {"map.txt", "rank 4 = node2 GPU 1\n"}, {"nvidia-smi-node2-gpu1.txt", kHot}});
  for (const Finding& f : other.findings()) {
    if (f.who().ranks_size() > 0 && f.who().ranks(0) == 9) {
      EXPECT_EQ(f.kind(), Kind::rank_slow);
    }
  }
}

TEST(Stragglers, OneLateStepIsNone) {
  const Diagnosis d =
      Of({{"steps.log",
           "step 1 rank 3 fwd 0.41 s ; other ranks fwd 0.40 s\nstep 2 rank 3 fwd 1.41 s ; other ranks fwd 0.40 s\n"
           "step 3 rank 3 fwd 0.40 s ; other ranks fwd 0.40 s\nstep 4 rank 3 fwd 0.41 s ; other ranks fwd 0.40 s\n"}});
  EXPECT_EQ(d.findings_size(), 0);
}

TEST(Stragglers, WhoWaitsLongestIsNotAccused) {
  std::string table = "step rank fwd_s wait_s\n";
  for (int step = 1; step <= 5; ++step) {
    for (int rank = 0; rank < 4; ++rank) {
      table += std::to_string(step) + " " + std::to_string(rank) + (rank == 2 ? " 0.90 0.01\n" : " 0.40 0.51\n");
    }
  }
  const Finding f = First(Of({{"steps.txt", table}}));
  ASSERT_EQ(f.who().ranks_size(), 1);
  EXPECT_EQ(f.who().ranks(0), 2);
}

TEST(Stragglers, SlowStepsThatWaitForInput) {
  const Diagnosis d = Of({{"steps.log",
                           "step 812 total 0.51s input 0.02s allreduce 0.11s\nstep 813 total 0.52s input 0.02s allreduce 0.11s\n"
                           "step 814 total 2.97s input 2.46s allreduce 0.12s   (worker 5 input 2.46s, others 0.02s + wait)\n"
                           "step 815 total 0.51s input 0.02s allreduce 0.11s\n"}});
  const Finding& f = First(d);
  EXPECT_EQ(f.kind(), Kind::rank_slow);
  EXPECT_EQ(f.cause().id(), "UC-06");
  ASSERT_EQ(f.who().ranks_size(), 1);
  EXPECT_EQ(f.who().ranks(0), 5);
  EXPECT_FALSE(NamesHardware(d));
  const Finding job = First(Of(
      {{"train.log",
        "Epoch: [1][20/500]\tTime 0.200 (0.186)\tData 0.045 (0.040)\nEpoch: [1][40/500]\tTime 0.210 (0.186)\tData 0.045 (0.040)\n"
        "Epoch: [1][60/500]\tTime 0.205 (0.186)\tData 0.045 (0.040)\nEpoch: [1][80/500]\tTime 8.719 (0.361)\tData 8.597 "
        "(0.230)\n"}}));
  EXPECT_EQ(job.cause().id(), "UC-06");
  EXPECT_EQ(job.who().ranks_size(), 0);
}

TEST(Throttle, OfOneGpuAmongSiblings) {
  const Diagnosis d = Of({{"q.csv",
                           "index, clocks.sm [MHz], utilization.gpu [%], clocks_event_reasons.active\n0, 1980 MHz, 100 %, "
                           "0x0\n1, 1965 MHz, 99 %, 0x4\n"
                           "2, 345 MHz, 100 %, 0x48\n3, 1980 MHz, 100 %, 0x0\n"}});
  EXPECT_EQ(First(d).kind(), Kind::gpu_slow);
  EXPECT_EQ(First(d).confidence(), Confidence::probable);
  EXPECT_EQ(First(d).who().gpus(0), "GPU 2");
  EXPECT_EQ(d.findings_size(), 1);  // the power cap of GPU 1 is normal under load
}

TEST(Throttle, NamesTheReasonOfAColumn) {
  const Finding f = First(Of({{"q.csv",
                               "index, clocks.sm [MHz], clocks_throttle_reasons.hw_thermal_slowdown\n0, 1755 MHz, Not Active\n"
                               "1, 1755 MHz, Not Active\n2, 1755 MHz, Not Active\n3, 690 MHz, Active\n"}}));
  EXPECT_THAT(f.title(), ::testing::HasSubstr("HW Thermal Slowdown"));
  EXPECT_EQ(f.who().gpus(0), "GPU 3");
}

TEST(Throttle, GpusAtRestAreNotSlow) {
  EXPECT_FALSE(
      NamesHardware(Of({{"q.csv",
                         "index, clocks.sm [MHz], utilization.gpu [%], clocks_event_reasons.active\n0, 1980 MHz, 100 %, 0x0\n"
                         "1, 1980 MHz, 99 %, 0x0\n2, 210 MHz, 0 %, 0x1\n3, 1980 MHz, 100 %, 0x0\n"}})));
}

// ---- lost, fabric, health, nodes

TEST(Contained, ADomainAndNotTheFirstWhoSaysSo) {
  const std::string error = "CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error\n";
  const Diagnosis d = Of({{"all.log", "17:34:36.549 task=9 " + error + "17:34:36.871 task=8 " + error + "17:34:36.902 task=11 " + error},
                          {"notes.txt", "tasks 8-15 share one NVLink domain (rack 3)\n"},
                          {"nvlink.txt", "# diff of nvidia-smi nvlink -e before/after\n(no difference)\n"}});
  const Finding& f = First(d);
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.confidence(), Confidence::possible);
  EXPECT_EQ(f.cause().id(), "HW-04");
  EXPECT_EQ(f.who().ranks_size(), 0);
  EXPECT_THAT(Words(f), ::testing::HasSubstr("rack 3"));
  EXPECT_THAT(Words(f), ::testing::HasSubstr("no difference"));
}

TEST(GpuLost, HandleAndTable) {
  const Finding f = First(Of({{"smi.txt", "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n"}}));
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.cause().id(), "HW-05");
  EXPECT_THAT(Words(f), ::testing::HasSubstr("41:00.0"));
  const Diagnosis none = Of({{"smi.txt", "No devices were found\n"}});
  EXPECT_EQ(First(none).kind(), Kind::undetermined);
}

TEST(Fabric, StateStatusAndNothing) {
  const auto fabric = [](const char* state, const char* status) {
    return std::string("    Fabric\n        State                             : ") + state +
           "\n        Status                            : " + status + "\n        CliqueId                          : 0\n";
  };
  const Diagnosis progress = Of({{"q.txt", fabric("In Progress", "N/A")}});
  EXPECT_EQ(First(progress).cause().id(), "FB-01");
  EXPECT_EQ(First(progress).kind(), Kind::error_reported);
  const Diagnosis failed = Of({{"q.txt", fabric("Completed", "Insufficient Resources")}});
  EXPECT_EQ(First(failed).cause().id(), "FB-02");
  // Zero ids beside Success are what HGX boards show.
  EXPECT_EQ(Of({{"q.txt", fabric("Completed", "Success")}}).findings_size(), 0);
  EXPECT_EQ(Of({{"q.txt", fabric("N/A", "N/A")}}).findings_size(), 0);
  const Diagnosis both =
      Of({{"q.txt", fabric("In Progress", "N/A")},
          {"job.log", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n"}});
  EXPECT_EQ(First(both).confidence(), Confidence::established);
}

TEST(Health, MemoryAndPcie) {
  const auto csv = [](const std::string& row) {
    return "index, pstate, pcie.link.width.current, pcie.link.width.max, pcie.link.gen.current, pcie.link.gen.max, "
           "ecc.errors.uncorrected.volatile.total\n0, P0, 16, 16, 4, 4, 0\n" +
           row;
  };
  EXPECT_EQ(Of({{"q.csv", csv("1, P0, 16, 16, 4, 4, 0\n")}}).findings_size(), 0);
  EXPECT_EQ(First(Of({{"q.csv", csv("1, P0, 8, 16, 4, 4, 0\n")}})).cause().id(), "HW-09");
  EXPECT_EQ(First(Of({{"q.csv", csv("1, P8, 16, 16, 1, 4, 0\n")}})).kind(), Kind::none);  // at rest
  EXPECT_EQ(First(Of({{"q.csv", csv("1, P0, 16, 16, 1, 4, 0\n")}})).cause().id(), "HW-09");
  EXPECT_EQ(First(Of({{"q.csv", csv("1, P0, 16, 16, 4, 4, 3\n")}})).cause().id(), "HW-06");
}

TEST(SlowNode, InEverySlowTrialAndNoFastOne) {
  const std::string head = "trial nodes busbw_gbps\n";
  const Finding f = First(Of({{"bench.txt", head + "1 n1,n2,n9 40.1\n2 n1,n2,n3 45.0\n3 n3,n4,n9 40.2\n4 n3,n4,n5 45.1\n"}}));
  EXPECT_EQ(f.kind(), Kind::rank_slow);
  ASSERT_EQ(f.who().hosts_size(), 1);
  EXPECT_EQ(f.who().hosts(0), "n9");
  // A fast trial with it clears it.
  EXPECT_EQ(Of({{"bench.txt", head + "1 n1,n9 40.1\n2 n1,n2 45.0\n3 n3,n9 45.2\n4 n3,n4 45.1\n"}}).findings_size(), 0);
  // Differences no larger than among equals are noise.
  EXPECT_EQ(Of({{"bench.txt", head + "1 n1,n9 44.1\n2 n1,n2 45.9\n3 n3,n9 43.0\n4 n3,n4 44.6\n"}}).findings_size(), 0);
}

std::string Link(const std::string& bus, const std::string& state) {
  return bus + "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\t\tLnkSta:\t" + state + "\n";
}

TEST(PcieLink, BelowItsSpeedUnderLoadWhileOthersAreNot) {
  const std::string links = Link("c3:00.0", "Speed 32GT/s, Width x16") + Link("d3:00.0", "Speed 32GT/s, Width x16") +
                            Link("e3:00.0", "Speed 5GT/s (downgraded), Width x16");
  const std::string query = "$ nvidia-smi --query-gpu=pci.bus_id,utilization.gpu --format=csv,noheader\n";
  const Finding busy = First(Of({{"link.txt", links + query + "00000000:E3:00.0, 100 %\n"}}));
  EXPECT_EQ(busy.kind(), Kind::degraded_plan);
  EXPECT_EQ(busy.cause().id(), "HW-09");
  EXPECT_EQ(busy.confidence(), Confidence::probable);
  EXPECT_THAT(busy.ShortDebugString(), ::testing::HasSubstr("5GT/s"));
  // At rest the link saves power.
  EXPECT_EQ(Of({{"link.txt", links + query + "00000000:E3:00.0, 0 %\n"}}).findings_size(), 0);
  // Nobody looked at the load: a hint.
  EXPECT_EQ(First(Of({{"link.txt", links}})).confidence(), Confidence::possible);
  // Width is not lowered at rest; a board whose slots are all narrow is built so.
  const std::string narrow = "Speed 32GT/s, Width x8 (downgraded)", full = "Speed 32GT/s, Width x16";
  EXPECT_EQ(First(Of({{"l", Link("c3:00.0", full) + Link("d3:00.0", full) + Link("e3:00.0", narrow)}})).confidence(), Confidence::probable);
  EXPECT_EQ(Of({{"l", Link("c3:00.0", narrow) + Link("d3:00.0", narrow) + Link("e3:00.0", narrow)}}).findings_size(), 0);
}

}  // namespace
}  // namespace ringscope::reasoning
