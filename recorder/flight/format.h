// The flight file: what one process leaves behind, whatever ends it.
//
// This header is the specification. The file is a memory image: a header page, a text block, counters, a table of sibling
// processes and four tables that NCCL's callbacks update in place. It is created with the first communicator, mapped
// MAP_SHARED, its space reserved and touched, and never grows. The kernel keeps it after SIGKILL.
//
//   0 KiB  FileHeader      one page; written at creation, a few words later by our own thread
//   4 KiB  text            16 KiB of "key=value\0", written at creation (identity, environment with secrets masked)
//  20 KiB  counters        64 words, one of enum Counter each
//  20.5    siblings        64 rows of 64 bytes, written by our own thread
//  24.5    host            what the preloaded library saw, one row (HostRow)
//  32 KiB  threads         256 rows of 128 bytes
//  64 KiB  communicators   512 rows of 320 bytes
//  224 KiB operations      16,384 rows of 128 bytes
//  2.22    edges           4,096 rows of 128 bytes                                            2.72 MiB in all
//
// Where little is free the last three tables are halved together, up to three times (TableSizes); the smallest file has
// 448 KiB. (Offsets and rows are what TableDesc says; a reader takes them from there, never from this drawing.)
//
// What a reader may assume of a writer that died anywhere:
//  * Every progress fact is one aligned 8-byte word, stored relaxed, valid alone. There is no lock and no seqlock over
//    progress: a writer killed in mid-update would hide the very row that matters.
//  * A row is made of lanes; a lane has one writer thread at a time. The first word of each lane is its stamp. The identity
//    lane is published as: stamp 0 (release fence), fields, stamp (release). A reader takes the stamp, copies the row word by
//    word (all acquire), takes the stamp again; unequal or zero means "no row here". The other lanes are published as:
//    release fence, fields, lane stamp (release). tests/protocol proves that each of these orders is needed, and enough.
//    (A reader of a copy of the file, made while its owner ran, must have copied the stamps before and after.)
//  * A lane whose generation differs from the identity lane's generation belongs to an earlier use of the row: it is void.
//  * A row of an unfinished operation is never given to another one. What finds no room is counted (enum Counter).
//  * Nothing in the file is a pointer to be followed. A hostile or damaged file can make every word any value: readers
//    check each index against its table.
//
// Time is in ticks of the clock named in the header (0 = never happened). Values that reach the file carry explicit
// numbers: do not change them, add new ones. Bump kVersion when the meaning of a word changes.
#ifndef RINGSCOPE_RECORDER_FLIGHT_FORMAT_H_
#define RINGSCOPE_RECORDER_FLIGHT_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace ringscope::flight {

inline constexpr char kMagic[8] = {'R', 'N', 'G', 'S', 'C', 'O', 'P', 'E'};
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kByteOrder = 0x01020304;

using Word = std::atomic<uint64_t>;
static_assert(sizeof(Word) == 8 && std::atomic<uint64_t>::is_always_lock_free);

// ---------------------------------------------------------------------------------------------------------------- sizes
inline constexpr uint32_t kThreadRows = 256;
inline constexpr uint32_t kCommRows = 512;    // at most; TableDesc says how many, like the two below a power of two
inline constexpr uint32_t kOpRows = 16384;    // at most
inline constexpr uint32_t kEdgeRows = 4096;   // at most
inline constexpr uint32_t kSiblingRows = 64;
inline constexpr uint32_t kTextBytes = 16384;
inline constexpr uint32_t kCounterWords = 64;

enum class Table : uint32_t { kText = 1, kCounters = 2, kSiblings = 3, kThreads = 4, kComms = 5, kOps = 6, kEdges = 7,
                              kHost = 8 };
struct TableDesc {
  uint32_t table;      // enum Table
  uint32_t row_bytes;  // 1 for the text
  uint32_t rows;
  uint32_t reserved;
  uint64_t offset;     // bytes from the start of the file, multiple of 64
};

// --------------------------------------------------------------------------------------------------------------- header
enum class ClockKind : uint32_t { kTsc = 1, kMonotonicNs = 2, kCntvct = 3 };

