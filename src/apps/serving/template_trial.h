// Tries a chat template on a few short conversations, so that what it uses and this program does
// not have is reported when the model is loaded and not by every request. Thread-safe.
#pragma once

#include "base/status.h"
#include "text/chat_template.h"

namespace lockstep {

// The first failure, with the line and the conversation. A template may refuse a conversation by
// raising: that is no failure.
Status TryChatTemplate(const ChatTemplate& chat_template);

}  // namespace lockstep
