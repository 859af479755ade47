import { fileURLToPath } from "node:url";

import { type Mock, check } from "mcp-rehearsal";
import { test } from "mcp-rehearsal/vitest";
import { expect } from "vitest";

import { advise, warmer } from "./weather.ts";

const script = fileURLToPath(new URL("weather.yaml", import.meta.url));

/** The expectations of the script and of added rules are met, and the client keeps to the specification. */
async function verify(weather: Mock): Promise<void> {
  await weather.verify();
  expect(await weather.violations()).toEqual([]);
}

test("the warmer city wins", async ({ startMock }) => {
  const weather = await startMock(script);
  expect(await warmer(weather.url, ["Oslo", "Rome"])).toBe("Rome");
  expect(await weather.calls("forecast")).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
  await verify(weather);
});

test("a busy server is asked once more", async ({ startMock }) => {
  const weather = await startMock(script);
  const replies = [{ error: "busy" }, { structured: { celsius: 30 } }];
  await weather.addRule({ when: { args: { city: "Oslo" } }, replies, expect: { calls: 2 } }, { tool: "forecast" });
  expect(await warmer(weather.url, ["Oslo", "Rome"])).toBe("Oslo");
  await verify(weather);
});

test("a server that stays busy is given up", async ({ startMock }) => {
  const weather = await startMock(script);
  await weather.addRule({ reply: { error: "busy" }, expect: { calls: 2 } }, { tool: "forecast" });
  await expect(warmer(weather.url, ["Oslo", "Rome"])).rejects.toThrow("the server is busy: Oslo");
  await verify(weather);
});

test("the model gets the forecast that it asks for", async ({ startMock, startModel }) => {
  const weather = await startMock(script);
  const turns = [{ calls: [{ tool: "forecast", args: { city: "Oslo" } }] }, "Take a coat: {{ result }}"];
  const model = await startModel({ rules: [{ when: { prompt: { contains: "Oslo" } }, turns }] });
  expect(await advise(model.url, weather.url, "What do I wear in Oslo?")).toBe("Take a coat: -3.5 °C");
  await verify(weather);
});

test("the server keeps to the specification", async ({ startMock }) => {
  const { url } = await startMock(script); // your own server: check("node server.js")
  const { totals } = await check(url, { only: "tools", allowTools: "forecast" });
  expect(totals.passed).toBeGreaterThan(0);
}, 60_000);
