# SPDX-License-Identifier: Apache-2.0
# Compiler settings and the functions by which every folder declares itself.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros
      "${CCACHE_PROGRAM}")
endif()

# Flags of ours ride on one target; nothing is set globally.
add_library(disttrain_options INTERFACE)
add_library(disttrain::options ALIAS disttrain_options)
target_compile_features(disttrain_options INTERFACE cxx_std_20)
target_include_directories(disttrain_options INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:include/disttrain>")
target_compile_options(disttrain_options INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wconversion;-Wnon-virtual-dtor>"
  "$<$<BOOL:${DISTTRAIN_WERROR}>:$<BUILD_INTERFACE:-Werror>>")
if(DISTTRAIN_SANITIZE)
  target_compile_options(disttrain_options INTERFACE
    "-fsanitize=${DISTTRAIN_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(disttrain_options INTERFACE "-fsanitize=${DISTTRAIN_SANITIZE}")
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT DISTTRAIN_SANITIZE)
  target_link_options(disttrain_options INTERFACE "$<BUILD_INTERFACE:-fuse-ld=mold>")
endif()

# disttrain_library(<top>_<folder> SOURCES ... LINKS ...): one library a folder,
# linked as disttrain::<top>_<folder>.
function(disttrain_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  add_library(disttrain::${name} ALIAS ${name})
  target_link_libraries(${name} PUBLIC disttrain_options ${arg_LINKS})
endfunction()

# disttrain_test(<name> [THREADED] SOURCES ... LINKS ... [LABEL unit] [TIMEOUT 120] [ENVIRONMENT A=b ...]):
# one test program, one CTest entry. Labels: unit, integration, cluster, gpu; and threaded, if there
# is something to see for the thread sanitizer: that preset builds and runs those alone.
add_custom_target(threaded_tests)
function(disttrain_test name)
  cmake_parse_arguments(arg "THREADED" "LABEL;TIMEOUT" "SOURCES;LINKS;ENVIRONMENT" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  # A matcher is compiled for each type it meets: optimising it takes longer than running it.
  target_compile_options(${name} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-O1>")
  target_link_libraries(${name} PRIVATE disttrain_options GTest::gmock GTest::gtest_main ${arg_LINKS})
  add_test(NAME ${name} COMMAND ${name})
  if(arg_THREADED)
    list(APPEND arg_LABEL threaded)
    add_dependencies(threaded_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
