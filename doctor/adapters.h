// Which RDMA ports NCCL would use: all active ones, or those that NCCL_IB_HCA chooses.
#ifndef RINGSCOPE_DOCTOR_ADAPTERS_H_
#define RINGSCOPE_DOCTOR_ADAPTERS_H_

#include <string>
#include <vector>

#include "proto/node.pb.h"

namespace ringscope::doctor {

// NCCL's list of names: "mlx5", "=mlx5_0:1,mlx5_1", "^mlx5_3", "^=eth0": prefixes unless "=", all others when "^".
class NameList {
 public:
  explicit NameList(const std::string& text);
  bool empty() const { return names_.empty(); }
  bool exact() const { return exact_; }
  bool others() const { return others_; }
  struct Name {
    std::string name;
    int port = -1;  // -1: any
  };
  const std::vector<Name>& names() const { return names_; }
  bool Takes(const std::string& name, int port = -1) const;
  // Whether that single word of the list fits the name.
  bool Fits(const Name& word, const std::string& name, int port = -1) const;

 private:
  std::vector<Name> names_;
  bool exact_ = false, others_ = false;
};

bool IsActive(const node::Port& port);
bool IsRoce(const node::Port& port);
// "mlx5_0:1"
std::string PortName(const node::Port& port);
// "400 Gb/sec (4X NDR)": 400; 0 when it is not told.
double Gigabits(const node::Port& port);
// Active ports that NCCL would take with the node's settings; none when NCCL_IB_DISABLE is set.
std::vector<const node::Port*> UsedPorts(const node::Node& node);

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_ADAPTERS_H_