// One reading of three clocks at (nearly) one moment; `ticks` was read before and after, the midpoint is kept.
struct Anchor {
  Word ticks;
  Word monotonic_ns;  // CLOCK_MONOTONIC
  Word realtime_ns;   // CLOCK_REALTIME
  Word error_ns;      // half the distance of the two readings of ticks
};

// A stall that our thread noticed. Row and generation name the operation; times in ticks.
struct StallFinding {
  Word what;       // operation row | communicator row << 16 | 1 << 63 when the slot is used
  Word generation; // of the operation row
  Word since;      // last progress before the stall
  Word noticed;
  Word resolved;   // 0 while it lasts
};
inline constexpr uint32_t kStallFindings = 8;

enum StateBits : uint64_t {
  kStateRecording = 1,      // set once the tables are ready
  kStateExiting = 2,        // the process entered exit()
  kStateClean = 4,          // the last trace was written after every communicator was finalized or the process exited
  kStatePrivateMemory = 8,  // no file could be made: this image lives in memory only
  kStateTraceFailed = 16,   // a trace could not be written (disk full, directory missing)
  kStateUnloaded = 32,      // NCCL finalized its last communicator
  kStateFallbackSaid = 64,  // it said on stderr, for all processes of the node, that data goes through the network
};

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t file_bytes;
  uint32_t table_count;
  uint32_t process_nonce;  // 14 bits, never 0; in every handle of this process
  TableDesc tables[8];
  int32_t pid;             // in the process's own pid namespace
  uint32_t uid;
  uint64_t process_start;  // clock ticks after boot, /proc/self/stat field 22: tells a reused pid
  char boot_id[40];        // /proc/sys/kernel/random/boot_id
  char host[64];           // gethostname()
  uint32_t clock_kind;     // enum ClockKind
  uint32_t rank_hint;      // RANK and the like, 0xffffffff when none was set: lets siblings name each other
  uint64_t tick_ns_q32;    // nanoseconds per tick as 32.32 fixed point, measured at creation
  uint64_t stall_ns;       // RINGSCOPE_STALL_SECONDS
  uint64_t first_stall_ns; // the same before a communicator's first completion
  uint32_t heartbeat_period_ms;
  uint32_t event_mask;     // what was asked of NCCL
  Anchor first_anchor;     // at creation
  Anchor last_anchor;      // renewed by our thread with each heartbeat
  Word state;              // enum StateBits
  Word heartbeat;          // ticks: our thread ran
  Word heartbeats;         // how often
  Word freeze_count;       // times our thread did not run for long although it was not waiting for a CPU (SIGSTOP, freezer)
  Word freeze_begin;       // ticks, the longest one
  Word freeze_ns;          // the longest one
  Word starve_ns;          // longest time that our thread waited for a CPU (run queue), to tell apart from a freeze
  Word traces_written;
  Word last_reason;        // enum Reason of the last trace
  Word asked_reasons;      // bit per Reason asked of our thread: by the process itself, or by another one of the same user
                           // that maps this page. Polled with each heartbeat
  Word woken_by;           // pid | job rank << 32 (0xffffffff: none) of the process that asked for Reason::kWake last
  Word thread_in_call;     // ticks since when our thread is in a file system call that may hang (network file systems);
                           // 0 = it is not. An old heartbeat beside it says nothing about the process
  Word nccl_version;       // ncclGetVersion(), e.g. 23007; 0 unknown
  Word stream_bytes;       // written to stream files
  Word stream_lost;        // stream records that found no room or were over the limit
  uint64_t process_stack;  // /proc/self/stat field 28 (start of the stack): another value there means that the process
                           // has called exec since, and this record has ended; 0 unknown
  Word reserved[2];
  StallFinding stalls[kStallFindings];
};
static_assert(sizeof(FileHeader) <= 4096);

// Why a trace was written; also in trace.proto (WriteReason). Do not renumber.
enum class Reason : uint32_t { kNone = 0, kStall = 1, kFinalize = 2, kExit = 3, kRequest = 4, kQuiet = 5, kWake = 6,
                               kMarker = 7, kAbort = 8, kRecovered = 9 };

