// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace disttrain {

// A line of a rank's log for a person, without its newline. Log lines of ours
// (one JSON object) become "message  key=value …", without the fields that the
// prefix of the line says already, and with none if the message has columns of
// its own (tabs); anything else stays as it is. Wrong UTF-8 and
// control characters other than tabs are made visible, so that no rank can move
// the cursor.
std::string ReadableLogLine(std::string_view line);

}  // namespace disttrain
