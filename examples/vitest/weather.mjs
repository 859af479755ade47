// The code under test: asks a weather server for the warmer of two cities, with the official TypeScript SDK.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export async function warmer(url, cities) {
  // `auto` speaks 2026-07-28 with servers that know it, and the handshake of older versions with the others.
  const client = new Client({ name: "weather-app", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    const celsius = [];
    for (const city of cities) celsius.push(await forecast(client, city));
    return cities[celsius.indexOf(Math.max(...celsius))];
  } finally {
    await client.close();
  }
}

async function forecast(client, city, attempts = 2) {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const result = await client.callTool({ name: "forecast", arguments: { city } });
    if (!result.isError) return result.structuredContent.celsius;
  }
  throw new Error(`the server is busy: ${city}`);
}