// ------------------------------------------------------------------------------------------------------------- counters
// What was lost or odd, per table. Relaxed increments, may be short by a few when two threads collide.
enum class Counter : uint32_t {
  kOpNoRow = 0,           // operations that found the next row of their ring unfinished
  kCommNoRow = 1,         // communicators that found no row
  kEdgeNoRow = 2,         // proxy operations whose edge found no row
  kThreadNoRow = 3,       // threads that found no row
  kStaleHandle = 4,       // stop, state or parent through a handle of an earlier generation
  kForeignHandle = 5,     // handle of another process (PXN)
  kGarbageHandle = 6,     // a value that no recorder made
  kNullHandle = 7,        // stop or state with NULL
  kUnknownEvent = 8,      // event type this build does not know; answered with NULL
  kUnknownState = 9,
  kUnaskedEvent = 10,     // event type we know and did not ask for
  kLateCallback = 11,     // callback for a finalized communicator
  kKernelStopTwice = 12,  // KernelCh stop without a start (NCCL <= 2.30 race)
  kStepGap = 13,          // a step's callbacks skipped a state or a step (releases without SendPeerWait; lost stops)
  kGroupedTail = 14,      // point-to-point tasks folded into the ninth row of their group
  kNullContext = 15,
  kForeignContext = 16,
  kCommFinalizedOpen = 17,// communicators finalized (aborted) with operations open
  kTraceDropped = 18,     // traces replaced by the next one: more than RINGSCOPE_TRACES
  kTraceFailed = 19,
  kInitRace = 20,         // two first inits in parallel (harmless)
  kPastOpen = 21,         // operations open at the end of the ring that a newer one had to skip
  kForked = 22,
};

// ------------------------------------------------------------------------------------------------------------- siblings
// Other processes whose flight files lie in the same directory, as our thread saw them while something was stuck here.
enum class SiblingState : uint32_t { kUnknown = 0, kAlive = 1, kFrozen = 2, kGone = 3, kExited = 4 };
struct SiblingRow {
  Word who;         // pid | rank << 32 (0xffffffff: none)
  Word nonce_start; // process_nonce | low 32 bits of process_start << 32
  Word state;       // enum SiblingState: kFrozen = lock held, heartbeat old; kGone = lock free, no clean end;
                    // kExited = clean end. Bits 8-15: state letter of /proc/PID/stat when it is the same pid namespace
  Word since;       // ticks of our clock: when it was first seen in this state
  Word checked;     // ticks of our clock: last look
  Word heartbeat_realtime_ns;  // its last heartbeat on CLOCK_REALTIME
  Word reserved[2];
};
static_assert(sizeof(SiblingRow) == 64);

// ------------------------------------------------------------------------------------------------------- threads (128 B)
// Calls in flight. Written by the thread itself only.
enum class Call : uint32_t { kNone = 0, kGroup = 1, kCollApi = 2, kP2pApi = 3, kGroupEnd = 4, kKernelLaunch = 5,
                             kInit = 6, kFinalize = 7 };
struct ThreadRow {
  Word tid;         // OS thread id; 0 = free row
  Word call;        // enum Call | depth of the group << 8 | graph captured << 16 | communicator row << 32
  Word since;       // ticks: the call in `call` began
  Word position;    // position of the operation the call is about, 0 when none
  Word stream;
  Word count;       // elements
  Word last_error;  // newest error that a wrapped call returned here: code (32) | number of the function (16) << 32 | 1 << 63
  Word group;       // ordinal of this thread's current or last group
  Word group_p2p;   // point-to-point tasks in it so far
  Word group_tail;  // operation handle of the group's shared tail row, 0 when none
  // What the application called, seen by the preloaded library (host_calls.def); beside `call`, which NCCL's callbacks write.
  Word host_call;   // number of the function (16) | depth of explicit NCCL groups (16) << 16 | reduction (kOpReduction) of the
                    // operation that is called << 32; number 0: in no wrapped call
  Word host_since;  // ticks: it began
  Word host_about;  // stream or event (48 bits); 0 none
  Word host_bytes;  // of a copy
  Word reserved[2];
};
static_assert(sizeof(ThreadRow) == 128);

