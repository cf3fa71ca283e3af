// What a GoogleTest test measures besides its outcome, as properties of its XML (--gtest_output=xml):
//
//     TEST(Models, Resnet) {
//       nightjar::Measure("latency", 1.23, "ms", "lower");
//     }
//
// The unit ("-" or "" for none) and which values are better ("lower", "higher" or "none") are optional.
// C++11 and GoogleTest 1.10 or newer.
#ifndef NIGHTJAR_MEASURE_H_
#define NIGHTJAR_MEASURE_H_

#include <gtest/gtest.h>

#include <limits>
#include <locale>
#include <sstream>
#include <string>

namespace nightjar {

inline void Measure(const std::string& name, double value, const std::string& unit = "-",
                    const std::string& better = "none") {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value << ' ' << (unit.empty() ? "-" : unit) << ' ' << better;
  ::testing::Test::RecordProperty("measurement." + name, text.str());
}

}  // namespace nightjar

#endif  // NIGHTJAR_MEASURE_H_
