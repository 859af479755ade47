import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { mock } from "./mock.mjs";
import { warmer } from "./weather.mjs";

const weather = mock(fileURLToPath(new URL("weather.yaml", import.meta.url)));

test("the warmer city wins", async () => {
  expect(await warmer(weather.url, ["Oslo", "Rome"])).toBe("Rome");
  expect(await weather.calls()).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
});

test("a busy server is asked once more", async () => {
  const replies = [{ error: "busy" }, { structured: { celsius: 30 } }];
  await weather.rule("forecast", { when: { args: { city: "Oslo" } }, replies, expect: { calls: 2 } });
  expect(await warmer(weather.url, ["Oslo", "Rome"])).toBe("Oslo");
});

test("a server that stays busy is given up", async () => {
  await weather.rule("forecast", { reply: { error: "busy" }, expect: { calls: 2 } });
  await expect(warmer(weather.url, ["Oslo", "Rome"])).rejects.toThrow("the server is busy: Oslo");
});