// ------------------------------------------------------------------------------------------------------------ host (1 row)
// What the preloaded library saw of the process. Counts may be short by a few where threads collide.
struct HostError {
  Word what;  // code (32) | number of the function (16) << 32 | 1 << 63 once it is there
  Word when;  // ticks
  Word tid;   // of the thread that got it
};
enum HostSeen : uint64_t { kHostPreloaded = 1, kHostNccl = 2, kHostCudaRuntime = 4, kHostCudaDriver = 8 };
struct HostRow {
  Word seen;           // enum HostSeen: which doors are there, and which were gone through
  Word nccl_errors;    // results other than success and in progress
  Word cuda_errors;    // results other than success and not ready
  HostError first_nccl, first_cuda;
  HostError sticky;    // the first error after which the device answers nothing else
  Word copies[7][5][2];  // kind, size class (host_calls.h): number, bytes
  Word reserved[46];
};
static_assert(sizeof(HostRow) == 1024);

// ------------------------------------------------------------------------------------------------- communicators (320 B)
enum CommFlags : uint32_t {
  kCommApiEvents = 1,          // operations are numbered where the API is entered (profiler API v5 and newer)
  kCommCompletionVisible = 2,  // KernelCh asked for and delivered by this release: started and finished are facts
  kCommHasSteps = 4,           // proxy steps were seen
  kCommFallbackNoted = 8,      // all ranks on one node, yet proxy steps: said on stderr
  kCommForeignSteps = 16,      // executes proxy operations of other processes (PXN)
};
// Set in a stamp once comm_id and rank are known. Below profiler API v4 they come with the first operation: the row is
// published without them, they are filled in, the stamp gets this bit (never 0 in between). So a reader that copies the row
// meanwhile sees the stamp change and copies again, and a writer that dies anywhere leaves a readable row.
inline constexpr uint64_t kCommIdentified = uint64_t{1} << 62;
struct CommRow {
  Word stamp;         // generation | API version << 32 | kCommIdentified | 1 << 63: identity, published last. 0 = free
  Word comm_id;       // NCCL's commId / commHash; 0 where NCCL gives none (tables v1-v3 under NCCL >= 2.27)
  Word ranks;         // rank (0xffffffff: not known yet) | nRanks << 32 (0: not known)
  Word nodes;         // nNodes | creation ordinal in this process << 32
  Word flags;         // enum CommFlags
  Word ring;          // first operation row | (rows - 1) << 32; rows is a power of two, the first row a multiple of it
  Word collectives;   // collectives entered (API events) or launched (older); the position of the newest one
  Word p2ps;          // point-to-point calls, likewise
  Word launched;      // operations whose launch was seen
  Word completed;     // operations whose completion was seen
  Word no_row;        // operations without a row
  Word created;       // ticks
  Word finalized;     // ticks; 0 while it lives
  Word head;          // operation rows taken so far; the newest is at ring base + ((head - 1) & mask)
  Word last_progress; // ticks of the newest KernelCh start/stop or proxy operation stop
  Word chain_open;    // signature chain (chain.h): sum over the collectives of the group that is open
  char name[48];      // commName, cut, NUL-terminated
  Word checkpoints[8];// chain.h: hash (48 bits) << 16 | low bits of the multiple's ordinal; two a level
  Word done_entered;  // `entered` of the newest-entered operation that is finished: operations entered before it, in another
                      // group, are over even if a KernelCh stop of theirs never came (NCCL <= 2.30 loses some)
  Word done_group;    // `group` of that operation
  Word chain[2];      // rolling hash over the collectives of closed groups; chain_closed says which of the two holds
  Word chain_closed;  // collectives in closed groups (40 bits) | low 23 bits of their hash << 40 | 1 << 63 when it is chain[1]
  Word chain_group;   // group that is open: OpRow::group (48 bits) | 1 << 63; 0 before the first
  Word chain_count;   // collectives in it
  Word reserved[3];
};
static_assert(sizeof(CommRow) == 320);

