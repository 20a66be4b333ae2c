// SPDX-License-Identifier: Apache-2.0
#include "controller/api/template_fields.h"

namespace disttrain {

const std::vector<std::string>& PodTemplateFields() {
  static const std::vector<std::string> kFields = {"metadata", "spec"};
  return kFields;
}

const std::vector<std::string>& PodSpecFields() {
  static const std::vector<std::string> kFields = {
      "activeDeadlineSeconds",
      "affinity",
      "automountServiceAccountToken",
      "containers",
      "dnsConfig",
      "dnsPolicy",
      "enableServiceLinks",
      "ephemeralContainers",
      "hostAliases",
      "hostIPC",
      "hostNetwork",
      "hostPID",
      "hostUsers",
      "hostname",
      "hostnameOverride",
      "imagePullSecrets",
      "initContainers",
      "nodeName",
      "nodeSelector",
      "os",
      "overhead",
      "preemptionPolicy",
      "priority",
      "priorityClassName",
      "readinessGates",
      "resourceClaims",
      "resources",
      "restartPolicy",
      "runtimeClassName",
      "schedulerName",
      "schedulingGates",
      "securityContext",
      "serviceAccount",
      "serviceAccountName",
      "setHostnameAsFQDN",
      "shareProcessNamespace",
      "subdomain",
      "terminationGracePeriodSeconds",
      "tolerations",
      "topologySpreadConstraints",
      "volumes",
  };
  return kFields;
}

const std::vector<std::string>& ContainerFields() {
  static const std::vector<std::string> kFields = {
      "args",
      "command",
      "env",
      "envFrom",
      "image",
      "imagePullPolicy",
      "lifecycle",
      "livenessProbe",
      "name",
      "ports",
      "readinessProbe",
      "resizePolicy",
      "resources",
      "restartPolicy",
      "restartPolicyRules",
      "securityContext",
      "startupProbe",
      "stdin",
      "stdinOnce",
      "terminationMessagePath",
      "terminationMessagePolicy",
      "tty",
      "volumeDevices",
      "volumeMounts",
      "workingDir",
  };
  return kFields;
}

}  // namespace disttrain
