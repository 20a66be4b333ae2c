# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts into a prefix: the binaries, and all that
# find_package(disttrain) needs to build a program of one's own.
include(CMakePackageConfigHelpers)

add_library(disttrain INTERFACE)
add_library(disttrain::disttrain ALIAS disttrain)
target_link_libraries(disttrain INTERFACE worker_programs)

install(TARGETS
    disttrain disttrain_options proto proto_contract proto_runtime
    worker_identity worker_rendezvous worker_transport worker_rpc worker_telemetry
    worker_programs_lifecycle worker_programs
  EXPORT disttrainTargets
  ARCHIVE DESTINATION lib)
install(EXPORT disttrainTargets NAMESPACE disttrain:: DESTINATION lib/cmake/disttrain)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/worker" "${PROJECT_SOURCE_DIR}/proto"
  DESTINATION include/disttrain FILES_MATCHING PATTERN "*.h" PATTERN "proto/disttrain" EXCLUDE)
install(DIRECTORY "${PROJECT_BINARY_DIR}/generated/disttrain"
  DESTINATION include/disttrain FILES_MATCHING PATTERN "*.pb.h")

# The libtorch of this build, unless the user names another one.
get_filename_component(_library_folder "${Libtorch_CPU_LIBRARY}" DIRECTORY)
get_filename_component(DISTTRAIN_INSTALLED_LIBTORCH "${_library_folder}" DIRECTORY)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/disttrainConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/disttrainConfig.cmake"
  INSTALL_DESTINATION lib/cmake/disttrain)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/disttrainConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/disttrainConfig.cmake"
    "${PROJECT_BINARY_DIR}/disttrainConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindLibtorch.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindGrpcArchives.cmake"
  DESTINATION lib/cmake/disttrain)

set_target_properties(disttrain-worker PROPERTIES INSTALL_RPATH "${_library_folder}")
install(TARGETS disttrain-worker RUNTIME DESTINATION bin)
if(TARGET dtj)
  install(TARGETS dtj RUNTIME DESTINATION bin)
endif()
