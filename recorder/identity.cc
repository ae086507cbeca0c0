#include "recorder/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/sys.h"

extern char** environ;

namespace ringscope::recorder {
namespace {

// First of the variables that is set to something usable. The lists go from the one a job sets
// itself to the launcher's.
const char* FirstSet(const char* const* names) {
  for (; *names; ++names) {
    const char* value = getenv(*names);
    if (value && value[0]) return value;
  }
  return nullptr;
}

uint32_t FirstNumber(const char* const* names) {
  for (; *names; ++names) {
    const char* value = getenv(*names);
    uint64_t number;
    if (!value) continue;
    const char* end = ParseUint(value, &number);
    if (end && *end == 0 && number < kNoNumber) return static_cast<uint32_t>(number);
  }
  return kNoNumber;
}

constexpr const char* kRankNames[] = {"RANK",
                                      "OMPI_COMM_WORLD_RANK",
                                      "PMIX_RANK",
                                      "PMI_RANK",
                                      "MV2_COMM_WORLD_RANK",
                                      "JSM_NAMESPACE_RANK",
                                      "SLURM_PROCID",
                                      nullptr};
constexpr const char* kLocalRankNames[] = {"LOCAL_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "MPI_LOCALRANKID",
                                           "PMI_LOCAL_RANK",
                                           "MV2_COMM_WORLD_LOCAL_RANK",
                                           "JSM_NAMESPACE_LOCAL_RANK",
                                           "SLURM_LOCALID",
                                           nullptr};
constexpr const char* kWorldNames[] = {
    "WORLD_SIZE",         "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE", "SLURM_NTASKS",         nullptr};
constexpr const char* kJobNames[] = {
    "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "LSB_JOBID", "PBS_JOBID",
    "COBALT_JOBID", "FLUX_JOB_ID",         "JOB_ID",    "OMPI_MCA_ess_base_jobid",
    nullptr};
constexpr const char* kRestartNames[] = {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT",
                                         nullptr};

// Variables worth keeping, by prefix. Everything else of the environment is nobody's business.
constexpr const char* kKeptPrefixes[] = {"NCCL_",
                                         "RINGSCOPE",
                                         "TORCHELASTIC_",
                                         "SLURM_JOB",
                                         "SLURM_PROCID",
                                         "SLURM_LOCALID",
                                         "SLURM_NODEID",
                                         "SLURM_NTASKS",
                                         "SLURM_NNODES",
                                         "SLURM_STEP",
                                         "SLURM_RESTART",
                                         "SLURM_CLUSTER",
                                         "OMPI_COMM_WORLD_",
                                         "PMI_",
                                         "PMIX_RANK",
                                         "MV2_COMM_WORLD_",
                                         "JSM_NAMESPACE_",
                                         "MPI_LOCAL",
                                         "LSB_JOBID",
                                         "PBS_JOBID",
                                         "FLUX_JOB_ID",
                                         "JOB_ID=",
                                         "COBALT_JOBID=",
                                         "RANK=",
                                         "LOCAL_RANK=",
                                         "WORLD_SIZE=",
                                         "LOCAL_WORLD_SIZE=",
                                         "GROUP_RANK=",
                                         "ROLE_RANK=",
                                         "GROUP_WORLD_SIZE=",
                                         "MASTER_ADDR=",
                                         "MASTER_PORT=",
                                         "CUDA_VISIBLE_DEVICES=",
                                         "CUDA_DEVICE_ORDER=",
                                         "CUDA_DEVICE_MAX_CONNECTIONS=",
                                         "CUDA_LAUNCH_BLOCKING=",
                                         "NVIDIA_VISIBLE_DEVICES=",
                                         "TORCH_NCCL_",
                                         "TORCH_DISTRIBUTED_DEBUG=",
                                         "FI_PROVIDER=",
                                         "FI_EFA_",
                                         "UCX_TLS=",
                                         "UCX_NET_DEVICES="};

void AddKey(Text& out, const char* key) { out.Add(key).AddChar('='); }

// Appends one complete "key=value\0" or nothing at all.
class Block {
 public:
  Block(char* block, size_t capacity) : block_(block), capacity_(capacity) {
    memset(block, 0, capacity);
  }
  void Put(const Text& entry) {
    const size_t size = entry.size() + 1;
    if (used_ + size + kReserved > capacity_) {
      if (!cut_ && used_ + kReserved <= capacity_) {
        memcpy(block_ + used_, "cut=1", 6);
        used_ += 6;
      }
      cut_ = true;
      return;
    }
    memcpy(block_ + used_, entry.c_str(), size);
    used_ += size;
  }
  void PutNumber(const char* key, uint32_t number) {
    if (number == kNoNumber) return;
    TextBuffer<64> entry;
    AddKey(entry, key);
    Put(entry.AddUint(number));
  }
  void PutText(const char* key, const char* value) {
    if (!value[0]) return;
    TextBuffer<2048> entry;
    AddKey(entry, key);
    Put(entry.Add(value));
  }

