"""Conversations that chat templates are rendered with."""

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city, <now> & \"then\" – für Köln",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "City's name"},
        "unit": {"type": ["string", "null"], "enum": ["c", "f"], "default": "c"},
        "days": {"type": "integer", "minimum": 1, "maximum": 1e20},
        "weights": {"type": "array", "items": {"type": "number"}, "default": [0.1, 1e-07, 2.0]}},
        "required": ["city"], "additionalProperties": False},
    "return": {"type": "string"}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Search.\nTwo lines.",
    "parameters": {"type": "object", "properties": {
        "query": {"type": "string"},
        "options": {"type": "object", "properties": {"limit": {"type": "integer"}}}}}}}
CALL = {"id": "call00001", "type": "function",
        "function": {"name": "get_weather", "arguments": {"city": "Köln", "days": 2, "weights": [0.5, 3.0]}}}
CALL2 = {"id": "call00002", "type": "function",
         "function": {"name": "search", "arguments": {"query": "a \"b\" <c>", "options": {"limit": 3}}}}
SYSTEM = {"role": "system", "content": "You are terse."}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"t\": 21.5}"}
RESULT2 = {"role": "tool", "tool_call_id": "call00002", "name": "search", "content": "nothing"}

CONVERSATIONS = {
    "user": {"messages": [user("Hello!")], "add_generation_prompt": True},
    "no_primer": {"messages": [user("Hello!"), assistant("Hi.")], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, user("  Hello\n\nthere  ")], "add_generation_prompt": True},
    "turns": {"messages": [SYSTEM, user("1+1?"), assistant("2"), user("And 2+2? 😀"), assistant("4\n"),
                           user("Thanks")], "add_generation_prompt": True},
    "think": {"messages": [user("Why?"), assistant("<think>\nBecause.\n</think>\n\nSo."), user("Ok")],
              "add_generation_prompt": True, "enable_thinking": False},
    "reasoning": {"messages": [user("Why?"), assistant("So.", reasoning_content="Because."), user("Ok")],
                  "add_generation_prompt": True, "enable_thinking": True},
    "tools": {"messages": [SYSTEM, user("Weather?")], "tools": [WEATHER, SEARCH],
              "add_generation_prompt": True},
    "call": {"messages": [user("Weather?"), assistant(None, tool_calls=[CALL]), RESULT],
             "tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    "call_absent_content": {
        "messages": [user("Weather?"), {"role": "assistant", "tool_calls": [CALL]}, RESULT,
                     assistant("21.5 °C"), user("Thanks")],
        "tools": [WEATHER], "add_generation_prompt": True},
    "calls": {"messages": [SYSTEM, user("Both?"), assistant("", tool_calls=[CALL, CALL2]), RESULT, RESULT2,
                           assistant("Done."), user("More")],
              "tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "tell me a "},
                                                        {"type": "text", "text": "riddle"}]}],
              "add_generation_prompt": True},
    "late_system": {"messages": [user("a"), SYSTEM, user("b")], "add_generation_prompt": True},
    "user_user": {"messages": [user("a"), user("b")], "add_generation_prompt": True},
}
for context in CONVERSATIONS.values():
    context.setdefault("tools", None)
    context.setdefault("documents", None)
