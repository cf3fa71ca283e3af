// Slow GoogleTest tests, skipped where SKIP_SLOW_TESTS is true, 1 or yes, in any case of letters.
//
//     TEST(Models, Resnet) {
//       NIGHTJAR_SLOW();
//       ...
//     }
//
// Python's @pytest.mark.slow reads the same variable in the same way. C++11 and GoogleTest 1.10 or newer.
#ifndef NIGHTJAR_SLOW_H_
#define NIGHTJAR_SLOW_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace nightjar {

inline bool SkipsSlowTests() {
  const char* value = std::getenv("SKIP_SLOW_TESTS");
  if (value == nullptr) return false;
  std::string word(value);
  for (char& letter : word) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return word == "true" || word == "1" || word == "yes";
}

}  // namespace nightjar

// Ends the test, or the SetUp() of a fixture, in which it stands.
#define NIGHTJAR_SLOW()                                                                       \
  do {                                                                                        \
    if (::nightjar::SkipsSlowTests()) {                                                       \
      GTEST_SKIP() << "slow test, and SKIP_SLOW_TESTS is set; to run it, unset the variable"; \
    }                                                                                         \
  } while (false)

#endif  // NIGHTJAR_SLOW_H_
