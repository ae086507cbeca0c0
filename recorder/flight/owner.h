// How a flight file shows that its owner is alive.
//
// The owner holds a POSIX record lock (fcntl F_SETLK, write, whole file) on it for as long as it
// lives. The kernel drops the lock when the process ends, however it ends, and a forked child does
// not inherit it (flock and open-file-description locks would live on in the child). The price: the
// lock also goes when the owner closes any descriptor of the file, so the owner must never open its
// own file a second time, and a free lock alone does not prove death: an application that closes
// all descriptors drops it too. A reader that sees a free lock looks at the heartbeat as well.
#ifndef RINGSCOPE_RECORDER_FLIGHT_OWNER_H_
#define RINGSCOPE_RECORDER_FLIGHT_OWNER_H_

#include <fcntl.h>
#include <unistd.h>

namespace ringscope::flight {

enum class OwnerLock { kUnknown, kHeld, kFree };

// Takes the owner's lock on an open, writable descriptor. False if another process holds it or
// locks do not work here.
inline bool TakeOwnerLock(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_SETLK, &lock) == 0;
}

// Asks, from another process, whether the owner's lock is held. A read-only descriptor will do;
// nothing is taken. In the owner itself the answer is always kFree (and closing `fd` there drops
// the lock: do not).
inline OwnerLock ProbeOwnerLock(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_GETLK, &lock) != 0) return OwnerLock::kUnknown;
  return lock.l_type == F_UNLCK ? OwnerLock::kFree : OwnerLock::kHeld;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_OWNER_H_
