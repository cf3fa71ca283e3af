// Slow GoogleTest tests, skipped where SKIP_SLOW_TESTS is true, 1 or yes, in any case of letters.
//
//     TEST(Models, Resnet) {
//       NIGHTJAR_SLOW();
//       ...
//     }
//
//     TEST(Models, Llama) {
//       nightjar_level("nightly");
//       ...
//     }
//
// A test of a level is skipped where NIGHTJAR_LEVEL names an earlier one: pull-request, main, nightly, release. Slow tests
// are of the level main. Python's @pytest.mark.slow and @pytest.mark.level read the same variables in the same way. C++11
// and GoogleTest 1.10 or newer.
#ifndef NIGHTJAR_SLOW_H_
#define NIGHTJAR_SLOW_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace nightjar {

// The value of a variable in lower case, without blanks around it; empty if it is not set.
inline std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  std::string word(value == nullptr ? "" : value);
  for (char& letter : word) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return word;
}

// The number of a level, -1 for none of them.
inline int NumberOfLevel(const std::string& level) {
  const char* levels[] = {"pull-request", "main", "nightly", "release"};
  for (int number = 0; number < 4; ++number) {
    if (level == levels[number]) return number;
  }
  return -1;
}

inline bool SkipsSlowTests() {
  const std::string word = Variable("SKIP_SLOW_TESTS");
  return word == "true" || word == "1" || word == "yes";
}

// Whether tests of a level are skipped. A level that does not exist stops the program: a typo must not skip tests.
inline bool SkipsLevel(const std::string& level) {
  const std::string run = Variable("NIGHTJAR_LEVEL");
  const int number = NumberOfLevel(level);
  if (number < 0 || (!run.empty() && NumberOfLevel(run) < 0)) {
    std::cerr << (number < 0 ? level : run) << " is not a level; the levels are pull-request, main, nightly, release\n";
    std::exit(2);
  }
  if (SkipsSlowTests()) return number > 0;
  return !run.empty() && number > NumberOfLevel(run);
}

}  // namespace nightjar

// Ends the test, or the SetUp() of a fixture, in which it stands.
#define NIGHTJAR_SLOW()                                                                       \
  do {                                                                                        \
    if (::nightjar::SkipsSlowTests()) {                                                       \
      GTEST_SKIP() << "slow test, and SKIP_SLOW_TESTS is set; to run it, unset the variable"; \
    }                                                                                         \
    nightjar_level("main");                                                                   \
  } while (false)

#define nightjar_level(level)                                                                             \
  do {                                                                                                    \
    if (::nightjar::SkipsLevel(level)) {                                                                  \
      GTEST_SKIP() << "test of the level " << (level) << "; to run it: NIGHTJAR_LEVEL=" << (level)        \
                   << ", and SKIP_SLOW_TESTS not set";                                                    \
    }                                                                                                     \
  } while (false)

#endif  // NIGHTJAR_SLOW_H_