 private:
  static constexpr size_t kReserved = 8;  // for "cut=1\0" and the end
  char* block_;
  size_t capacity_;
  size_t used_ = 0;
  bool cut_ = false;
};

// The library's file, as the loader mapped it.
void PutNcclPath(Block& block) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[4096];
  size_t held = 0;
  for (;;) {
    const ssize_t n = read(fd, buffer + held, sizeof(buffer) - 1 - held);
    if (n <= 0) break;
    held += static_cast<size_t>(n);
    buffer[held] = 0;
    char* line = buffer;
    while (char* end = strchr(line, '\n')) {
      *end = 0;
      const char* path = strchr(line, '/');
      const char* name = path ? strrchr(path, '/') + 1 : nullptr;
      // libnccl.so.2, libnccl.so.2.28.9; not libnccl-net.so, libnccl-profiler-ringscope.so.
      if (name && StartsWith(name, "libnccl.so")) {
        block.PutText("nccl", path);
        close(fd);
        return;
      }
      line = end + 1;
    }
    held = strlen(line);
    memmove(buffer, line, held + 1);
    if (held == sizeof(buffer) - 1) held = 0;  // a line longer than the buffer: not ours
  }
  close(fd);
}

// What the NVIDIA driver says in procfs about one device: "Model: ...", "GPU UUID: ...", "Bus
// Location: ...".
bool LineValue(const char* text, const char* key, char* value, size_t capacity) {
  const char* at = strstr(text, key);
  value[0] = 0;
  if (!at) return false;
  at += strlen(key);
  while (*at == ' ' || *at == '\t' || *at == ':') ++at;
  const char* end = at;
  while (*end && *end != '\n') ++end;
  while (end > at && (end[-1] == ' ' || end[-1] == '\t')) --end;
  const size_t n =
      static_cast<size_t>(end - at) < capacity ? static_cast<size_t>(end - at) : capacity - 1;
  memcpy(value, at, n);
  value[n] = 0;
  return n > 0;
}

struct GpuList {
  Block* block;
  uint32_t count;
};
constexpr char kGpuFolder[] = "/proc/driver/nvidia/gpus";

bool PutGpu(void* ctx, const char* name) {
  GpuList* list = static_cast<GpuList*>(ctx);
  TextBuffer<256> path;
  path.Add(kGpuFolder).AddChar('/').Add(name).Add("/information");
  char info[2048];
  if (ReadSmallFile(path.c_str(), info, sizeof(info)) <= 0) return true;
  char bus[32], uuid[64], model[96];
  LineValue(info, "Bus Location", bus, sizeof(bus));
  LineValue(info, "GPU UUID", uuid, sizeof(uuid));
  LineValue(info, "Model", model, sizeof(model));
  for (char* p = bus; *p; ++p) *p = *p >= 'A' && *p <= 'Z' ? static_cast<char>(*p | 0x20) : *p;
  TextBuffer<256> entry;
  entry.Add("gpu.").AddUint(list->count++).Add("=");
  entry.Add(bus[0] ? bus : name).Add("|").Add(uuid).Add("|").Add(model);
  list->block->Put(entry);
  return list->count < 32;
}

void PutGpus(Block& block) {
  const int fd = open(kGpuFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  GpuList list = {&block, 0};
  ListDirectory(fd, PutGpu, &list);
  close(fd);
}

bool Kept(const char* entry) {
  for (const char* prefix : kKeptPrefixes) {
    if (StartsWith(entry, prefix)) return true;
  }
  return false;
}

void PutEnvironment(Block& block) {
  for (char** entry = environ; entry && *entry; ++entry) {
    const char* equals = strchr(*entry, '=');
    if (!equals || !Kept(*entry)) continue;
    char name[128];
    const size_t n = static_cast<size_t>(equals - *entry);
    if (n >= sizeof(name)) continue;
    memcpy(name, *entry, n);
    name[n] = 0;
    TextBuffer<2048> text;
    text.Add("env.").Add(name).AddChar('=');
    AddMasked(text, name, equals + 1);
    block.Put(text);
  }
}

void PutCommandLine(Block& block) {
  char arguments[3072];
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, arguments, sizeof(arguments));
  close(fd);
  if (n <= 0) return;
  TextBuffer<3072> entry;
  entry.Add("cmdline=");
  AddMaskedCommandLine(entry, arguments, static_cast<size_t>(n));
  block.Put(entry);
}

}  // namespace

