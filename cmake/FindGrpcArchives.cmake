# SPDX-License-Identifier: Apache-2.0
# Finds gRPC and protobuf as static archives: GrpcArchives::Grpc.
#
# libtorch_cpu exports some protobuf symbols of another version. With archives
# whose symbols are hidden (--exclude-libs) neither sees the other. Under the
# thread sanitizer the shared libraries are taken, so that one suppression can
# name them.
option(DISTTRAIN_GRPC_SHARED "Link gRPC and protobuf as shared libraries (not with libtorch)" OFF)

find_program(Protobuf_PROTOC protoc REQUIRED)
find_program(Grpc_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
set(_grpc_suffix ".a")
if(DISTTRAIN_GRPC_SHARED)
  set(_grpc_suffix ".so")
endif()
set(_grpc_missing "")
set(_grpc_names grpc++ grpc gpr address_sorting re2 upb cares protobuf)
foreach(_name ${_grpc_names})
  find_library(Grpc_${_name}_LIBRARY "lib${_name}${_grpc_suffix}" NO_CACHE)
  if(NOT Grpc_${_name}_LIBRARY)
    string(APPEND _grpc_missing " lib${_name}${_grpc_suffix}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GrpcArchives
  REQUIRED_VARS Protobuf_PROTOC Grpc_CPP_PLUGIN Grpc_grpc++_LIBRARY Grpc_protobuf_LIBRARY
  REASON_FAILURE_MESSAGE "missing: ${_grpc_missing} (docker/install-deps.sh brings them)")

if(GrpcArchives_FOUND AND NOT TARGET GrpcArchives::Grpc)
  set(_grpc_needs
    OpenSSL::SSL OpenSSL::Crypto z absl::status absl::statusor absl::strings absl::str_format
    absl::synchronization absl::time absl::cord absl::flat_hash_map absl::flat_hash_set
    absl::inlined_vector absl::bind_front absl::random_random absl::optional absl::variant absl::any
    absl::hash absl::bad_optional_access absl::bad_variant_access Threads::Threads dl atomic)
  # Each archive needs those after it and what all need: most linkers look into
  # an archive once, in the order of the command line.
  set(_grpc_next ${_grpc_needs})
  list(REVERSE _grpc_names)
  foreach(_name ${_grpc_names})
    add_library(GrpcArchives::${_name} UNKNOWN IMPORTED)
    set_target_properties(GrpcArchives::${_name} PROPERTIES
      IMPORTED_LOCATION "${Grpc_${_name}_LIBRARY}" INTERFACE_LINK_LIBRARIES "${_grpc_next}")
    set(_grpc_next GrpcArchives::${_name} ${_grpc_needs})
  endforeach()
  add_library(GrpcArchives::Grpc INTERFACE IMPORTED)
  set_target_properties(GrpcArchives::Grpc PROPERTIES
    INTERFACE_LINK_LIBRARIES "${_grpc_next}"
    INTERFACE_LINK_OPTIONS "$<$<NOT:$<BOOL:${DISTTRAIN_GRPC_SHARED}>>:-Wl,--exclude-libs,ALL>")
endif()
