# SPDX-License-Identifier: Apache-2.0
# Fails when a folder includes what it may not:
#   cmake -DROOT=<checkout> -P tests/layering/layering.cmake
# Each rule: folder : the folders of ours it may include : outside headers it
# may include of those that are watched below.
set(rules
  "proto/contract:proto/contract:"
  "proto/runtime:proto:grpcpp/"
  "controller/api:proto|controller/api:"
  "controller/kube:proto|controller/api|controller/kube:"
  "controller/reconcile:proto|controller/api|controller/kube|controller/reconcile:grpcpp/"
  "controller/local:proto|controller/api|controller/kube|controller/reconcile|controller/local:"
  "controller/cli:proto|controller:yaml-cpp/"
  "worker/identity:proto|worker/identity:"
  "worker/telemetry:proto|worker/identity|worker/telemetry:prometheus/"
  "worker/rendezvous:proto|worker/identity|worker/rendezvous:grpcpp/|torch/|c10/"
  "worker/transport:proto|worker/identity|worker/rendezvous|worker/transport:"
  "worker/rpc:proto|worker/identity|worker/rendezvous|worker/transport|worker/rpc:ATen/|c10/|torch/"
  "worker/programs:proto|worker:ATen/|c10/|torch/|grpcpp/")
set(watched "grpcpp/|torch/|ATen/|c10/|yaml-cpp/|prometheus/|cpprest/")

set(errors "")
foreach(rule ${rules})
  string(REGEX MATCH "^([^:]+):([^:]+):([^:]*)$" _ "${rule}")
  set(folder "${CMAKE_MATCH_1}")
  set(ours "${CMAKE_MATCH_2}")
  set(outside "${CMAKE_MATCH_3}")
  file(GLOB_RECURSE sources "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cc")
  foreach(source ${sources})
    file(STRINGS "${source}" includes REGEX "^#include [<\"]")
    foreach(include ${includes})
      string(REGEX REPLACE "^#include [<\"]([^>\"]+)[>\"].*" "\\1" header "${include}")
      if((header MATCHES "^(proto|controller|worker|tests)/" AND NOT header MATCHES "^(${ours})/")
         OR (header MATCHES "^(${watched})" AND (outside STREQUAL "" OR NOT header MATCHES "^(${outside})")))
        file(RELATIVE_PATH name "${ROOT}" "${source}")
        string(APPEND errors "\n  ${name}: #include \"${header}\" (${folder} may include: ${ours} ${outside})")
      endif()
    endforeach()
  endforeach()
endforeach()
if(errors)
  message(FATAL_ERROR "dependencies that point the wrong way:${errors}")
endif()
