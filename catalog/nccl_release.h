#ifndef RINGSCOPE_CATALOG_NCCL_RELEASE_H_
#define RINGSCOPE_CATALOG_NCCL_RELEASE_H_

#include <string>
#include <string_view>

namespace ringscope::catalog {

// A release of NCCL as one number that compares: 2.28.9 is 22809. 0: not a release.
int NcclRelease(std::string_view version);
std::string NcclReleaseText(int release);

}  // namespace ringscope::catalog

#endif  // RINGSCOPE_CATALOG_NCCL_RELEASE_H_
