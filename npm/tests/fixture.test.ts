import type { Mock, Model } from "mcp-rehearsal";
import { test } from "mcp-rehearsal/vitest";
import { expect } from "vitest";

let mock: Mock, model: Model;

test("start", async ({ startMock, startModel }) => {
  [mock, model] = await Promise.all([startMock("basic"), startModel({ rules: [{ reply: "Hi" }] })]);
  await expect(startMock("no-such-script")).rejects.toThrow("did not start");
});

test("what was started is stopped after the test", async () => {
  await expect(mock.journal()).rejects.toThrow("the mock has ended");
  await expect(fetch(model.url)).rejects.toThrow();
});
