// What the Vercel AI SDK's pruneMessages does with a case; runs in a folder with the npm package "ai".
const { pruneMessages } = require("ai");
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean);

// A batch of results is one message of the SDK; a text is a part, as agents of the SDK write it.
function framed(messages) {
  const out = [];
  for (const message of messages) {
    if (message.role === "tool") {
      const part = {
        type: "tool-result", toolCallId: message.call_id, toolName: message.name,
        output: { type: "text", value: message.text },
      };
      if (out.length && out[out.length - 1].role === "tool") out[out.length - 1].content.push(part);
      else out.push({ role: "tool", content: [part] });
    } else if (message.role === "assistant") {
      const content = [];
      if (message.reasoning) content.push({ type: "reasoning", text: message.reasoning });
      if (message.text) content.push({ type: "text", text: message.text });
      for (const call of message.calls)
        content.push({ type: "tool-call", toolCallId: call.id, toolName: call.name, input: call.arguments });
      out.push({ role: "assistant", content });
    } else out.push({ role: message.role, content: message.text });
  }
  return out;
}

const blank = { text: "", calls: [], call_id: "", name: "", reasoning: "" };

function back(messages) {
  const out = [];
  for (const message of messages) {
    if (message.role === "tool") {
      for (const part of message.content)
        out.push({ ...blank, role: "tool", text: part.output.value, call_id: part.toolCallId, name: part.toolName });
    } else if (message.role === "assistant") {
      const of = (type) => message.content.filter((part) => part.type === type);
      out.push({
        ...blank, role: "assistant", text: of("text").map((part) => part.text).join("\n"),
        reasoning: of("reasoning").map((part) => part.text).join(""),
        calls: of("tool-call").map((part) => ({ id: part.toolCallId, name: part.toolName, arguments: part.input })),
      });
    } else out.push({ ...blank, role: message.role, text: message.content });
  }
  return out;
}

for (const line of lines) {
  const task = JSON.parse(line);
  const { reasoning, tool_calls, tools, empty_messages } = task.parameters;
  const toolCalls = tool_calls === "none" ? "none" : [{ type: tool_calls, ...(tools.length ? { tools } : {}) }];
  const answers = task.stops.map((stop) =>
    back(pruneMessages({
      messages: framed(task.messages.slice(0, stop)), reasoning, toolCalls, emptyMessages: empty_messages,
    })));
  console.log(JSON.stringify({ seed: task.seed, answers }));
}