bool ParseProcStat(const char* stat, uint64_t* start, char* state, uint64_t* stack) {
  // The name in parentheses may hold blanks and parentheses: the last ')' ends it. State is
  // field 3.
  const char* p = strrchr(stat, ')');
  if (!p || p[1] != ' ' || p[2] == 0) return false;
  *state = p[2];
  p += 2;
  for (int field = 3; field < 22; ++field) {
    p = strchr(p, ' ');
    if (!p) return false;
    ++p;
  }
  if (!ParseUint(p, start)) return false;
  if (!stack) return true;
  *stack = 0;
  for (int field = 22; field < 28 && p; ++field) {
    p = strchr(p, ' ');
    if (p) ++p;
  }
  if (p) (void)ParseUint(p, stack);
  return true;
}

void ReadIdentity(const Settings& settings, Identity* identity) {
  memset(identity, 0, sizeof(*identity));
  if (settings.host[0]) {
    CopyText(identity->host, sizeof(identity->host), settings.host);
  } else if (gethostname(identity->host, sizeof(identity->host) - 1) != 0) {
    CopyText(identity->host, sizeof(identity->host), "unknown");
  }
  if (settings.boot_id[0]) {
    CopyText(identity->boot_id, sizeof(identity->boot_id), settings.boot_id);
  } else {
    ReadSmallFile("/proc/sys/kernel/random/boot_id", identity->boot_id, sizeof(identity->boot_id));
    identity->boot_id[strcspn(identity->boot_id, "\n")] = 0;
  }
  const char* job = settings.job[0] ? settings.job : FirstSet(kJobNames);
  if (job) CopyText(identity->job, sizeof(identity->job), job);
  const uint32_t restart = FirstNumber(kRestartNames);
  identity->restart = restart == kNoNumber ? 0 : restart;
  identity->rank = FirstNumber(kRankNames);
  identity->local_rank = FirstNumber(kLocalRankNames);
  identity->world_size = FirstNumber(kWorldNames);
  identity->pid = getpid();
  identity->uid = geteuid();
  char stat[1024];
  char state;
  if (ReadSmallFile("/proc/self/stat", stat, sizeof(stat)) > 0) {
    (void)ParseProcStat(stat, &identity->process_start, &state, &identity->process_stack);
  }
}

void WriteTextBlock(const Identity& identity, const char* trace_dir, char* block_bytes,
                    size_t capacity) {
  Block block(block_bytes, capacity);
  block.PutNumber("local_rank", identity.local_rank);
  block.PutText("job", identity.job);
  block.PutNumber("restart", identity.restart);
  block.PutNumber("rank", identity.rank);
  block.PutNumber("world_size", identity.world_size);
  block.PutText("version", "0.1.0");
  block.PutText("traces", trace_dir);
  PutNcclPath(block);
  PutCommandLine(block);
  PutGpus(block);
  PutEnvironment(block);
}

}  // namespace ringscope::recorder
