# Two language worlds (docs/architecture.md). A target belongs to exactly one of them; it says so by linking one of these
# two interface targets, which carry the language level, the warnings and the sanitizer of that world.
set(RINGSCOPE_WARNINGS -Wall -Wextra -Werror -Wshadow -Wundef -Wnon-virtual-dtor)

add_library(world_process INTERFACE)   # inside the training process: recorder/, plugin/, preload/
target_compile_features(world_process INTERFACE cxx_std_17)
target_compile_options(world_process INTERFACE ${RINGSCOPE_WARNINGS}
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-asynchronous-unwind-tables
    -fno-unwind-tables>
  -fvisibility=hidden -ffunction-sections -fdata-sections -fno-math-errno)
target_include_directories(world_process INTERFACE ${CMAKE_SOURCE_DIR})

add_library(world_host INTERFACE)      # everywhere else
target_compile_features(world_host INTERFACE cxx_std_20)
# -Wno-restrict: GCC 12 warns falsely about operator+ of a literal and a std::string when it optimises (GCC bug 105651).
target_compile_options(world_host INTERFACE ${RINGSCOPE_WARNINGS} $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(world_host INTERFACE ${CMAKE_SOURCE_DIR})

if(RINGSCOPE_SANITIZE)
  set(flags -fsanitize=${RINGSCOPE_SANITIZE} -fno-omit-frame-pointer)
  if(RINGSCOPE_SANITIZE STREQUAL "undefined")
    list(APPEND flags -fno-sanitize-recover=all)
  endif()
  if(RINGSCOPE_SANITIZE STREQUAL "thread")
    # Fences order the publication of rows for readers in other processes, whom the sanitizer does not see anyway.
    list(APPEND flags -Wno-tsan)
  endif()
  add_compile_options(${flags})
  add_link_options(${flags})
endif()

# ringscope_library(NAME WORLD DIR [DEPS...]): a static library of every .cc of one folder. A new file is picked up by itself:
# a finder, a reader or a setting is added by one file and its test.
function(ringscope_library name world dir)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${world} ${ARGN})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${world} ${ARGN})
endfunction()

# ringscope_test(NAME DIR LABEL [DEPS...]): one GoogleTest binary of every *_test.cc of one folder.
function(ringscope_test name dir label)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE world_host GTest::gmock_main ${ARGN})
  target_compile_definitions(${name} PRIVATE RINGSCOPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    RINGSCOPE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(${name} PROPERTIES LABELS ${label} TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()
