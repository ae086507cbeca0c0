// What a GPU product is built with, by its PCI device number: how many NVLinks it must show.
#ifndef RINGSCOPE_CATALOG_GPU_PRODUCTS_H_
#define RINGSCOPE_CATALOG_GPU_PRODUCTS_H_

#include <cstdint>
#include <string_view>

namespace ringscope::catalog {

struct GpuProduct {
  uint16_t device;  // PCI, of vendor 10de
  std::string_view name;
  int lanes;      // NVLinks of one GPU on its board
  bool switched;  // boards of eight join them by NVSwitch
};

// nullptr for products without soldered NVLinks (cards; bridges are an option there) and for unknown ones.
const GpuProduct* BoardProduct(uint32_t vendor_and_device);

}  // namespace ringscope::catalog

#endif  // RINGSCOPE_CATALOG_GPU_PRODUCTS_H_
