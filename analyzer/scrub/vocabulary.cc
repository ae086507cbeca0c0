#include "analyzer/scrub/vocabulary.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "catalog/catalog.h"

namespace ringscope::scrub {
namespace {

// Systems and their folders; Python, PyTorch and what trains with them; words of file names and logs.
constexpr char kWords[] =
    "a an and are as at be by for from has in is it no not of off on or so that the this to up was with yes all any each every "
    "max min "
    "bin sbin lib lib64 libexec usr opt local share include etc var log logs tmp dev shm proc sys run mnt media home root boot "
    "srv "
    "users user data datasets dataset scratch work workspace projects project src source build dist out output outputs result "
    "results "
    "cache caches spool lock pid sock socket class net infiniband bus pci devices driver drivers module modules kernel firmware "
    "debug "
    "nfs lustre gpfs weka wekafs beegfs ceph cephfs s3 fsx efs gcs gs hdfs disk disks ssd nvme raid volume volumes storage "
    "app apps code repo repos git main master head trunk release env envs venv conda miniconda anaconda mamba miniforge spack "
    "python pip wheel egg info site dist packages package setup pyproject requirements init conftest test tests unit integration "
    "linux x86 64 aarch64 arm64 amd64 gnu cuda cudnn nccl nvidia libnccl libcuda libcudart libc libpthread libstdc ld so gcc g "
    "nvcc "
    "torch pytorch torchrun torchvision torchaudio torchelastic distributed elastic multiprocessing launcher launch agent server "
    "api "
    "tensorflow jax jaxlib xla numpy scipy pandas transformers accelerate deepspeed megatron lightning fabric fairscale fairseq "
    "nemo apex "
    "vllm sglang tensorrt llm trt trtllm ray horovod mpi openmpi ompi mpich mpirun mvapich orte pmix ucx ucc hcoll rdma verbs "
    "ibverbs mlx5 "
    "slurm srun sbatch slurmd slurmstepd kubernetes kube kubelet pod pods container containers docker containerd runc overlay "
    "train trainer training pretrain finetune fine tuning tune sft dpo ppo rlhf eval evaluate evaluation validate valid "
    "validation infer "
    "inference serve serving predict generate generation bench benchmark benchmarks perf profile profiler profiling demo example "
    "examples "
    "model models modeling modelling layer layers block blocks attention mlp moe expert experts embedding embeddings encoder "
    "decoder "
    "optimizer optim optimizers scheduler schedule loss losses metric metrics callback callbacks hook hooks engine engines "
    "strategy strategies "
    "loader loaders dataloader dataloaders sampler samplers collate collator tokenizer tokenization tokenizers processor "
    "preprocess "
    "checkpoint checkpoints checkpointing ckpt ckpts save saver saving load loading state dict states shard shards sharded fsdp "
    "ddp tp pp dp "
    "zero stage pipeline parallel tensor data sequence context ring rings tree util utils utility utilities helper helpers "
    "common core base "
    "config configs configuration conf cfg args arguments option options default defaults settings version versions readme "
    "license notes "
    "worker workers rank ranks node nodes host hosts gpu gpus cpu cpus device devices job jobs task tasks step steps epoch iter "
    "iteration world "
    "local global group groups process processes thread threads queue queues pool executor future futures context contexts "
    "manager "
    "comm comms communicator collective collectives allreduce allgather reduce scatter broadcast alltoall barrier send recv p2p "
    "store stores "
    "watchdog heartbeat timeout timeouts monitor error errors exception exceptions warning warnings warn info trace traces "
    "traceback stack stacks "
    "dump dumps core flight recorder record records report reports snapshot snapshots event events signal signals memory mem io "
    "file files "
    "stdout stderr stdin console text txt json jsonl yaml yml toml ini csv tsv xml html md err pt pth bin safetensors gz zst zip "
    "tar pkl pickle npy npz "
    "py pyx pyi cc cpp cxx c h hpp cu cuh sh bash zsh rs go js ipynb service conf d "
    "dir file user name serial secret domain host hostname before after first last old new good bad healthy start stop end begin "
    "final latest best current prev next part all raw "
    "dmesg journal journalctl syslog messages nvidia smi topo topology nvlink ibstat ibv devinfo show gids ethtool lspci ip addr "
    "link ifconfig perfquery "
    "counters counter dcgm dcgmi ras ncclras xid bug reports stall kern matrix graph channel channels lspci numa numactl ulimit "
    "limits free top ps htop "
    "pyspy spy gdb bt strace lsof netstat ss ping iperf mlnx mlxlink mlxconfig ofed fabricmanager fabric manager persistenced "
    "abc asyncio atexit base64 bdb bisect builtins codecs collections concurrent contextlib contextvars copy ctypes dataclasses "
    "datetime decimal "
    "encodings enum faulthandler fractions functools gc getpass glob hashlib heapq hmac http imp importlib inspect ipaddress "
    "itertools logging "
    "marshal math mmap operator os pathlib pdb platform pprint queue random re resource runpy sched select selectors shelve "
    "shutil signal "
    "smtplib socketserver sqlite3 ssl string struct subprocess sysconfig tempfile threading time timeit tokenize traceback types "
    "typing unittest "
    "urllib uuid warnings weakref zipfile zlib spawn popen fork forkserver connection connections synchronize managers heap "
    "bootstrap frozen external util "
    "csrc aten c10 c10d c10 ops op autograd grad functional jit fx dynamo inductor nn cuda cudart linalg serialization "
    "rendezvous rpc tensorpipe gloo ucc "
    "fully wrap api comm hooks algorithms data utils random amp graphs streams memory storage parameter variable variables "
    "container containers linear "
    "norm layernorm dropout activation rnn conv pooling adam adamw sgd lr clip grad initialize mpu tensor fused kernels kernel "
    "flash attn flashattn triton "
    "gpt bert llama qwen mistral mixtral t5 vit resnet clip unet diffusion whisper opt bloom falcon gemma phi deepseek glm "
    "baichuan chatglm imagenet cifar mnist c4 wikitext pile "
    "eth ens eno enp ib bond lo docker veth br vlan mlx hsn roce uverbs nccl run job ringscope libringscope "
    "ringscopetraces flight stream shm "
    "plugin preload "
    "exec command commands entrypoint wrapper script scripts tools tool cmd cli bin2 frontend backend backends client clients "
    "proxy http https grpc rest "
    "x y z i j k n m v r s t b u l o p q e w f default pg undefined unknown null none true false finalize exit abort request "
    "quiet wake marker recovered";

const absl::flat_hash_set<std::string>& Words() {
  static const auto& words = *[] {
    auto* set = new absl::flat_hash_set<std::string>;
    for (const absl::string_view word : absl::StrSplit(kWords, ' ', absl::SkipEmpty())) set->insert(std::string(word));
    // What signatures look for must stay what it is.
    for (const auto& signature : catalog::Signatures().signature()) {
      for (const auto& pattern : signature.patterns()) {
        std::string plain;
        for (size_t i = 0; i < pattern.size(); ++i) {
          if (pattern[i] == '\\') {
            plain += ' ';
            ++i;
          } else {
            plain += absl::ascii_isalnum(static_cast<unsigned char>(pattern[i])) ? pattern[i] : ' ';
          }
        }
        for (const absl::string_view word : absl::StrSplit(plain, ' ', absl::SkipEmpty())) {
          if (word.size() > 2) set->insert(absl::AsciiStrToLower(word));
        }
      }
    }
    return set;
  }();
  return words;
}

const absl::flat_hash_set<std::string>& PublicHosts() {
  static const auto& hosts = *new absl::flat_hash_set<std::string>{"localhost",
                                                                   "localhost.localdomain",
                                                                   "github.com",
                                                                   "gist.github.com",
                                                                   "raw.githubusercontent.com",
                                                                   "gitlab.com",
                                                                   "pytorch.org",
                                                                   "docs.pytorch.org",
                                                                   "download.pytorch.org",
                                                                   "discuss.pytorch.org",
                                                                   "dev-discuss.pytorch.org",
                                                                   "nvidia.com",
                                                                   "www.nvidia.com",
                                                                   "docs.nvidia.com",
                                                                   "developer.nvidia.com",
                                                                   "forums.developer.nvidia.com",
                                                                   "nvcr.io",
                                                                   "docker.io",
                                                                   "ghcr.io",
                                                                   "quay.io",
                                                                   "registry.k8s.io",
                                                                   "kubernetes.io",
                                                                   "python.org",
                                                                   "www.python.org",
                                                                   "docs.python.org",
                                                                   "bugs.python.org",
                                                                   "huggingface.co",
                                                                   "hf.co",
                                                                   "wandb.ai",
                                                                   "api.wandb.ai",
                                                                   "stackoverflow.com",
                                                                   "www.kernel.org",
                                                                   "docs.kernel.org",
                                                                   "www.open-mpi.org",
                                                                   "openucx.org",
                                                                   "slurm.schedmd.com",
                                                                   "schedmd.com",
                                                                   "docs.vllm.ai",
                                                                   "docs.ray.io",
                                                                   "ray.io",
                                                                   "www.deepspeed.ai",
                                                                   "deepspeed.ai",
                                                                   "google.com",
                                                                   "www.google.com",
                                                                   "example.com",
                                                                   "example.org",
                                                                   "net_ib.cc",
                                                                   "goo.gl",
                                                                   "aka.ms",
                                                                   "www.gnu.org"};
  return hosts;
}

}  // namespace

bool PublicWord(std::string_view word) {
  std::string low = absl::AsciiStrToLower(absl::string_view(word.data(), word.size()));
  if (Words().contains(low)) return true;
  size_t end = low.size();
  while (end > 0 && absl::ascii_isdigit(static_cast<unsigned char>(low[end - 1]))) --end;
  if (end == 0) return true;  // a number
  if (end == low.size()) return low.size() == 1;
  return low.size() - end <= 8 && (end == 1 || Words().contains(absl::string_view(low).substr(0, end)));
}

bool PublicWords(std::string_view name) {
  for (const absl::string_view part : absl::StrSplit(absl::string_view(name.data(), name.size()), absl::ByAnyChar("-_.+ ,="))) {
    if (!part.empty() && !PublicWord({part.data(), part.size()})) return false;
  }
  return true;
}

bool DeviceName(std::string_view word) {
  static const RE2& pattern = *new RE2(
      R"((?i)(?:eth|ens|eno|enp|enx|em|ib|ibp|bond|br|veth|docker|lo|wlan|vlan|hsn|roce|rdma|mlx\d?|mlx\d_)"
      R"(|mlx\d_bond_|uverbs|efa|irdma|bnxt_re|rocep|ibs|rank|local_rank|cuda|nvme|sd|nvlink|nvswitch|numa|cpu|dp)"
      R"(|tp|pp|ep|cp|net|channel|ring|tree|comm|pg|group|stream|thread|nic|hca)[-_]?\d+(?:[sfpnvdi]+\d+)*|gpu\d)"
      R"(|lo|v\d+)");
  return RE2::FullMatch(re2::StringPiece(word.data(), word.size()), pattern);
}

bool PublicHost(std::string_view name) {
  return PublicHosts().contains(absl::AsciiStrToLower(absl::string_view(name.data(), name.size())));
}

bool PublicUser(std::string_view name) {
  static const auto& users = *new absl::flat_hash_set<std::string>{
      "root",       "ubuntu",   "debian",    "centos", "rocky",    "admin",   "administrator",
      "user",       "users",    "nobody",    "daemon", "git",      "runner",  "jovyan",
      "vscode",     "docker",   "slurm",     "munge",  "www-data", "systemd", "systemd-network",
      "messagebus", "ec2-user", "azureuser", "opc",    "postgres", "nvidia",  "container",
      "nonroot",    "app",      "worker",    "ray",    "mpiuser",  "hpc",     "guest",
      "shared",     "public",   "none",      "null",   "self",     "group",   "groups",
      "all",        "sys",      "bin"};
  return users.contains(absl::AsciiStrToLower(absl::string_view(name.data(), name.size()))) || name.size() < 2;
}

}  // namespace ringscope::scrub
