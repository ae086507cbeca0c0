// The settings of the stand-ins: RINGSCOPE_SIM_*, listed in tests/sim/README.md.
#ifndef RINGSCOPE_TESTS_SIM_SETUP_SETTINGS_H_
#define RINGSCOPE_TESTS_SIM_SETUP_SETTINGS_H_

#include <string>

namespace ringscope::sim {

struct Mistake {
  std::string text;  // names the setting or the file and line; empty: none
  int status = 0;    // 64 a setting, 65 a file of the machine
};
// The first mistake among this process's settings; an unknown one is a mistake too.
Mistake CheckSettings();
// Ends the process with the mistake's status, after a line on stderr, where there is one.
void DemandGoodSettings(const char* who);

// RINGSCOPE_SIM_DEVICES, or what the machine has, or 8. REQUIRES: CheckSettings() found nothing.
int DevicesAsked();

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_SETUP_SETTINGS_H_