// ---------------------------------------------------------------------------------------------------- operations (128 B)
// NCCL's names in numbers of our own. Do not renumber.
enum class Func : uint8_t { kUnknown = 0, kBroadcast = 1, kReduce = 2, kAllGather = 3, kReduceScatter = 4, kAllReduce = 5,
                            kSendRecv = 6, kSend = 7, kRecv = 8, kAlltoAll = 9, kScatter = 10, kGather = 11,
                            kAllGatherV = 12, kPutSignal = 13, kSignal = 14, kWaitSignal = 15 };
enum class DataType : uint8_t { kUnknown = 0, kInt8 = 1, kUint8 = 2, kInt32 = 3, kUint32 = 4, kInt64 = 5, kUint64 = 6,
                                kFloat16 = 7, kFloat32 = 8, kFloat64 = 9, kBfloat16 = 10, kFloat8e4m3 = 11,
                                kFloat8e5m2 = 12 };
enum class Algo : uint8_t { kUnknown = 0, kTree = 1, kRing = 2, kCollnetDirect = 3, kCollnetChain = 4, kNvls = 5,
                            kNvlsTree = 6, kPat = 7, kCopyEngine = 8 };
enum class Proto : uint8_t { kUnknown = 0, kLl = 1, kLl128 = 2, kSimple = 3 };

enum OpFlags : uint32_t {
  kOpFromApi = 1,        // row opened by CollApi / P2pApi; else by the launch (Coll / P2p)
  kOpP2p = 2,
  kOpGraph = 4,          // graph captured
  kOpGrouped = 8,        // inside an explicit ncclGroup
  kOpTail = 16,          // several point-to-point tasks of one group: count is bytes, peers are in the edge table
  kOpCopyEngine = 32,    // done by copy engines: completion is not visible
  kOpReduction = 0xf00,  // ncclRedOp_t + 1, 6 the program's own; 0 unknown. From the preloaded library
};
inline constexpr uint32_t kOpReductionShift = 8;

struct OpRow {
  // Identity and API lane: written by the thread that called NCCL (below API v5 by the launching thread).
  Word stamp;       // generation (32) | communicator row (16) << 32 | Func (8) << 48 | DataType (8) << 56
  Word position;    // ordinal (40 bits) among the communicator's collectives, or its point-to-point calls | root (24) << 40
                    // (0xffffff = no root)
  Word count;       // elements as the caller gave them (API events); as NCCL's task says (older); bytes for a tail
  Word entered;     // ticks: API entered
  Word returned;    // ticks: API returned; 0 while inside
  Word stream;      // cudaStream_t, low 48 bits | enum OpFlags << 48
  Word group;       // ordinal of the group (32) | thread row << 32 | tasks in a tail << 48
  // Launcher lane: the thread that enqueued.
  Word launch;      // generation (32) | Algo (8) << 32 | Proto (8) << 40 | channels (8) << 48 | warps (8) << 56
  Word enqueued;    // ticks: Coll / P2p stop, work is in the stream; 0 before
  Word sequence;    // NCCL's seqNumber, per function (32) | peer (32) << 32 for point-to-point (0xffffffff: none)
  // Proxy lane: the proxy progress thread.
  Word kernel;      // generation (32) | KernelCh started (16) << 32 | stopped (16) << 48
  Word proxy_ops;   // generation (32) | ProxyOp started (16) << 32 | stopped (16) << 48
  Word started;     // ticks: first KernelCh start
  Word finished;    // ticks: newest KernelCh stop (the end only when all have stopped)
  Word gpu_started; // ns of the GPU's globaltimer at the first start; 0 unknown
  Word gpu_finished;// ns of the GPU's globaltimer at the newest stop
};
static_assert(sizeof(OpRow) == 128 && offsetof(OpRow, launch) == 56 && offsetof(OpRow, kernel) == 80);

