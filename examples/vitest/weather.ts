// The code under test: what an application does with a weather server.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** Asks the server for the warmer of some cities. */
export async function warmer(url: string, cities: string[]): Promise<string> {
  const celsius = await forecasts(url, cities);
  return cities[celsius.indexOf(Math.max(...celsius))]!;
}

async function forecasts(url: string, cities: string[]): Promise<number[]> {
  // `auto` speaks 2026-07-28 with servers that know it, and the handshake of older versions with the others.
  const client = new Client({ name: "weather-app", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    const celsius: number[] = [];
    for (const city of cities) celsius.push(await forecast(client, city));
    return celsius;
  } finally {
    await client.close();
  }
}

async function forecast(client: Client, city: string, attempts = 2): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const result = await client.callTool({ name: "forecast", arguments: { city } });
    if (!result.isError) return (result.structuredContent as { celsius: number }).celsius;
  }
  throw new Error(`the server is busy: ${city}`);
}

/** Lets a model answer, which may ask for forecasts. `modelUrl` is that of an API like Anthropic's. */
export async function advise(modelUrl: string, url: string, prompt: string): Promise<string> {
  const input_schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const tools = [{ name: "forecast", description: "Tomorrow's weather.", input_schema }];
  const messages: object[] = [{ role: "user", content: prompt }];
  for (;;) {
    const response = await fetch(`${modelUrl}/v1/messages`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "x-api-key": process.env["ANTHROPIC_API_KEY"] ?? "" },
      body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 1000, tools, messages }),
    });
    const { content } = (await response.json()) as { content: any[] };
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) return content[0].text;
    const celsius = await forecasts(url, calls.map(({ input }) => input.city));
    const results = calls.map(({ id }, at) => ({ type: "tool_result", tool_use_id: id, content: `${celsius[at]} °C` }));
    messages.push({ role: "assistant", content }, { role: "user", content: results });
  }
}
