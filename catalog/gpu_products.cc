#include "catalog/gpu_products.h"

namespace ringscope::catalog {
namespace {

// Numbers: the PCI ID repository. Lanes: NVIDIA's data sheets.
constexpr GpuProduct kProducts[] = {
    {0x15f9, "P100 SXM2", 4, false}, {0x1db1, "V100 SXM2", 6, false}, {0x1db3, "V100 SXM2", 6, false},
    {0x1db5, "V100 SXM2", 6, false}, {0x1db8, "V100 SXM3", 6, true},  {0x1df5, "V100 SXM2", 6, false},
    {0x20b0, "A100 SXM4", 12, true}, {0x20b2, "A100 SXM4", 12, true}, {0x20b3, "A100 SXM 64GB", 12, false},
    {0x20bd, "A800 SXM4", 8, true},  {0x20f3, "A800 SXM4", 8, true},  {0x2324, "H800 SXM5", 8, true},
    {0x2329, "H20", 18, true},       {0x2330, "H100 SXM5", 18, true}, {0x2335, "H200 SXM", 18, true},
    {0x2336, "H100 SXM5", 18, true}, {0x2339, "H100 SXM5", 18, true}, {0x2901, "B200", 18, true},
    {0x2941, "GB200", 18, true},     {0x3182, "B300", 18, true},      {0x31c2, "GB300", 18, true},
};

}  // namespace

const GpuProduct* BoardProduct(uint32_t vendor_and_device) {
  if (vendor_and_device >> 16 != 0x10de) return nullptr;
  for (const GpuProduct& product : kProducts) {
    if (product.device == (vendor_and_device & 0xffff)) return &product;
  }
  return nullptr;
}

}  // namespace ringscope::catalog
