// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

#include "fmt/format.h"
#include "proto/runtime/check.h"

namespace disttrain::transport {
namespace {

constexpr absl::string_view kUnixScheme = "unix:";

std::string Text(absl::string_view view) {
  return std::string(view.data(), view.size());
}

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "address '{}' {}, expected host:port, [v6]:port or unix:/path",
      Text(text), Text(why)));
}

absl::StatusOr<Address> ParseUnix(absl::string_view text) {
  Address address;
  address.path = Text(text.substr(kUnixScheme.size()));
  if (address.path.empty() || address.path[0] != '/') {
    return Malformed(text, "has no absolute path");
  }
  if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Malformed(
        text,
        fmt::format("has a path of {} characters, at most {} fit",
                    address.path.size(), sizeof(sockaddr_un::sun_path) - 1));
  }
  return address;
}

absl::StatusOr<std::vector<SocketAddress>> GetAddrInfo(const Address& address,
                                                       int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                    &hints, &list);
  if (error != 0) {
    const std::string why =
        fmt::format("host '{}': {}", address.host, ::gai_strerror(error));
    return (flags & AI_NUMERICHOST) != 0 ? absl::InvalidArgumentError(why)
                                         : absl::UnavailableError(why);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             ::freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress& socket_address = found.emplace_back();
    std::memcpy(&socket_address.storage, entry->ai_addr, entry->ai_addrlen);
    socket_address.size = entry->ai_addrlen;
  }
  return found;
}

// The text of an interface's address if others can dial it, else "".
std::string Dialable(const ifaddrs& interface) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0 ||
      (interface.ifa_flags & IFF_LOOPBACK) != 0) {
    return "";
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (interface.ifa_addr->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, interface.ifa_addr, sizeof(v4));
    if ((ntohl(v4.sin_addr.s_addr) >> 16) == 0xa9fe) return "";  // link-local
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (interface.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, interface.ifa_addr, sizeof(v6));
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return "";
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
}

}  // namespace

bool Address::is_wildcard() const {
  return !is_unix() &&
         (host.empty() || host == "*" || host == "0.0.0.0" || host == "::");
}

std::string Address::ToString() const {
  if (is_unix()) return "unix:" + path;
  return host.find(':') == std::string::npos
             ? fmt::format("{}:{}", host, port)
             : fmt::format("[{}]:{}", host, port);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  if (text.substr(0, kUnixScheme.size()) == kUnixScheme) return ParseUnix(text);
  Address address;
  absl::string_view rest;
  if (!text.empty() && text[0] == '[') {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return Malformed(text, "has no ']'");
    address.host = Text(text.substr(1, end - 1));
    rest = text.substr(end + 1);
  } else {
    const size_t colon = text.rfind(':');
    if (colon == absl::string_view::npos) return Malformed(text, "has no port");
    address.host = Text(text.substr(0, colon));
    if (address.host.find(':') != std::string::npos) {
      return Malformed(text, "has an IPv6 address without brackets");
    }
    rest = text.substr(colon);
  }
  if (address.host.size() > 255) return Malformed(text, "has too long a host");
  if (rest.size() < 2 || rest[0] != ':') return Malformed(text, "has no port");
  const char* end = rest.data() + rest.size();
  const auto [last, error] =
      std::from_chars(rest.data() + 1, end, address.port);
  if (error != std::errc() || last != end) {
    return Malformed(text, "has a port that is not in [0, 65535]");
  }
  return address;
}

SocketAddress UnixSocketAddress(const Address& address) {
  sockaddr_un un{};
  DISTTRAIN_CHECK(address.is_unix() &&
                  address.path.size() < sizeof(un.sun_path));
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, address.path.data(), address.path.size());
  SocketAddress result;
  std::memcpy(&result.storage, &un, sizeof(un));
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                       address.path.size() + 1);
  return result;
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const Address& address) {
  return GetAddrInfo(address, 0);
}

absl::StatusOr<std::vector<SocketAddress>> ResolveLiteral(
    const Address& address) {
  return GetAddrInfo(address, AI_NUMERICHOST);
}

std::string HostAddress() {
  ifaddrs* list = nullptr;
  std::string loopback = "127.0.0.1";
  if (::getifaddrs(&list) != 0) return loopback;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::string v4;
  std::string v6;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::string text = Dialable(*entry);
    std::string& slot = text.find(':') == std::string::npos ? v4 : v6;
    if (slot.empty()) slot = text;
  }
  if (!v4.empty()) return v4;
  return v6.empty() ? loopback : v6;
}

uint16_t PortOf(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof(v4));
    return ntohs(v4.sin_port);
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof(v6));
  return ntohs(v6.sin6_port);
}

}  // namespace disttrain::transport
