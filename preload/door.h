// What libringscope-newer.so asks of libringscope.so: one recorder a process, whatever is preloaded. Found by its exported name,
// ringscope_newer_v1.
#ifndef RINGSCOPE_PRELOAD_DOOR_H_
#define RINGSCOPE_PRELOAD_DOOR_H_

#include "preload/details.h"

namespace ringscope::preload {

struct Door {
  void* (*find)(uint32_t number, const char* name, const void* caller, const void* own);
  bool (*enter)(Frame* frame, const Told& told);
  void (*leave)(Frame* frame, int result);
  Told (*tell_of_op)(const Op& detail);
  void (*before_op)(Frame* frame, const Op& detail);
  void (*after_op)(Frame* frame, const Op& detail, int result);
  void (*after_create)(Frame* frame, const Create& detail, int result);
  void (*after_split)(Frame* frame, const Split& detail, int result);
};

}  // namespace ringscope::preload

#endif  // RINGSCOPE_PRELOAD_DOOR_H_
