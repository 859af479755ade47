// A host that shows one app: it answers `ui/initialize`, and sends the arguments and the result of the call.
const { view, title, allow, tool, args, result } = await (await fetch("data.json")).json();
const { origin } = new URL(view);
const frame = document.querySelector("iframe");
const send = message => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, origin);
const note = text => fetch("note", { method: "POST", body: text });

function answer({ method, params }) {
  switch (method) {
    case "ui/initialize":
      return {
        protocolVersion: "2026-01-26",
        hostInfo: { name: "rehearse", version: document.documentElement.dataset.version },
        hostCapabilities: { logging: {} },
        hostContext: {
          toolInfo: { tool },
          theme: "light",
          displayMode: "inline",
          availableDisplayModes: ["inline"],
          containerDimensions: { width: innerWidth },
          locale: navigator.language,
          timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
          userAgent: "rehearse",
          platform: "web",
        },
      };
    case "ui/request-display-mode":
      return { mode: "inline" };
    case "ping":
      return {};
    case "ui/notifications/initialized":
      send({ method: "ui/notifications/tool-input", params: { arguments: args } });
      send({ method: "ui/notifications/tool-result", params: result });
      break;
    case "ui/notifications/size-changed":
      if (params?.height > 0) frame.style.height = `${params.height}px`;
  }
}

addEventListener("message", event => {
  const message = event.data;
  if (event.source !== frame.contentWindow || event.origin !== origin || message?.jsonrpc !== "2.0") return;
  if (!message.method) return;
  note(message.method);
  const given = answer(message);
  if (message.id === undefined) return;
  const error = { code: -32601, message: `this host does not answer ${message.method}` };
  send({ id: message.id, ...(given ? { result: given } : { error }) });
});
addEventListener("pagehide", () => {
  navigator.sendBeacon("closed");
  send({ id: "teardown", method: "ui/resource-teardown", params: { reason: "the window is closed" } });
});
document.title = title;
frame.allow = allow;
frame.src = view;
