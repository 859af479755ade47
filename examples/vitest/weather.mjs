// The code under test: asks a weather server over MCP (2026-07-28) for the warmer of two cities.

const VERSION = "2026-07-28";

export async function warmer(url, cities) {
  const celsius = [];
  for (const city of cities) celsius.push(await forecast(url, city));
  return cities[celsius.indexOf(Math.max(...celsius))];
}

async function forecast(url, city, attempts = 2) {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const result = await call(url, "forecast", { city });
    if (!result.isError) return result.structuredContent.celsius;
  }
  throw new Error(`the server is busy: ${city}`);
}

async function call(url, name, args) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": "tools/call",
      "Mcp-Name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta } }),
  });
  return (await response.json()).result;
}
