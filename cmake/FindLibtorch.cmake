# SPDX-License-Identifier: Apache-2.0
# Finds the CPU half of libtorch: one imported target, Libtorch::Libtorch.
#
# find_package(Torch) of the pinned wheel insists on a CUDA toolkit, which
# nothing here needs. -DDISTTRAIN_LIBTORCH=DIR points to any other libtorch
# (a folder with include/ and lib/).
if(NOT DISTTRAIN_LIBTORCH AND EXISTS "${PROJECT_SOURCE_DIR}/docker/install-deps.sh")
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/docker/install-deps.sh" --libtorch-dir
    OUTPUT_VARIABLE _libtorch_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
else()
  set(_libtorch_dir "${DISTTRAIN_LIBTORCH}")
endif()

find_path(Libtorch_INCLUDE_DIR ATen/core/Tensor.h
  HINTS "${_libtorch_dir}/include" NO_DEFAULT_PATH NO_CACHE)
find_library(Libtorch_CPU_LIBRARY torch_cpu HINTS "${_libtorch_dir}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(Libtorch_C10_LIBRARY c10 HINTS "${_libtorch_dir}/lib" NO_DEFAULT_PATH NO_CACHE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_CPU_LIBRARY Libtorch_C10_LIBRARY Libtorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "looked in '${_libtorch_dir}' (docker/install-deps.sh unpacks it), or set DISTTRAIN_LIBTORCH")

if(Libtorch_FOUND AND NOT TARGET Libtorch::Libtorch)
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  set_target_properties(Libtorch::Libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${Libtorch_INCLUDE_DIR};${Libtorch_INCLUDE_DIR}/torch/csrc/api/include"
    # The wheel's include folder holds an fmt of another version, which comes
    # before the system's; used as headers only it needs no library.
    INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1
    # --no-as-needed: libtorch registers its operators in static initialisers.
    # An RPATH of the old style also serves the libraries that libtorch needs itself.
    INTERFACE_LINK_LIBRARIES
      "-Wl,--push-state,--no-as-needed;${Libtorch_CPU_LIBRARY};${Libtorch_C10_LIBRARY};-Wl,--pop-state"
    INTERFACE_LINK_OPTIONS "-Wl,--disable-new-dtags")
endif()
