# How every folder of the tree declares its library, tests and programs. One target a folder.

# Flags that every unit of ours is compiled with. The numeric ones are part of the determinism rules
# (docs/determinism.md): no contraction of a*b+c, no fast-math, errno untouched by math calls.
set(LOCKSTEP_CXX_FLAGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror=return-type
    -Werror=unused-result -Wno-unknown-pragmas -ffp-contract=off -fno-math-errno -ffunction-sections
    -fdata-sections)

if(LOCKSTEP_SANITIZE)
  string(REPLACE "," ";" _sanitizers "${LOCKSTEP_SANITIZE}")
  foreach(_s ${_sanitizers})
    list(APPEND LOCKSTEP_CXX_FLAGS -fsanitize=${_s})
    add_link_options(-fsanitize=${_s})
  endforeach()
  list(APPEND LOCKSTEP_CXX_FLAGS -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(LOCKSTEP_SANITIZE MATCHES "thread")
    list(APPEND LOCKSTEP_CXX_FLAGS -Wno-tsan)
  endif()
endif()

# A compiler cache, unless the caller chose a launcher.
find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
endif()

find_program(LOCKSTEP_LLD ld.lld)
if(LOCKSTEP_LLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--gc-sections)

function(_lockstep_common target)
  target_compile_options(${target} PRIVATE ${LOCKSTEP_CXX_FLAGS})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
endfunction()

# lockstep_library(base SOURCES a.cc b.cc DEPS other libs): the static library lockstep_base. A folder
# with headers only leaves SOURCES out.
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target lockstep_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    _lockstep_common(${target})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# lockstep_test(base_status SOURCES status_test.cc DEPS lockstep_base [LABELS unit]): the program
# base_status_test, one ctest entry. Tests below src/ also carry their folder's name as a label, and
# the target tests_<label> builds all tests of a label.
function(lockstep_test name)
  if(NOT LOCKSTEP_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ARGS" ${ARGN})
  set(target ${name}_test)
  add_executable(${target} ${ARG_SOURCES})
  _lockstep_common(${target})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main Threads::Threads)
  add_test(NAME ${name} COMMAND ${target} ${ARG_ARGS})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE path)
  if(path MATCHES "^src/([^/]+)")
    list(APPEND ARG_LABELS ${CMAKE_MATCH_1})
  endif()
  foreach(label ${ARG_LABELS})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
