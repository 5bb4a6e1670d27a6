# The libraries of a cross build (LOCKSTEP_KERNELS_ONLY), out of the packages for the machine that
# builds, which hold no code for another: fmt and spdlog as headers, GoogleTest from its sources
# (package googletest).
foreach(library fmt spdlog)
  # Alone in a folder, since those beside them belong to the other machine.
  set(_headers ${CMAKE_BINARY_DIR}/headers/${library})
  file(MAKE_DIRECTORY ${_headers})
  file(CREATE_LINK /usr/include/${library} ${_headers}/${library} SYMBOLIC)
  add_library(${library}::${library} INTERFACE IMPORTED)
  target_include_directories(${library}::${library} INTERFACE ${_headers})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_link_libraries(spdlog::spdlog INTERFACE fmt::fmt)

if(LOCKSTEP_BUILD_TESTS)
  set(BUILD_GMOCK OFF)
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  foreach(library gtest gtest_main)
    if(NOT TARGET GTest::${library})
      add_library(GTest::${library} ALIAS ${library})
    endif()
  endforeach()
endif()
