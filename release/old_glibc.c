/* What the compiler's own libraries ask of a glibc newer than 2.31, for a program that is to start on Debian 11 all the same
 * (cmake/link_static.sh, RINGSCOPE_OLD_ROOT). Every function does what glibc's does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.32: "there is surely one thread only", which libstdc++ uses to leave out atomic operations. Never sure is right too. */
char __libc_single_threaded = 0;

/* glibc 2.36; libstdc++'s random_device. */
unsigned arc4random(void) {
  unsigned value;
  char* at = (char*)&value;
  size_t have = 0;
  while (have < sizeof(value)) {
    const ssize_t n = getrandom(at + have, sizeof(value) - have, 0);
    if (n < 0) abort();
    have += (size_t)n;
  }
  return value;
}

/* glibc 2.34. ENOSYS on kernels before 5.9, as glibc gives it. */
int close_range(unsigned first, unsigned last, int flags) { return (int)syscall(SYS_close_range, first, last, flags); }

/* glibc 2.35; how libgcc finds the unwinding tables of an address. */
struct Search {
  uintptr_t pc;
  struct dl_find_object* found;
};
static int Look(struct dl_phdr_info* info, size_t size, void* data) {
  struct Search* search = data;
  const ElfW(Phdr)* table = NULL;
  int holds = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* p = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_GNU_EH_FRAME) table = p;
    if (p->p_type == PT_LOAD && search->pc >= begin && search->pc - begin < p->p_memsz) {
      holds = 1;
      search->found->dlfo_map_start = (void*)begin;
      search->found->dlfo_map_end = (void*)(begin + p->p_memsz);
    }
  }
  if (!holds || table == NULL) return 0;
  search->found->dlfo_eh_frame = (void*)(info->dlpi_addr + table->p_vaddr);
  return 1;
}
int _dl_find_object(void* pc, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)pc, found};
  memset(found, 0, sizeof(*found));
  return dl_iterate_phdr(Look, &search) == 1 ? 0 : -1;
}
