# Slow CTest tests. With `nightjar-lab include-dir` in CMAKE_MODULE_PATH, include(nightjar/nightjar). Then name the tests after add_test() or in PROPERTIES of gtest_discover_tests():
#
#     nightjar_slow_tests(test_resnet test_bert)
#
# `ctest -LE slow` leaves them out, `ctest -L slow` runs them alone. Other labels of a test stay.
function(nightjar_slow_tests)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS slow)
endfunction()
