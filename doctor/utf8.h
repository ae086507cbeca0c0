// Files of a machine and variables may hold any bytes; texts of messages and JSON may not.
#ifndef RINGSCOPE_DOCTOR_UTF8_H_
#define RINGSCOPE_DOCTOR_UTF8_H_

#include <google/protobuf/message.h>

#include <string>

namespace ringscope::doctor {

// `text` with '?' for every byte that belongs to no UTF-8 character.
std::string ValidUtf8(std::string text);
// The same for every text in `message`.
void MakeValidUtf8(google::protobuf::Message* message);

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_UTF8_H_
