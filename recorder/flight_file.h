// The flight file's life: made when the first communicator is, mapped for the life of the process,
// removed only after a clean exit whose trace was written. What it contains: flight/format.h.
#ifndef RINGSCOPE_RECORDER_FLIGHT_FILE_H_
#define RINGSCOPE_RECORDER_FLIGHT_FILE_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/identity.h"
#include "recorder/runtime.h"
#include "recorder/settings.h"

namespace ringscope::recorder {

struct FlightFile {
  unsigned char* base;  // header->file_bytes, zeroed and touched; nullptr: nothing could be mapped
  int fd;               // holds the owner's lock, so it stays open; -1 for private memory. Any number that the host
                        // closes may name something else next: only used after a look at device and inode
  uint64_t device, inode;
  char directory[768];  // where the file lies; "" for private memory
  char name[256];       // in `directory`
};

// Makes the file and maps it. In this order:
//  1. settings.flight_dir, if it is ours alone, with as large tables as 1/32 of what is free there
//  (tmpfs; elsewhere 1/8) holds, 512 KiB at least;
//  2. the trace directory, unless that is a network or copy-on-write file system;
//  3. private memory: recording goes on, but a killed process leaves nothing.
// Space is reserved before mapping, so that no later store can meet a full disk (SIGBUS). 2 and 3
// say so with one line on stderr. Returns false only if not even private memory can be had; then
// nothing is left behind.
bool MakeFlightFile(const Settings& settings, const Identity& identity, FlightFile* file);

// Fills header (all but the magic, clock and anchors), table descriptions and text block of a
// fresh, zeroed image.
void LayOutImage(const Settings& settings, const Identity& identity, uint32_t nonce,
                 const flight::TableSizes& sizes, unsigned char* base);

// Writes the magic: from here on a reader takes the file for a record. REQUIRES: clock and first
// anchor are set.
void PublishImage(unsigned char* base);

// Where the tables of a laid out image are, and how large.
Image ImageAt(unsigned char* base);

// Unlinks the file, if its name still leads to it; the mapping stays (late callbacks). Nothing for
// private memory.
void RemoveFlightFile(FlightFile* file);

// Takes the owner's lock again when it was lost: a host that closes all descriptors, or any that it
// opened on this file, drops it. For our own thread, with each heartbeat.
void KeepOwnerLock(FlightFile* file);

// In a forked child: closes its copy of the descriptor, if the number still is that. Async-signal-safe.
void CloseInherited(FlightFile* file);

// Removes what dead processes of this user and machine left in `directory`, except the newest
// kKeptPerRank of each local rank (the rank, where no local rank is known), kKeptInAll at most. A file
// counts as dead when its lock is free, its magic is ours and no such process runs; one that never
// got a magic, when it is old. Only plain files whose name is of our pattern are touched, links never
// followed. `own_name` is skipped.
void ReapFlightFiles(const char* directory, const Identity& identity, const char* own_name);
inline constexpr unsigned kKeptPerRank = 2;
inline constexpr unsigned kKeptInAll = 64;

// "<job>.<restart>/<host>": the part of a path that all processes of one host and run share.
void AddRunDirectory(Text& out, const Identity& identity);
// "ringscope-<job>.<restart>-<host>-": how the flight files of one host and run begin.
void AddFlightPrefix(Text& out, const Identity& identity);
// The part of it that all processes of this run of the job share, on whatever host.
void AddFlightJobPrefix(Text& out, const Identity& identity);
// "rank3", or "rankx" when the rank is not known.
void AddRank(Text& out, uint32_t rank);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_FLIGHT_FILE_H_