// --------------------------------------------------------------------------------------------------------- edges (128 B)
// One direction of one connection of one channel, as this process's proxy drives it. Written by the proxy progress thread
// (pseudo-edges: by the launching thread).
enum EdgeFlags : uint32_t {
  kEdgeSend = 1,     // this side sends
  kEdgeP2p = 2,      // connections of send/recv, apart from those of collectives
  kEdgeForeign = 4,  // PXN: `context` belongs to another process
  kEdgePseudo = 8,   // no connection: counts the point-to-point messages per peer (channel 255)
};
// What one step waits for. Numbers of our own, as in trace.proto.
enum class StepState : uint8_t { kFree = 0, kStarted = 1, kSendGpuWait = 2, kSendPeerWait = 3, kSendWait = 4,
                                 kRecvWait = 5, kRecvFlushWait = 6, kRecvGpuWait = 7 };
inline constexpr uint32_t kStepSlots = 8;  // NCCL_STEPS: at most 8 steps of an operation are open (NCCL 2.23-2.30)

struct EdgeRow {
  Word stamp;       // generation (16) | channel (8) << 16 | EdgeFlags (8) << 24 | communicator row (16) << 32 | 1 << 63.
                    // communicator row 0xffff for a foreign context
  Word peer;        // peer (32) | rank that owns the data (32) << 32, both ranks of the communicator
  Word context;     // foreign context value, or 0
  Word current;     // ProxyOp handle of the operation whose steps run now (handles.h), 0 = none yet
  Word steps;       // of the current operation, how many steps have reached, 16 bits each from the low end:
                    //   send: SendGPUWait (posted) | SendPeerWait (the GPU's data is there) | SendWait (handed over) | stop
                    //   recv: RecvWait (posted) | RecvFlushWait (arrived) | RecvGPUWait (flushed) | stop
                    // Steps pass these in order, so the word holds the state of every step (steps.h). On a pseudo-edge: the
                    // number of messages.
  Word entered[4];  // for each of the four: sum over all steps so far of the ticks at which they reached it. The time that
                    // steps spent in state i is entered[i + 1] - entered[i], modulo 2^64 (steps.h)
  Word changed;     // ticks of the last progress, bit 0 cleared. Bit 0 set: a send was not accepted at once since then.
                    // (A ProxyStep's start is no progress: NCCL repeats it while a receive cannot be posted.)
  Word ops;         // proxy operations started (32) | stopped (32) << 32
  Word bytes;       // sum of transSize (SendWait, RecvFlushWait: the only reliable ones); messages' bytes on a pseudo-edge
  Word foreign;     // newest parentObj of another process, whole (a Ringscope handle there, if it runs one)
  Word steps_total; // steps done since the edge exists, without those of the current operation
  Word chunk;       // chunkSize of the newest operation (32) | nSteps as given, not cut (32) << 32
  Word queued;      // ProxyOp handle of the newest operation that was appended
};
static_assert(sizeof(EdgeRow) == 128);

// Rows of the three large tables, each a power of two.
struct TableSizes {
  uint32_t comms = kCommRows, ops = kOpRows, edges = kEdgeRows;
};
inline constexpr uint32_t kHalvings = 3;  // at most: 64 communicators, 2,048 operations, 512 edges
constexpr TableSizes HalvedSizes(uint32_t times) {
  return {kCommRows >> times, kOpRows >> times, kEdgeRows >> times};
}
inline constexpr uint64_t kTablesAt = 65536;  // bytes before the three large tables
inline constexpr uint64_t kHostAt = (20 << 10) + 512 + kSiblingRows * sizeof(SiblingRow);
static_assert(kHostAt + sizeof(HostRow) <= 32 << 10);
constexpr uint64_t BytesOf(const TableSizes& sizes) {
  return kTablesAt + uint64_t{sizes.comms} * sizeof(CommRow) + uint64_t{sizes.ops} * sizeof(OpRow) +
         uint64_t{sizes.edges} * sizeof(EdgeRow);
}
inline constexpr uint64_t kFileBytes = BytesOf(HalvedSizes(0));  // at most
static_assert(kFileBytes <= 3u << 20 && BytesOf(HalvedSizes(kHalvings)) <= 512u << 10);

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_FORMAT_H_
